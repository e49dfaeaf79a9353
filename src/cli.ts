/** The command line: `exuvia serve`, `exuvia health`, `exuvia demo`. */
import { Command } from 'commander';
import { Fault } from './kernel/errors.ts';

/** One clear sentence instead of a stack for what the operator can mend. */
const orOneSentence = async (run: () => Promise<void>): Promise<void> => {
  try {
    await run();
  } catch (error) {
    process.stderr.write(`exuvia: ${error instanceof Fault ? error.message : ((error as Error).stack ?? String(error))}\n`);
    process.exitCode = 1;
  }
};

const program = new Command('exuvia').description('A control plane for AI agents');

program
  .command('serve', { isDefault: true })
  .description('run the server: API, projector and worker, or the roles in EXUVIA_ROLES')
  .action(() => orOneSentence(async () => (await import('./main.ts')).serve()));

program
  .command('health')
  .description('end with 0 when the server with these settings is well, with 1 and the reason when not')
  .action(() => orOneSentence(async () => (await import('./cli/health.ts')).health()));

program
  .command('demo')
  .description('walk the life of an Agent on a running server')
  .option('--url <origin>', 'where the server listens', `http://127.0.0.1:${process.env['PORT'] ?? '4000'}`)
  .action(({ url }: { url: string }) => orOneSentence(async () => (await import('./cli/demo.ts')).demo(url)));

await program.parseAsync();
