/** The history has no gaps: what a build cannot read stands there marked, until one comes that can. (iam-auth-audit 5.5, failure scenarios 7 and 17) */
import { afterEach, expect, it } from 'vitest';
import { historyProjection } from '../../projections/history.ts';
import { createReads, productEvents } from '../../projections/index.ts';
import { Undecodable, type Codec } from '../../src/kernel/codec.ts';
import { tableOf } from '../../src/runtime/projection.ts';
import { startConsumers, untilPassed, type TestConsumers } from '../support/consumers.ts';
import { createDatabase } from '../support/database.ts';
import { createInMemoryEventStore } from '../support/in-memory-event-store.ts';
import { writeHistory } from '../support/write-history.ts';

let consumers: TestConsumers | undefined;
afterEach(() => consumers?.stop());

/** A build from before Namespaces could become ready. */
const older: Codec = {
  ...productEvents,
  decode: (stored) => {
    if (stored.type === 'NamespaceBecameReady') throw new Undecodable('Unknown event type NamespaceBecameReady');
    return productEvents.decode(stored);
  },
};

it('the next build reads what this one has marked, and the streams around it are not held up', async () => {
  const store = createInMemoryEventStore();
  const database = await createDatabase();
  const { history, namespaces } = createReads(database.pool);
  const write = writeHistory(store);
  const page = { from: null, limit: 100 };
  const seen = async () => (await history.list({}, page)).rows.map(({ stream, revision, unreadable, data }) => [stream, revision, unreadable, data]);

  await write.append('namespace-ns_1', { type: 'NamespaceCreated', data: { namespaceId: 'ns_1', name: 'one' } });
  await write.append('namespace-ns_1', { type: 'NamespaceBecameReady', data: { namespaceId: 'ns_1' } });
  await write.append('namespace-ns_1', { type: 'NamespaceDeletionRequested', data: { namespaceId: 'ns_1' } });
  const last = await write.append('namespace-ns_2', { type: 'NamespaceCreated', data: { namespaceId: 'ns_2', name: 'two' } });

  consumers = startConsumers(database, store, { codec: older, batchLimit: 2 });
  await untilPassed(database, last);
  const around = [['namespace-ns_1', 0, false, { namespaceId: 'ns_1', name: 'one' }]] as const;
  const behind = [['namespace-ns_1', 2, false, { namespaceId: 'ns_1' }], ['namespace-ns_2', 0, false, { namespaceId: 'ns_2', name: 'two' }]] as const;
  expect(await seen()).toEqual([...around, ['namespace-ns_1', 1, true, null], ...behind]);
  expect((await history.list({ namespaceId: 'ns_1' }, page)).rows).toHaveLength(3);
  // A read model whose order matters holds the stream back, as before.
  expect((await namespaces.byIds(['ns_1', 'ns_2'])).rows.map(({ id, status }) => [id, status])).toEqual([['ns_1', 'provisioning'], ['ns_2', 'provisioning']]);
  await consumers.retryParked();
  expect((await seen())[1]).toEqual(['namespace-ns_1', 1, true, null]);
  await consumers.stop();

  consumers = startConsumers(database, store);
  const later = await write.append('namespace-ns_2', { type: 'NamespaceBecameReady', data: { namespaceId: 'ns_2' } });
  await untilPassed(database, later);
  expect((await seen())[1]).toEqual(['namespace-ns_1', 1, false, { namespaceId: 'ns_1' }]);
  expect((await database.pool.query('select from parked_stream')).rows).toEqual([]);
});

it('an event whose place is no text is marked as well, and holds up no other stream', async () => {
  const store = createInMemoryEventStore();
  const database = await createDatabase();
  const { history } = createReads(database.pool);
  const write = writeHistory(store);
  await write.appendRaw('store', 'StoreOpened', { storeId: 'one', namespaceId: 5 });
  const last = await write.append('namespace-ns_2', { type: 'NamespaceCreated', data: { namespaceId: 'ns_2', name: 'two' } });
  consumers = startConsumers(database, store);
  await untilPassed(database, last);
  expect((await history.list({}, { from: null, limit: 10 })).rows.map(({ stream, unreadable }) => [stream, unreadable])).toEqual([['store', true], ['namespace-ns_2', false]]);
  expect((await database.pool.query<{ told: string }>(`select name || ': ' || reason as told from parked_stream`)).rows).toEqual([
    { told: `history: The column namespace_id of ${tableOf(historyProjection)} takes no number` },
  ]);
  expect(consumers.faults).toEqual([]);
});
