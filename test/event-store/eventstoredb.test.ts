/** The EventStoreDB event store: the contract, on the loopback server and on a real one where there is one. */
import { afterAll, describe, it } from 'vitest';
import { createEventstoredbEventStore } from '../../src/event-store/eventstoredb.ts';
import { describeEventStore } from '../contracts/event-store.ts';
import { startEventstoredb } from '../support/eventstoredb/server.ts';
import type { Eventstoredb } from '../support/eventstoredb/server.ts';

const appendsPerWriter = 8;
let server: Eventstoredb | undefined;
afterAll(() => server?.close());

describeEventStore('EventStoreDB, loopback', async () => {
  const { url } = (server = await startEventstoredb());
  return () => createEventstoredbEventStore({ url });
}, { appendsPerWriter });

const realUrl = process.env.OCC_TEST_EVENTSTORE_URL;

if (realUrl !== undefined) describeEventStore('EventStoreDB, real', () => Promise.resolve(() => createEventstoredbEventStore({ url: realUrl })), { appendsPerWriter });
else
  describe.skipIf(realUrl === undefined)('event store: EventStoreDB, real', () => {
    it('skipped because OCC_TEST_EVENTSTORE_URL names no server', () => {});
  });
