/** Programs that a bench runs beside itself: started, waited for by the line they print, and stopped. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';

export interface Program {
  /** The first URL in the line it printed. */
  readonly origin: string;
  stop(): Promise<void>;
}

/** Starts a TypeScript file under this Node and waits for its first line. */
export const startProgram = async (file: string, args: readonly string[], env: Readonly<Record<string, string>>): Promise<Program> => {
  const child = spawn(process.execPath, [file, ...args], { env: { ...process.env, ...env }, stdio: ['ignore', 'pipe', 'inherit'] });
  const ended = once(child, 'exit');
  const lines = createInterface(child.stdout);
  const first = await Promise.race([once(lines, 'line').then(([line]) => String(line)), ended.then(() => undefined)]);
  const origin = first === undefined ? undefined : /\w+:\/\/\S+/.exec(first)?.[0];
  if (origin === undefined) throw new Error(`${file} ended before it was ready`);
  return {
    origin,
    stop: async () => {
      child.kill('SIGTERM');
      await ended;
    },
  };
};
