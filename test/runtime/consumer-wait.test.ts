/** Waiting for one's own write, with the leader in this process, in another one, and nowhere. */
import { afterEach, beforeEach, expect, it } from 'vitest';
import type { EventStore } from '../../src/event-store/event-store.ts';
import { createReads } from '../../projections/index.ts';
import { checkpointChannel } from '../../src/runtime/consumer-checkpoint.ts';
import { listen, type Notifications } from '../../src/runtime/notifications.ts';
import { createReadYourWrite } from '../../src/runtime/read-your-write.ts';
import { productConsumers, startConsumers, until } from '../support/consumers.ts';
import { createDatabase, type TestDatabase } from '../support/database.ts';
import { createInMemoryEventStore } from '../support/in-memory-event-store.ts';
import { writeHistory } from '../support/write-history.ts';

let database: TestDatabase;
let store: EventStore;
let notifications: Notifications;

beforeEach(async () => {
  database = await createDatabase();
  store = createInMemoryEventStore();
  notifications = listen(database.url, [checkpointChannel]);
});
afterEach(() => notifications.close());

/** Longer than a test may last, so that no wait ends by its limit. */
const unlimitedMs = 120_000;

const created = (namespaceId: string) => ({ type: 'NamespaceCreated', data: { namespaceId, name: namespaceId } });

it('scenario 15: a write is read back by whoever waited for it, also from another process', async () => {
  const history = writeHistory(store);
  const reads = createReads(database.pool);
  const here = createReadYourWrite(database.pool, productConsumers, notifications, unlimitedMs);
  const elsewhere = createReadYourWrite(database.pool, productConsumers, notifications, unlimitedMs);
  const consumers = startConsumers(database, store, { onBatch: here.note });
  await until('a leader', () => consumers.state.leading.length === productConsumers.length);
  for (const [index, waiting] of [here, elsewhere, here, elsewhere].entries()) {
    const position = await history.append(`namespace-ns_${index}`, created(`ns_${index}`));
    await waiting.waitFor(position, { work: true });
    expect((await reads.namespaces.byIds([`ns_${index}`])).rows).toHaveLength(1);
    expect((await reads.deployments.standings([`namespace:ns_${index}:ready`])).size).toBe(1);
  }
  await consumers.stop();
});

it('scenario 15: without a projector the wait ends by its limit, without an error and without a connection', async () => {
  const history = writeHistory(store);
  const waiting = createReadYourWrite(database.pool, productConsumers, notifications);
  const position = await history.append('namespace-ns_1', created('ns_1'));
  const begun = performance.now();
  const waits = Array.from({ length: 50 }, () => waiting.waitFor(position));
  await until('the pool is idle while they wait', () => database.pool.totalCount > 0 && database.pool.idleCount === database.pool.totalCount);
  expect(database.pool.totalCount).toBe(1);
  await Promise.all(waits);
  expect(performance.now() - begun).toBeGreaterThan(900);
  await waiting.waitFor(null);
});

it('scenario 15: with the sagas behind, only those who admitted work wait for them', async () => {
  const history = writeHistory(store);
  const waiting = createReadYourWrite(database.pool, productConsumers, notifications, unlimitedMs);
  const readModels = startConsumers(database, store, { consumers: productConsumers.filter(({ role }) => role === 'read-model') });
  const position = await history.append('namespace-ns_1', created('ns_1'));
  let worked = false;
  const work = waiting.waitFor(position, { work: true }).then(() => (worked = true));
  await waiting.waitFor(position);
  expect(worked).toBe(false);
  const sagas = startConsumers(database, store, { consumers: productConsumers.filter(({ role }) => role === 'saga') });
  await work;
  await Promise.all([readModels.stop(), sagas.stop()]);
});
