/** The whole product in this process, on a database and a data folder of its own. */
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { startApplication, type Application, type Seams } from '../../src/compose.ts';
import { readConfig } from '../../src/config.ts';
import { createLogger, type Log } from '../../src/telemetry/logger.ts';
import { createClient, type Client } from './client.ts';
import { createDatabase, type TestDatabase } from './database.ts';
import { consoleOrigin } from './sign-in.ts';

export interface TestApplication extends Application {
  readonly origin: string;
  readonly database: TestDatabase;
  readonly dataDir: string;
  /** The bootstrap service key. */
  readonly key: string;
  /** With the bootstrap service key. */
  readonly client: Client;
}

export interface TestApplicationOptions {
  readonly database?: TestDatabase;
  readonly dataDir?: string;
  readonly env?: Readonly<Record<string, string>>;
  readonly seams?: Seams;
  /** Without one, nothing is logged. */
  readonly log?: Log;
  /** A key for the client; without it the one of the first start in this data folder. */
  readonly key?: string;
}

export const readKey = async (dataDir: string): Promise<string> => {
  const { data } = JSON.parse(await readFile(join(dataDir, 'service-key.json'), 'utf8')) as { data: { key: string } };
  return data.key;
};

export const newDataDir = (): Promise<string> => mkdtemp(join(tmpdir(), 'exuvia-test-'));

/** Starts every role on a free port. A folder it made itself goes with it. */
export const startTestApplication = async (options: TestApplicationOptions = {}): Promise<TestApplication> => {
  const database = options.database ?? (await createDatabase());
  const dataDir = options.dataDir ?? (await newDataDir());
  const config = readConfig({ PORT: '0', EXUVIA_DATA_DIR: dataDir, OCC_DATABASE_URL: database.url, EXUVIA_LOG_LEVEL: 'silent', EXUVIA_TRUSTED_ORIGINS: consoleOrigin, ...options.env });
  const application = await startApplication(config, options.log ?? createLogger({ level: config.logLevel }), options.seams);
  const origin = application.origin!;
  const key = options.key ?? (await readKey(dataDir));
  const close = async () => {
    await application.close();
    if (options.dataDir === undefined) await rm(dataDir, { recursive: true, force: true });
  };
  return { ...application, origin, database, dataDir, key, client: createClient(origin, key), close };
};
