/** What the benches share: real servers, PostgreSQL's with durable commits, on either event store; rates, and medians of interleaved rounds. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Pool } from 'pg';
import type { EventStore } from '../../src/event-store/event-store.ts';
import { createEventstoredbEventStore } from '../../src/event-store/eventstoredb.ts';
import { createPostgresEventStore } from '../../src/event-store/postgres.ts';
import { startEmbedded } from '../../src/postgres/embedded.ts';
import { migrate } from '../../src/postgres/migrate.ts';
import { startProgram } from './program.ts';

/** One line of the bench table: a rate beside its yardstick of the same run. */
export interface Row {
  readonly name: string;
  readonly unit: string;
  readonly value: number;
  readonly yardstick: string;
  readonly yardstickValue: number;
  readonly ratio: number;
  /** The ratio the product aims for, where it names one. */
  readonly aim?: number;
}

/** Whether a bench only shows that it runs, in one round on little data; its figures mean nothing. */
export const quick = process.argv.includes('--quick');

/** The event stores that are measured. The loopback one writes to no disk: its figures are those of our client and the protocol. */
export const storeNames = ['PostgreSQL', 'EventStoreDB, loopback'] as const;
export type StoreName = (typeof storeNames)[number];

export interface Stores {
  /** The database. */
  readonly url: string;
  /** Settings of a server on database and event store. */
  readonly env: Readonly<Record<string, string>>;
  /** Opens the event store; the pool is one of the database. */
  openEventStore(pool: Pool): EventStore;
}

/** Runs a measurement on a migrated database and an event store of its own, with the settings of the product. */
export const withStores = async <T>(store: StoreName, use: (stores: Stores) => Promise<T>): Promise<T> => {
  await using stack = new AsyncDisposableStack();
  const dataDir = await mkdtemp(join(tmpdir(), 'exuvia-bench-'));
  stack.defer(() => rm(dataDir, { recursive: true }));
  const { url, stop } = await startEmbedded({ dataDir });
  stack.defer(() => stop());
  await migrate(url);
  const env = { PORT: '0', OCC_DATABASE_URL: url, EXUVIA_LOG_LEVEL: 'error' };
  if (store === 'PostgreSQL') return await use({ url, env, openEventStore: (pool) => createPostgresEventStore({ pool, url }) });
  // In a process of its own, as a server is.
  const server = await startProgram(join(import.meta.dirname, 'loopback-eventstoredb.ts'), [], {});
  stack.defer(() => server.stop());
  return await use({ url, env: { ...env, OCC_EVENTSTORE_URL: server.origin }, openEventStore: () => createEventstoredbEventStore({ url: server.origin }) });
};

/** How often per second the callers get their step done, all at once, for `durationMs`. */
export const rate = async (steps: readonly (() => Promise<unknown>)[], durationMs: number): Promise<number> => {
  const begin = performance.now();
  let done = 0;
  await Promise.all(
    steps.map(async (step) => {
      while (performance.now() < begin + durationMs) {
        await step();
        done += 1;
      }
    }),
  );
  return (done * 1_000) / (performance.now() - begin);
};

/** Runs the measurements in turn, round after round, and gives the median of each: the machine's moods meet all alike. */
export const interleaved = async (rounds: number, measurements: readonly (() => Promise<number>)[]): Promise<number[]> => {
  const results: number[][] = measurements.map(() => []);
  for (let round = 0; round < rounds; round += 1)
    for (const [index, measurement] of measurements.entries()) results[index]!.push(await measurement());
  return results.map((numbers) => numbers.sort((a, b) => a - b)[numbers.length >> 1]!);
};
