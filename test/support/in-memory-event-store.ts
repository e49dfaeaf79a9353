/** The event store of tests that need no server: one array of events, honest by the contract suite. */
import { checkAppend } from '../../src/event-store/check-append.ts';
import { noStream, StoreUnavailable, WrongExpectedRevision } from '../../src/event-store/event-store.ts';
import type { EventStore, Page, Position, StoredEvent } from '../../src/event-store/event-store.ts';
import { createBell, follow } from '../../src/event-store/follow.ts';

/** What is stored; several stores opened on one log are several processes on one server. */
export interface Log {
  readonly events: StoredEvent[];
  readonly streams: Map<string, StoredEvent[]>;
  readonly appended: ReturnType<typeof createBell>;
}

export const createLog = (): Log => ({ events: [], streams: new Map(), appended: createBell() });

const positionOf = (index: number): Position => String(index + 1).padStart(8, '0') as Position;

/** How many events there are up to a position. */
const countUpTo = (position: Position): number => {
  if (!/^\d{8}$/.test(position)) throw new RangeError(`${position} is not a position of this store`);
  return Number(position);
};

/** Opens an event store on a log, by default one of its own. */
export const createInMemoryEventStore = (log: Log = createLog()): EventStore => {
  const closing = new AbortController();

  const readAll = async (after: Position | null, streamPrefix: string, limit: number): Promise<Page> => {
    const start = after === null ? 0 : countUpTo(after);
    const examined = log.events.slice(start, start + limit);
    return {
      events: examined.filter(({ stream }) => stream.startsWith(streamPrefix)),
      position: examined.at(-1)?.position ?? after,
      end: examined.length < limit,
    };
  };
  const readStream: EventStore['readStream'] = async (stream, fromRevision) => (log.streams.get(stream) ?? []).slice(fromRevision);

  return {
    async append(stream, expectedRevision, events) {
      checkAppend(stream, expectedRevision, events);
      if (closing.signal.aborted) throw new StoreUnavailable('The event store is closed');
      const stored = log.streams.get(stream) ?? [];
      const tail = stored.length + noStream;
      const revision = expectedRevision + events.length;
      if (expectedRevision !== tail) {
        const resent = events.every(({ id }, index) => stored[expectedRevision + 1 + index]?.id === id);
        if (!resent) throw new WrongExpectedRevision(stream, expectedRevision);
        return { revision, position: stored[revision]!.position };
      }
      const added = events.map(
        ({ id, type, data, metadata }, index): StoredEvent =>
          ({ id, type, data, metadata, stream, revision: tail + 1 + index, position: positionOf(log.events.length + index) }),
      );
      log.events.push(...added);
      log.streams.set(stream, [...stored, ...added]);
      log.appended.ring();
      return { revision, position: added.at(-1)!.position };
    },
    readStream,
    readStreams: (requests) => Promise.all(requests.map(({ stream, fromRevision }) => readStream(stream, fromRevision))),
    readAll: (after, { streamPrefix }, limit) => readAll(after, streamPrefix, limit),
    readAt: async (position) => log.events[Number(position) - 1],
    subscribe: (after, { streamPrefix }, { limit, signal }) =>
      follow((position) => readAll(position, streamPrefix, limit), log.appended, after, {
        signal: AbortSignal.any([signal, closing.signal]),
        pollMs: 5_000,
      }),
    head: async ({ streamPrefix }) => log.events.findLast(({ stream }) => stream.startsWith(streamPrefix))?.position ?? null,
    async close() {
      closing.abort();
    },
  };
};
