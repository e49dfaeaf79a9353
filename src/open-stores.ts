/**
 * Opens the two stores that settings name: the PostgreSQL database, embedded or not, and the event store, whose adapter
 * its URL chooses; and looks at what runs on their host. What server and command line share.
 */
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import type { Pool } from 'pg';
import { listChildren } from './compute/process/children.ts';
import type { Config } from './config.ts';
import { StoreUnavailable, type EventStore } from './event-store/event-store.ts';
import { createPostgresEventStore } from './event-store/postgres.ts';
import { Fault } from './kernel/errors.ts';
import { createDatabaseClock } from './postgres/clock.ts';
import { findEmbedded, startEmbedded } from './postgres/embedded.ts';
import { lockFolder } from './postgres/folder-lock.ts';
import { migrate } from './postgres/migrate.ts';
import { openPool } from './postgres/pool.ts';
import { createStoreIdentityRow, findInstallation } from './postgres/store-identity-row.ts';
import type { Clock } from './runtime/clock.ts';
import { createStreams, type Streams } from './runtime/streams.ts';
import { createRecognition } from './store-identity/recognition.ts';
import type { Log } from './telemetry/logger.ts';

export interface Database {
  /** May hold a password: never log it. */
  readonly url: string;
  readonly pool: Pool;
}

/** Shorter than browsers wait for an answer. */
const answerTimeoutMs = 10_000;

const withoutCredentials = (url: string): string => url.replace(/\/\/[^/@]*@/, '//');

/** Brings a database to the shape of this build. @throws Fault that names it when it cannot be reached */
const reach = async (url: string, name: string): Promise<void> => {
  try {
    await migrate(url);
  } catch (error) {
    if (error instanceof Fault) throw error;
    throw new Fault(`${name} cannot be reached: ${(error as Error).message}`, { cause: error });
  }
};

/** A server of the operator's own, brought to the shape of this build. The pool is closed with the stack. */
export const openDatabaseAt = async (
  url: string,
  stack: AsyncDisposableStack,
  { max = 10, name = `The database ${withoutCredentials(url)}`, onError = (): void => {} }: { readonly max?: number; readonly name?: string; readonly onError?: (error: Error) => void } = {},
): Promise<Database> => {
  await reach(url, name);
  const pool = openPool({ url, max, answerTimeoutMs, onError });
  stack.defer(() => pool.end());
  return { url, pool };
};

/**
 * The database of the settings: a real server, or the embedded one on the data folder. Either way the folder is ours
 * alone until the stack is disposed.
 * @throws Fault whose one sentence names the folder in use, or the database that cannot be reached
 */
export const openDatabase = async (
  { databaseUrl, dataDir, poolSize }: Config,
  log: Log,
  stack: AsyncDisposableStack,
): Promise<Database & { /** Settled when the embedded server has ended. */ readonly ended: Promise<Error> }> => {
  const options = { max: poolSize, onError: (error: Error) => log.warn({ error }, 'an idle connection broke') };
  if (databaseUrl === undefined) {
    const server = await startEmbedded({ dataDir, log: (line) => log.debug({ line }, 'postgres') });
    stack.defer(() => server.stop());
    const database = await openDatabaseAt(server.url, stack, { ...options, name: 'The embedded database' });
    return { ...database, ended: server.ended.then(() => new Fault('The embedded PostgreSQL server has ended')) };
  }
  await mkdir(dataDir, { recursive: true, mode: 0o700 }).catch((error: Error) => {
    throw new Fault(`The data folder ${dataDir} cannot be made: ${error.message}`);
  });
  stack.defer(await lockFolder(dataDir));
  const name = `The database ${withoutCredentials(databaseUrl)} named by OCC_DATABASE_URL`;
  return { ...(await openDatabaseAt(databaseUrl, stack, { ...options, name })), ended: new Promise(() => undefined) };
};

/**
 * The event store at a URL: `esdb://…` or `esdb+discover://…` for EventStoreDB, `postgresql://…` for the tables of a database.
 * A database that is open already lends its pool. Closed with the stack.
 * @param installationId whose streams the store must be set to keep whole; without it only rights are looked at
 * @throws Fault for a URL of neither, for a store that cannot be reached, and for one that lacks a right or would truncate a stream
 */
export const openEventStore = async (url: string, stack: AsyncDisposableStack, database?: Database, installationId?: string): Promise<EventStore> => {
  const name = `The event store ${withoutCredentials(url)}`;
  const open = async (): Promise<{ readonly store: EventStore; readonly check: () => Promise<unknown> }> => {
    if (/^esdb(\+discover)?:\/\//.test(url)) {
      const store = (await import('./event-store/eventstoredb.ts')).createEventstoredbEventStore({ url });
      return { store, check: () => store.check(installationId === undefined ? undefined : prefixOf(installationId)) };
    }
    if (!/^postgres(ql)?:\/\//.test(url)) throw new Fault('The URL of an event store begins with esdb:// or postgresql://');
    const store = createPostgresEventStore(database?.url === url ? database : await openDatabaseAt(url, stack, { name }));
    return { store, check: () => store.readStream('exuvia', 0) };
  };
  const { store, check } = await open();
  stack.defer(() => store.close());
  await check().catch((error: unknown) => {
    if (!(error instanceof StoreUnavailable)) throw error;
    throw new Fault(`${name} cannot be reached`, { cause: error });
  });
  return store;
};

export const prefixOf = (installationId: string): string => `${installationId}.`;

/** Streams of one Installation, by the clock of a database. */
export const openStreams = async (store: EventStore, { pool }: Database, installationId: string, stack: AsyncDisposableStack): Promise<{ readonly streams: Streams; readonly clock: Clock }> => {
  const clock = await createDatabaseClock(pool);
  stack.defer(() => clock.close());
  return { streams: createStreams({ store, clock, prefix: prefixOf(installationId) }), clock };
};

export interface HostStores {
  readonly database: Database;
  readonly store: EventStore;
  readonly installationId: string;
  readonly streams: Streams;
  readonly clock: Clock;
}

/**
 * What a command of the operator works on: the stores of the settings beside the server that runs on them or, while none
 * runs, by themselves, with the embedded database started for as long as the stack lasts.
 * @throws Fault for stores that cannot be reached, hold no Installation, or do not know each other
 */
export const openHostStores = async (config: Config, log: Log, stack: AsyncDisposableStack): Promise<HostStores> => {
  const running = config.databaseUrl ?? (await findEmbedded(config.dataDir));
  const database = running === undefined ? await openDatabase(config, log, stack) : await openDatabaseAt(running, stack, { max: 2, name: `The database of ${config.dataDir}` });
  const installationId = await findInstallation(database.pool);
  if (installationId === undefined) throw new Fault('There is no Installation yet: start the server first');
  const store = await openEventStore(config.eventstoreUrl ?? database.url, stack, database);
  const opened = await openStreams(store, database, installationId, stack);
  const recognition = createRecognition({ streams: opened.streams, store, row: createStoreIdentityRow(database.pool), installationId, onWentBack: async () => {}, endSince: async () => 0, onHandedOver: () => {} });
  await recognition.check();
  return { database, store, installationId, ...opened };
};

/** Where the Compute driver of this host keeps its Agents. */
export const computeRoot = ({ dataDir }: Config): string => join(dataDir, 'compute');

/** Agents that run on this host, whether or not any history knows them. */
export const runningAgents = (config: Config): Promise<readonly string[]> => listChildren(computeRoot(config));
