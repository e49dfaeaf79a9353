/** The command line: `exuvia serve`, `health`, `demo`, `restore`, `rebuild`, `admin reset-password`, `events copy`, `iam …`, `key …`. */
import { Command } from 'commander';
import type { ResetPasswordOptions } from './cli/admin.ts';
import type { EventsCopyOptions } from './cli/events-copy.ts';
import type { RestoreOptions } from './cli/restore.ts';
import { addIamCommands } from './cli/iam-commands.ts';
import { Fault, Refusal } from './kernel/errors.ts';

/** One clear sentence instead of a stack for what the operator can mend. */
const orOneSentence = async (run: () => Promise<void>): Promise<void> => {
  try {
    await run();
  } catch (error) {
    process.stderr.write(`exuvia: ${error instanceof Fault || error instanceof Refusal ? error.message : ((error as Error).stack ?? String(error))}\n`);
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
  .option('--url <origin>', 'where the server listens; without it on this host, at PORT')
  .action(({ url }: { url?: string }) => orOneSentence(async () => (await import('./cli/demo.ts')).demo(url)));

program
  .command('restore')
  .description('after a store was restored or exchanged: make the database follow the history the event store holds')
  .option('--yes', 'go on without asking')
  .option('--installation <id>', 'the Installation to follow, where there is a choice')
  .action((options: RestoreOptions) => orOneSentence(async () => (await import('./cli/restore.ts')).restore(options)));

program
  .command('rebuild [read-models...]')
  .description('fill read models anew beside those that serve, without downtime; without a name all of them')
  .action((names: readonly string[]) => orOneSentence(async () => (await import('./cli/rebuild.ts')).rebuildReadModels(names)));

program
  .command('admin')
  .description('accounts of people, on the host of a server that may run')
  .command('reset-password')
  .description('write a new random password to a file in the data folder (admin.json for the first administrator), and end the sessions of the account')
  .option('--email <email>', 'the account; without it the first administrator')
  .action((options: ResetPasswordOptions) => orOneSentence(async () => (await import('./cli/admin.ts')).resetPassword(options)));

program
  .command('events')
  .description('the event history as a whole')
  .command('copy')
  .description('copy the history of an Installation into another event store; interrupted, it goes on where it stopped')
  .option('--from <url>', 'esdb://… or postgresql://…; by default the event store of the settings')
  .requiredOption('--to <url>', 'esdb://… or postgresql://…')
  .option('--database <url>', 'a database that shall follow the copy: its read models are rebuilt')
  .option('--installation <id>', 'the Installation to copy, where the source holds several')
  .action((options: EventsCopyOptions) => orOneSentence(async () => (await import('./cli/events-copy.ts')).eventsCopy(options)));

addIamCommands(program, orOneSentence);

await program.parseAsync();
