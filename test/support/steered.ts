/** A server process of the product whose worker a test may hold at a named point. */
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { newDataDir, readKey } from './app.ts';
import { createClient, type Client } from './client.ts';
import { createDatabase, type TestDatabase } from './database.ts';
import type { Environment } from './server.ts';
import type { Steering } from './steered-server.ts';

export interface SteeredServer {
  readonly database: TestDatabase;
  readonly dataDir: string;
  /** With the bootstrap service key. */
  readonly client: Client;
  /** Holds the next pass that comes to this point, from when the promise resolves on. */
  holdNext(point: string): Promise<{ readonly reached: Promise<unknown>; readonly release: () => void }>;
  close(): Promise<void>;
}

/** Starts every role on a free port, on a database and a data folder of its own. */
export const startSteered = async (env: Environment): Promise<SteeredServer> => {
  const [database, dataDir] = [await createDatabase(), await newDataDir()];
  const settings = { PORT: '0', EXUVIA_DATA_DIR: dataDir, OCC_DATABASE_URL: database.url, EXUVIA_LOG_LEVEL: 'fatal', ...env };
  const child = fork(join(import.meta.dirname, 'steered-server.ts'), { env: { ...process.env, ...settings }, execPath: process.execPath, execArgv: [] });
  const ended = once(child, 'exit');
  const told = (): Promise<Steering> =>
    Promise.race([once(child, 'message').then(([steering]) => steering as Steering), ended.then(([code]) => Promise.reject(new Error(`The server ended with ${code}`)))]);
  const { origin } = await told();
  return {
    database,
    dataDir,
    client: createClient(origin!, await readKey(dataDir)),
    holdNext: async (hold) => {
      const heard = told();
      child.send({ hold } satisfies Steering);
      await heard;
      return { reached: told(), release: () => void child.send({ go: true } satisfies Steering) };
    },
    close: async () => {
      child.kill('SIGTERM');
      await ended;
      await rm(dataDir, { recursive: true, force: true });
    },
  };
};
