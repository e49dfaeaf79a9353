/** The command line as a process of its own, and a server's word on its readiness. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { rm } from 'node:fs/promises';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { newDataDir, startTestApplication, type TestApplication, type TestApplicationOptions } from '../support/app.ts';
import type { TestDatabase } from '../support/database.ts';

const program = fileURLToPath(new URL('../../src/cli.ts', import.meta.url));

export interface Ran {
  readonly code: number | null;
  readonly out: string;
  readonly err: string;
}

/** Runs `exuvia …` to its end. */
export const exuvia = async (args: readonly string[], env: Readonly<Record<string, string>> = {}): Promise<Ran> => {
  const child = spawn(process.execPath, [program, ...args], { env: { PATH: process.env['PATH'], EXUVIA_LOG_LEVEL: 'error', ...env }, stdio: ['ignore', 'pipe', 'pipe'] });
  const [out, err, [code]] = await Promise.all([text(child.stdout), text(child.stderr), once(child, 'close') as Promise<[number | null]>]);
  return { code, out, err };
};

/** Where a server and the command line find the same things. */
export interface Place {
  readonly dataDir: string;
  readonly database: TestDatabase;
  readonly eventstoreUrl: string;
}

export const environmentOf = ({ dataDir, database, eventstoreUrl }: Place): Readonly<Record<string, string>> => ({
  EXUVIA_DATA_DIR: dataDir,
  OCC_DATABASE_URL: database.url,
  OCC_EVENTSTORE_URL: eventstoreUrl,
});

const started = new Set<TestApplication>();

/** Starts a server at a place. */
export const startAt = async ({ dataDir, database, eventstoreUrl }: Place, { env, ...options }: TestApplicationOptions = {}): Promise<TestApplication> => {
  const application = await startTestApplication({ dataDir, database, env: { OCC_EVENTSTORE_URL: eventstoreUrl, ...env }, ...options });
  const running = { ...application, close: () => (started.delete(running) ? application.close() : Promise.resolve()) };
  started.add(running);
  return running;
};

/** Closes what a failed test left running. */
export const closeStarted = async (): Promise<void> => {
  for (const application of [...started]) await application.close();
};

const folders: string[] = [];

/** A data folder that goes after the file's tests. */
export const newFolder = async (): Promise<string> => {
  const folder = await newDataDir();
  folders.push(folder);
  return folder;
};

export const removeFolders = (): Promise<unknown> => Promise.all(folders.splice(0).map((folder) => rm(folder, { recursive: true })));

export const readiness = async ({ origin }: Pick<TestApplication, 'origin'>) => {
  const response = await fetch(`${origin}/readyz`);
  const { degraded } = (await response.json()) as { readonly degraded: readonly string[] };
  return { status: response.status, degraded };
};

export const countEvents = async ({ pool }: TestDatabase): Promise<number> =>
  (await pool.query<{ count: number }>('select count(*)::integer as count from event')).rows[0]!.count;
