/** The EventStoreDB event store: the contract, on the loopback server and on a real one where there is one. */
import { afterAll, it } from 'vitest';
import { createEventstoredbEventStore } from '../../src/event-store/eventstoredb.ts';
import { describeEventStore } from '../contracts/event-store.ts';
import { startEventstoredb } from '../support/eventstoredb/server.ts';
import type { Eventstoredb } from '../support/eventstoredb/server.ts';

/** Each of them crosses a wire, and half a dozen conflicts do before it. */
const appendsPerWriter = 8;
let server: Eventstoredb | undefined;
afterAll(() => server?.close());

describeEventStore(
  'EventStoreDB, loopback',
  async () => {
    const { url } = (server = await startEventstoredb());
    return () => createEventstoredbEventStore({ url });
  },
  { appendsPerWriter },
);

const realUrl = process.env.OCC_TEST_EVENTSTORE_URL;

if (realUrl === undefined) it.skipIf(true)('event store: EventStoreDB, real: OCC_TEST_EVENTSTORE_URL names no server', () => {});
else describeEventStore('EventStoreDB, real', () => Promise.resolve(() => createEventstoredbEventStore({ url: realUrl })), { appendsPerWriter });
