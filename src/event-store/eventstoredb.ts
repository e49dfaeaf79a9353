/**
 * The EventStoreDB event store, over gRPC with the vendor's client. Every call goes to the leader, with credentials
 * and a deadline of its own; data and metadata are the bytes of the append. (architecture section 3)
 */
import { checkAppend } from './check-append.ts';
import { StoreUnavailable } from './event-store.ts';
import type { EventStore } from './event-store.ts';
import { createAppend } from './eventstoredb/appends.ts';
import { connect } from './eventstoredb/connection.ts';
import { createReads } from './eventstoredb/reads.ts';
import { retrying } from './eventstoredb/retrying.ts';
import { createStartCheck, type StartCheck } from './eventstoredb/start-check.ts';
import { subscribe } from './eventstoredb/subscription.ts';

export interface EventstoredbEventStoreOptions {
  /** `esdb://user:password@host:2113,…?tls=…`; without TLS the user may be absent. */
  readonly url: string;
  /** How long an append or a read is tried before it is `StoreUnavailable`. 5 s. */
  readonly budgetMs?: number;
  /** How long the server may take for one attempt of an append, or between two messages of a read. 2.5 s. */
  readonly callTimeoutMs?: number;
  /** How long a subscription trusts silence before it begins again at the leader. 10 s. */
  readonly pollMs?: number;
}

export interface EventstoredbEventStore extends EventStore {
  /**
   * Looks whether the server gives the rights and keeps the history that the product takes. With the prefix of an
   * Installation the settings of its streams are examined as well.
   * @throws Fault whose one sentence names the right, or the stream and its setting; StoreUnavailable
   */
  readonly check: StartCheck;
}

/**
 * An event store in EventStoreDB 23.10 or later; it is reached at the first call.
 * A stream that was deleted or truncated there is a Fault for whoever reads it. (failure scenario 30)
 */
export const createEventstoredbEventStore = ({
  url,
  budgetMs = 5_000,
  callTimeoutMs = 2_500,
  pollMs = 10_000,
}: EventstoredbEventStoreOptions): EventstoredbEventStore => {
  const connection = connect(url);
  const reads = createReads(connection, { silenceMs: callTimeoutMs, attempt: (call) => retrying(budgetMs, call) });
  /** For those that repeat themselves. */
  const singleReads = createReads(connection, { silenceMs: callTimeoutMs, attempt: (call) => call() });
  const append = createAppend(connection, singleReads, { budgetMs, callTimeoutMs });
  const closing = new AbortController();
  const appending = new Set<Promise<unknown>>();

  const requireOpen = (): void => {
    if (closing.signal.aborted) throw new StoreUnavailable('The event store is closed');
  };
  const readStream: EventStore['readStream'] = async (stream, fromRevision) => {
    requireOpen();
    return reads.readStream(stream, fromRevision);
  };

  return {
    async append(stream, expectedRevision, events) {
      checkAppend(stream, expectedRevision, events);
      requireOpen();
      const appended = append(stream, expectedRevision, events);
      appending.add(appended);
      return appended.finally(() => appending.delete(appended));
    },
    check: createStartCheck(connection, reads, { budgetMs, silenceMs: callTimeoutMs }),
    readStream,
    readStreams: (requests) => Promise.all(requests.map(({ stream, fromRevision }) => readStream(stream, fromRevision))),
    async readAll(after, filter, limit) {
      requireOpen();
      return reads.readAll(after, filter, limit);
    },
    async readAt(position) {
      requireOpen();
      return reads.readAt(position);
    },
    async head(filter) {
      requireOpen();
      return reads.head(filter);
    },
    subscribe: (after, filter, { limit, signal }) =>
      subscribe(connection, singleReads.readAt, after, filter, { limit, signal: AbortSignal.any([signal, closing.signal]), pollMs }),
    async close() {
      closing.abort();
      await Promise.allSettled(appending);
      connection.close();
    },
  };
};
