/** The product's event stores, for suites that must hold on each of them: defined once, run on all. */
import { afterAll, beforeAll, describe, it } from 'vitest';
import { createEventstoredbEventStore } from '../../src/event-store/eventstoredb.ts';
import { createInstallationRow } from '../../src/postgres/private-rows.ts';
import { readToEnd } from '../contracts/event-store.ts';
import type { History } from '../end-to-end/stored-history.ts';
import type { TestDatabase } from './database.ts';
import type { Environment } from './server.ts';
import { startEventstoredb, type Eventstoredb } from './eventstoredb/server.ts';

export interface StoreUnderTest {
  /** The settings by which a server uses it. To be read inside of tests and hooks. */
  readonly env: Environment;
  /** What it holds of the Installation in a database. */
  history(database: TestDatabase): History;
}

/** A server that others may use as well: a new database brings a new Installation, and that a prefix of its own. */
const eventstoredb = (url: () => string): StoreUnderTest => ({
  get env() {
    return { OCC_EVENTSTORE_URL: url() };
  },
  history: ({ pool }) => async () => {
    const store = createEventstoredbEventStore({ url: url() });
    const streamPrefix = `${await createInstallationRow(pool).id()}.`;
    const { events } = await readToEnd(store, null, { streamPrefix }, 1_000);
    await store.close();
    return events;
  },
});

const realUrl = process.env['OCC_TEST_EVENTSTORE_URL'];

/** Defines a suite on PostgreSQL, on the loopback EventStoreDB, and on the real one that `OCC_TEST_EVENTSTORE_URL` names. */
export const onEachEventStore = (suite: (store: StoreUnderTest) => void): void => {
  describe('on PostgreSQL', () => suite({ env: {}, history: ({ pool }) => pool }));
  describe('on EventStoreDB, loopback', () => {
    let server: Eventstoredb;
    beforeAll(async () => {
      server = await startEventstoredb();
    });
    afterAll(() => server.close());
    suite(eventstoredb(() => server.url));
  });
  if (realUrl === undefined) it.skipIf(true)('on EventStoreDB, real: OCC_TEST_EVENTSTORE_URL names no server', () => {});
  else describe('on EventStoreDB, real', () => suite(eventstoredb(() => realUrl)));
};
