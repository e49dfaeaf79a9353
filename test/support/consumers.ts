/** The consumers of the product over a test database, and waiting for where they are. */
import { projections, productEvents } from '../../projections/index.ts';
import type { EventStore, Position } from '../../src/event-store/event-store.ts';
import type { Codec } from '../../src/kernel/codec.ts';
import { runConsumers, type ConsumersOptions, type RunningConsumers } from '../../src/runtime/consumer-runner.ts';
import type { Consumer } from '../../src/runtime/consumer.ts';
import { projector } from '../../src/runtime/projector.ts';
import { sagaProcessor } from '../../src/runtime/saga-processor.ts';
import { work } from '../../src/sagas/index.ts';
import type { TestDatabase } from './database.ts';
import { prefix } from './write-history.ts';

export const productConsumers: readonly Consumer[] = [...projections.map(projector), sagaProcessor(work)];

export interface TestConsumers extends RunningConsumers {
  readonly faults: readonly unknown[];
  stop(): Promise<void>;
}

/** Runs consumers until stopped; tries to lead every 50 ms. */
export const startConsumers = (
  { url }: TestDatabase,
  store: EventStore,
  { codec = productEvents, ...more }: Partial<ConsumersOptions> & { readonly codec?: Codec } = {},
): TestConsumers => {
  const stopping = new AbortController();
  const faults: unknown[] = [];
  const running = runConsumers({
    url,
    store,
    prefix,
    codec,
    consumers: productConsumers,
    signal: stopping.signal,
    onFault: (error) => faults.push(error),
    retryMs: 50,
    ...more,
  });
  return {
    get state() {
      return running.state;
    },
    retryParked: () => running.retryParked(),
    done: running.done,
    faults,
    stop: () => {
      stopping.abort();
      return running.done;
    },
  };
};

/** Waits until a condition holds. @throws naming what was expected, after 30 s */
export const until = async (expected: string, condition: () => boolean | Promise<boolean>): Promise<void> => {
  const deadline = performance.now() + 30_000;
  while (!(await condition())) {
    if (performance.now() > deadline) throw new Error(`Within 30 s this did not happen: ${expected}`);
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
};

/** Waits until consumers (all of the product by default) have passed a position. */
export const untilPassed = ({ pool }: TestDatabase, position: Position, names: readonly string[] = productConsumers.map(({ name }) => name)): Promise<void> =>
  until(`${names.join(', ')} at ${position}`, async () => {
    const { rows } = await pool.query<{ passed: number }>(
      'select count(*)::integer as passed from consumer_checkpoint where name = any($1) and position >= $2',
      [names, position],
    );
    return rows[0]?.passed === names.length;
  });
