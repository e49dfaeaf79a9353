/** What the tests of the EventStoreDB adapter share: a loopback server for each test, stores on it, and somebody else who uses it. */
import { EventStoreDBClient } from '@eventstore/db-client';
import { randomUUID } from 'node:crypto';
import { afterEach, beforeEach } from 'vitest';
import type { EventStore, Page, Position, StoredEvent } from '../../../src/event-store/event-store.ts';
import { createEventstoredbEventStore } from '../../../src/event-store/eventstoredb.ts';
import type { EventstoredbEventStore, EventstoredbEventStoreOptions } from '../../../src/event-store/eventstoredb.ts';
import { startEventstoredb } from './server.ts';
import type { Eventstoredb, EventstoredbOptions } from './server.ts';

export interface World {
  readonly server: Eventstoredb;
  /** The prefix of this test's streams, and one of them. */
  readonly prefix: string;
  readonly stream: string;
  /** Aborted when the test ends. */
  readonly abort: AbortController;
  /** A store on the server, closed when the test ends. */
  open(options?: Partial<EventstoredbEventStoreOptions>): EventstoredbEventStore;
  /** Another server, closed when the test ends. */
  startAnother(): Promise<Eventstoredb>;
  /** The vendor's client as it comes. */
  client(url?: string): EventStoreDBClient;
  /** Appends as somebody else who uses the same server. */
  appendForeign(to: string, count?: number): void;
  subscribe(store: EventStore, after?: Position | null, limit?: number): AsyncIterable<Page>;
}

/** Prepares a {@link World} before each test of the file and takes it down after it. */
export const useWorld = (options: EventstoredbOptions = {}): World => {
  let server: Eventstoredb;
  let prefix: string;
  let abort: AbortController;
  const closing: (() => Promise<unknown>)[] = [];

  const start = async (options: EventstoredbOptions = {}): Promise<Eventstoredb> => {
    const started = await startEventstoredb(options);
    closing.push(() => started.close());
    return started;
  };
  beforeEach(async () => {
    prefix = `ins_${randomUUID()}/`;
    abort = new AbortController();
    server = await start(options);
  });
  afterEach(async () => {
    abort.abort();
    for (const close of closing.splice(0).reverse()) await close();
  });

  return {
    get server() {
      return server;
    },
    get prefix() {
      return prefix;
    },
    get stream() {
      return `${prefix}s`;
    },
    get abort() {
      return abort;
    },
    open(more = {}) {
      const store = createEventstoredbEventStore({ url: server.url, ...more });
      closing.push(() => store.close());
      return store;
    },
    startAnother: () => start(),
    client: (url = server.url) => EventStoreDBClient.connectionString(url),
    appendForeign(to, count = 1) {
      for (let n = 0; n < count; n += 1)
        server.log.append(to, 'any', [{ id: randomUUID(), type: 'Foreign', contentType: 'application/json', data: '', metadata: '' }]);
    },
    subscribe: (store, after = null, limit = 10) => store.subscribe(after, { streamPrefix: prefix }, { limit, signal: abort.signal }),
  };
};

export const revisions = (events: readonly StoredEvent[]): number[] => events.map(({ revision }) => revision);
/** The numbers from 0 to below this one. */
export const upTo = (count: number): number[] => Array.from({ length: count }, (_, n) => n);
