/**
 * The way to the event store for everybody who decides: open until the history turns out not to be the one this
 * database has followed, closed for good from then on. What would be decided would belong to neither. (failure scenario 5)
 */
import { StoreUnavailable, type EventStore } from '../event-store/event-store.ts';

export interface HistoryGate {
  /** Streams and appends answer `StoreUnavailable` once the gate is closed. */
  readonly store: EventStore;
  /** Why the gate is closed, in one sentence; undefined while it is open. */
  readonly mismatch: string | undefined;
  /** The first reason stays. */
  close(mismatch: string): void;
}

export const createHistoryGate = (store: EventStore): HistoryGate => {
  let mismatch: string | undefined;
  const open = async (): Promise<EventStore> => {
    if (mismatch !== undefined) throw new StoreUnavailable(mismatch);
    return store;
  };
  return {
    store: {
      ...store,
      append: async (stream, expectedRevision, events) => (await open()).append(stream, expectedRevision, events),
      readStream: async (stream, fromRevision) => (await open()).readStream(stream, fromRevision),
      readStreams: async (requests) => (await open()).readStreams(requests),
    },
    get mismatch() {
      return mismatch;
    },
    close: (reason) => {
      mismatch ??= reason;
    },
  };
};
