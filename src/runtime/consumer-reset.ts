/** Makes consumers begin again at the first event: what they derived goes in one transaction, and is derived again up to the last event. (failure scenario 5) */
import type { Client, ClientBase } from 'pg';
import type { Position } from '../event-store/event-store.ts';
import { Fault } from '../kernel/errors.ts';
import { hasPassed, lockNumber } from './consumer-checkpoint.ts';
import { runConsumers, type ConsumersOptions } from './consumer-runner.ts';
import type { Consumer, ConsumerId } from './consumer.ts';
import { tableOf } from './projection.ts';

/** Takes the locks of all consumers for this session. @throws Fault when another process leads one */
export const lockConsumers = async (client: Client, prefix: string, consumers: readonly Consumer[]): Promise<void> => {
  const { rows } = await client.query<{ acquired: boolean }>('select pg_try_advisory_lock(number) as acquired from unnest($1::bigint[]) as number', [
    consumers.map((consumer) => lockNumber(prefix, consumer)),
  ]);
  if (rows.some(({ acquired }) => !acquired)) throw new Fault('A server is at work on this database: stop every process of it first');
};

/** How much of what was derived would go. */
export interface Derived {
  readonly readModels: readonly string[];
  readonly workItems: number;
  readonly checkpoints: number;
}

const tablesOf = async (client: ClientBase, places: readonly ConsumerId[]): Promise<readonly string[]> => {
  const { rows } = await client.query<{ name: string }>('select tablename as name from pg_tables where schemaname = current_schema() and tablename = any($1) order by 1', [
    places.map(tableOf).flatMap((table) => [table, `${table}_rebuild`]),
  ]);
  return rows.map(({ name }) => name);
};

const placesOf = async (client: ClientBase): Promise<readonly ConsumerId[]> => (await client.query<ConsumerId>('select name, version from consumer_checkpoint')).rows;

export const readDerived = async (client: ClientBase): Promise<Derived> => {
  const places = await placesOf(client);
  const { rows } = await client.query<{ items: number }>('select count(*)::integer as items from work_item');
  return { readModels: await tablesOf(client, places), workItems: rows[0]!.items, checkpoints: places.length };
};

/** Forgets what consumers of every build derived: tables, work rows, places and parked streams. To be called in a transaction. */
export const resetConsumers = async (client: ClientBase): Promise<void> => {
  for (const table of await tablesOf(client, await placesOf(client))) await client.query(`drop table ${table}`);
  await client.query('delete from work_item; delete from parked_stream; delete from consumer_checkpoint');
};

/**
 * Runs consumers until all have passed a position.
 * @throws the first thing that interrupts them
 */
export const runConsumersTo = async (position: Position, options: Omit<ConsumersOptions, 'signal' | 'onFault' | 'onTakeOver'>): Promise<void> => {
  const stopping = new AbortController();
  const { promise: passed, resolve, reject } = Promise.withResolvers<void>();
  const behind = new Set(options.consumers.map(({ name }) => name));
  const running = runConsumers({
    ...options,
    signal: stopping.signal,
    onFault: reject,
    onBatch: (batch) => {
      options.onBatch?.(batch);
      for (const { name, checkpoint } of batch.checkpoints) if (hasPassed(checkpoint, position)) behind.delete(name);
      if (behind.size === 0) resolve();
    },
  });
  try {
    await passed;
  } finally {
    stopping.abort();
    await running.done;
  }
};
