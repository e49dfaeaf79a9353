/** The `exuvia` command as a user runs it: through its launcher, in a process tree of its own, judged by what it prints and how it ends. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { createInterface } from 'node:readline';


const command = join(import.meta.dirname, '../../bin/exuvia.js');

export type Environment = Readonly<Record<string, string>>;

export interface Ended {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

export interface LaunchOptions {
  readonly cwd?: string;
  /** Put before the command line, for example to drop privileges. */
  readonly as?: readonly string[];
}

/** Settings of whoever runs the tests would be settings of the server. */
const inherited = Object.fromEntries(Object.entries(process.env).filter(([name]) => !/^(OCC_|EXUVIA_|PORT$|HOST$)/.test(name)));

const launch = (args: readonly string[], env: Environment, { cwd, as = [] }: LaunchOptions) => {
  const [program = '', ...rest] = [...as, process.execPath, command, ...args];
  const child = spawn(program, rest, { env: { ...inherited, ...env }, stdio: ['ignore', 'pipe', 'pipe'], ...(cwd !== undefined && { cwd }) });
  const said = { stdout: '', stderr: '' };
  for (const name of ['stdout', 'stderr'] as const) child[name].setEncoding('utf8').on('data', (text: string) => (said[name] += text));
  const ended = once(child, 'close').then(([code]): Ended => ({ code: code as number | null, ...said }));
  return { child, said, ended };
};

const childrenOf = async (parent: number): Promise<readonly number[]> => {
  const pids = (await readdir('/proc')).filter((name) => /^\d+$/.test(name));
  const statuses = await Promise.all(pids.map((pid) => readFile(`/proc/${pid}/status`, 'utf8').catch(() => '')));
  return pids.filter((_, index) => statuses[index]?.includes(`\nPPid:\t${parent}\n`)).map(Number);
};

/** Runs a command to its end. */
export const runToEnd = (args: readonly string[], env: Environment, options: LaunchOptions = {}): Promise<Ended> => launch(args, env, options).ended;

export interface LaunchedServer {
  readonly origin: string;
  /** Of the launcher, which is the process that a shell started. */
  readonly pid: number;
  /** What it has printed so far. */
  readonly said: { readonly stdout: string; readonly stderr: string };
  /** Sends SIGTERM and waits for the end. */
  stop(): Promise<Ended>;
  /** Ends launcher and server as a power cut would. */
  killAll(): Promise<void>;
}

/** Starts a server and waits for its ready line. @throws Error with what it said instead */
export const startServer = async (env: Environment, options: LaunchOptions = {}): Promise<LaunchedServer> => {
  const { child, said, ended } = launch(['serve'], env, options);
  const [line] = (await Promise.race([
    once(createInterface(child.stdout), 'line'),
    ended.then(({ code, stderr }) => Promise.reject(new Error(`The server ended with ${code}: ${stderr}`))),
  ])) as [string];
  const origin = /^exuvia ready on (http:\/\/\S+)$/.exec(line)?.[1];
  if (origin === undefined) throw new Error(`Expected the ready line, but the server said: ${line}`);
  return {
    origin,
    pid: child.pid!,
    said,
    stop: () => {
      child.kill('SIGTERM');
      return ended;
    },
    killAll: async () => {
      for (const pid of [child.pid!, ...(await childrenOf(child.pid!))]) process.kill(pid, 'SIGKILL');
      await ended;
    },
  };
};
