/**
 * A subscription that outlives its calls: whenever one ends, fails or falls silent, the next begins after the last
 * event delivered. It reports no place but that of a delivered event: what the server says of events it passed over
 * runs ahead of the consumer and proves nothing about a log that was rewound. (failure scenarios 5, 6)
 */
import { START, streamNameFilter } from '@eventstore/db-client';
import type { ReadResp } from '@eventstore/db-client/generated/streams_pb.js';
import { setTimeout as delay } from 'node:timers/promises';
import { Fault } from '../../kernel/errors.ts';
import { StoreUnavailable } from '../event-store.ts';
import type { EventStore, Filter, Page, Position, StoredEvent } from '../event-store.ts';
import type { Connection } from './connection.ts';
import { failure, isInvalidPosition } from './failure.ts';
import { logPosition } from './position.ts';
import { keeps } from './reads.ts';
import { asReceived, endCall, eventOf } from './responses.ts';
import { retryMs } from './retrying.ts';

/** Most messages that wait in memory for a slow consumer. */
const bufferLimit = 500;
/** While there is history to bring, how long a page that is not full waits for more. */
const lingerMs = 20;
/** A checkpoint for so many times 32 events passed over: a sign of life while the server searches foreign history. */
const checkpointInterval = 32;

interface SubscriptionOptions {
  readonly limit: number;
  readonly signal: AbortSignal;
  /** How long silence is trusted before the call is made again, at whoever leads then. */
  readonly pollMs: number;
}

/** @throws Fault when the store no longer holds the last event delivered, RangeError for a position of another store */
export async function* subscribe(
  connection: Connection,
  readAt: EventStore['readAt'],
  after: Position | null,
  filter: Filter,
  options: SubscriptionOptions,
): AsyncGenerator<Page, void, undefined> {
  const { signal } = options;
  let last: StoredEvent | undefined;
  let saidEnd = false;
  while (!signal.aborted) {
    const from = last?.position ?? after;
    try {
      if (last !== undefined) await recognise(readAt, last);
      for await (const { events: received, end } of call(connection, from, filter, options)) {
        const events: readonly StoredEvent[] = received.filter((event) => keeps(filter, event) && event.position > (last?.position ?? after ?? ''));
        if (events.length === 0 && (!end || saidEnd)) continue;
        last = events.at(-1) ?? last;
        saidEnd = end;
        yield { events, position: last?.position ?? after, end };
      }
    } catch (error) {
      if (isInvalidPosition(error)) throw new RangeError(`${from} is not a position of this store`);
      const failed = failure(error);
      if (!(failed instanceof StoreUnavailable)) throw failed;
      await delay(retryMs, undefined, { signal }).catch(() => {});
    }
  }
}

/** A log that was rewound would be followed in silence from beyond its end. */
const recognise = async (readAt: EventStore['readAt'], { id, position }: StoredEvent): Promise<void> => {
  const found = await readAt(position);
  if (found?.id !== id) throw new Fault(`The event store no longer holds event ${id} at position ${position}: it was restored to an older state, or is another one`);
};

/** The server's own filter: it keeps foreign events off the wire. */
const serverFilter = ({ streamPrefix }: Filter) =>
  streamPrefix === '' ? streamNameFilter({ regex: '^[^$]', checkpointInterval }) : streamNameFilter({ prefixes: [streamPrefix], checkpointInterval });

/** What one call brings, for as long as it is not silent. */
async function* call(
  { client, options }: Connection,
  from: Position | null,
  filter: Filter,
  { limit, signal, pollMs }: SubscriptionOptions,
): AsyncGenerator<Pick<Page, 'events' | 'end'>, void, undefined> {
  const fromPosition = from === null ? START : logPosition(from);
  if (fromPosition === undefined) throw new RangeError(`${from} is not a position of this store`);
  const subscription = client.subscribeToAll({ ...options, fromPosition, filter: serverFilter(filter) }, { highWaterMark: Math.min(limit, bufferLimit) });
  const stream = asReceived(subscription);
  let failed: Error | undefined;
  let wake = (_woken: boolean): void => {};
  const ring = (): void => wake(true);
  stream.on('readable', ring);
  stream.on('error', (error: Error) => {
    failed = error;
    ring();
  });
  stream.on('end', () => {
    failed ??= new StoreUnavailable('EventStoreDB ended a subscription');
    ring();
  });
  signal.addEventListener('abort', ring);
  /** Whether anything happened within so many milliseconds. */
  const news = async (ms: number): Promise<boolean> => {
    const timer = setTimeout(() => wake(false), ms);
    const woken = await new Promise<boolean>((resolve) => (wake = resolve));
    clearTimeout(timer);
    return woken;
  };

  let live = false;
  try {
    while (!signal.aborted) {
      const events: StoredEvent[] = [];
      for (let caughtUp = false; events.length < limit; ) {
        const message = stream.read() as ReadResp | null;
        if (message !== null) {
          if (message.hasCaughtUp()) live = caughtUp = true;
          if (message.hasFellBehind()) live = false;
          const event = eventOf(message);
          if (event !== undefined) events.push(event);
        } else if (failed !== undefined) throw failed;
        else if (signal.aborted) return;
        else if (live && (caughtUp || events.length > 0)) break;
        else if (!(await news(events.length > 0 ? lingerMs : pollMs))) {
          if (events.length === 0) return;
          break;
        }
      }
      yield { events, end: live && stream.readableLength === 0 };
    }
  } finally {
    signal.removeEventListener('abort', ring);
    endCall(subscription);
  }
}
