/** Reads of one stream and of the order over all streams, always at the leader. (failure scenarios 13, 20, 30) */
import { BACKWARDS, END, FORWARDS, START } from '@eventstore/db-client';
import type { Direction } from '@eventstore/db-client';
import { Fault } from '../../kernel/errors.ts';
import type { EventStore, Filter, Page, Position, StoredEvent } from '../event-store.ts';
import type { Connection } from './connection.ts';
import { isInvalidPosition } from './failure.ts';
import { logPosition } from './position.ts';
import { eventOf, messages, settingsIn } from './responses.ts';

/** Most events that one call asks for. */
const largestChunk = 512;
/** Most events that one page examines for those its filter keeps. */
const pageWindow = 1_000;

/** Whether a filter keeps a stream's events; the store's own streams never count. */
export const keeps = ({ streamPrefix }: Filter, { stream }: StoredEvent): boolean => stream.startsWith(streamPrefix) && !stream.startsWith('$');

export interface Reads extends Pick<EventStore, 'readStream' | 'readAll' | 'readAt' | 'head'> {
  /** The events at these revisions, as many of them as there are. */
  readRange(stream: string, fromRevision: number, count: number): Promise<readonly StoredEvent[]>;
}

interface ReadOptions {
  /** How long the server may leave a call without a message. */
  readonly silenceMs: number;
  /** Makes one call, or several until one is answered. */
  readonly attempt: <T>(call: () => Promise<T>) => Promise<T>;
}

type LogPosition = NonNullable<ReturnType<typeof logPosition>>;

export const createReads = ({ client, options }: Connection, { silenceMs, attempt }: ReadOptions): Reads => {
  /** Undefined when there is no such stream. */
  const readForwards = (stream: string, fromRevision: number, maxCount: number): Promise<readonly StoredEvent[] | undefined> =>
    attempt(async () => {
      const events: StoredEvent[] = [];
      for await (const message of messages(client.readStream(stream, { ...options, fromRevision: BigInt(fromRevision), maxCount }), silenceMs)) {
        if (message.hasStreamNotFound()) return undefined;
        const event = eventOf(message);
        if (event !== undefined) events.push(event);
      }
      return events;
    });

  /** A stream that was deleted softly looks like one that never was, except for its settings. */
  const refuseDeleted = (stream: string): Promise<void> =>
    attempt(async () => {
      for await (const message of messages(client.readStream(`$$${stream}`, { ...options, fromRevision: END, direction: BACKWARDS, maxCount: 1 }), silenceMs)) {
        const settings = eventOf(message);
        if (settings !== undefined && '$tb' in settingsIn(settings)) throw new Fault(`Stream ${stream} was deleted in the event store`);
      }
    });

  const readChunk = (fromPosition: LogPosition | typeof START | typeof END, direction: Direction, maxCount: number): Promise<readonly StoredEvent[]> =>
    attempt(async () => {
      const events: StoredEvent[] = [];
      for await (const message of messages(client.readAll({ ...options, fromPosition, direction, maxCount }), silenceMs)) {
        const event = eventOf(message);
        if (event !== undefined) events.push(event);
      }
      return events;
    });

  /**
   * The store's order from a place on; forwards the event at that place comes along. The client sends no filter with
   * a read, so a reader may pass over much foreign history: the calls begin small and grow.
   */
  const inOrder = async function* (from: LogPosition | typeof START | typeof END, direction: Direction, firstCount: number): AsyncGenerator<StoredEvent, void, undefined> {
    let chunk: readonly StoredEvent[] = [];
    for (let count = firstCount; ; count = Math.min(2 * count, largestChunk)) {
      const last = chunk.at(-1);
      chunk = await readChunk(last === undefined ? from : logPosition(last.position)!, direction, count);
      yield* chunk[0]?.position === last?.position ? chunk.slice(1) : chunk;
      if (chunk.length < count) return;
    }
  };

  return {
    async readStream(stream, fromRevision) {
      const events = await readForwards(stream, fromRevision, Number.MAX_SAFE_INTEGER);
      if (events === undefined) await refuseDeleted(stream);
      else if (fromRevision === 0 && events.length === 0) throw new Fault(`Stream ${stream} was truncated in the event store`);
      for (const [index, { revision }] of (events ?? []).entries())
        if (revision !== fromRevision + index) throw new Fault(`Stream ${stream} has a gap at revision ${fromRevision + index}`);
      return events ?? [];
    },
    readRange: async (stream, fromRevision, count) => (await readForwards(stream, fromRevision, count)) ?? [],
    async readAll(after, filter, limit): Promise<Page> {
      const from = after === null ? START : logPosition(after);
      if (from === undefined) throw new RangeError(`${after} is not a position of this store`);
      const events: StoredEvent[] = [];
      let position = after;
      let examined = 0;
      try {
        for await (const event of inOrder(from, FORWARDS, limit + 1)) {
          if (event.position === after) continue;
          position = event.position;
          examined += 1;
          if (keeps(filter, event)) events.push(event);
          if (events.length === limit || examined === Math.max(limit, pageWindow)) return { events, position, end: false };
        }
      } catch (error) {
        throw isInvalidPosition(error) ? new RangeError(`${after} is not a position of this store`) : error;
      }
      return { events, position, end: true };
    },
    async readAt(position) {
      const from = logPosition(position);
      if (from === undefined) return undefined;
      try {
        const [event] = await readChunk(from, FORWARDS, 1);
        return event?.position === position ? event : undefined;
      } catch (error) {
        if (!isInvalidPosition(error)) throw error;
        return undefined;
      }
    },
    async head(filter): Promise<Position | null> {
      for await (const event of inOrder(END, BACKWARDS, 2)) if (keeps(filter, event)) return event.position;
      return null;
    },
  };
};
