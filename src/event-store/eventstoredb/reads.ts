/** Reads of one stream and of the order over all streams, always at the leader. (failure scenarios 13, 20, 30) */
import { BACKWARDS, END, START } from '@eventstore/db-client';
import { Fault } from '../../kernel/errors.ts';
import type { EventStore, Filter, Page, Position, StoredEvent } from '../event-store.ts';
import type { Connection } from './connection.ts';
import { isInvalidPosition } from './failure.ts';
import { logPosition } from './position.ts';
import { eventOf, messages } from './responses.ts';

/** Most events that one page examines for those its filter keeps. */
const pageWindow = 500;

/** Whether a filter keeps a stream's events; the store's own streams never count. */
export const keeps = ({ streamPrefix }: Filter, { stream }: StoredEvent): boolean => stream.startsWith(streamPrefix) && !stream.startsWith('$');

export interface Reads extends Pick<EventStore, 'readStream' | 'readAll' | 'readAt' | 'head'> {
  /** The events at these revisions, as many of them as there are. */
  readRange(stream: string, fromRevision: number, count: number): Promise<readonly StoredEvent[]>;
}

/** Each read is one call and one attempt. `silenceMs` is how long the server may leave it without a message. */
export const createReads = ({ client, options }: Connection, silenceMs: number): Reads => {
  /** Undefined when there is no such stream. */
  const readForwards = async (stream: string, fromRevision: number, maxCount: number): Promise<readonly StoredEvent[] | undefined> => {
    const events: StoredEvent[] = [];
    for await (const message of messages(client.readStream(stream, { ...options, fromRevision: BigInt(fromRevision), maxCount }), silenceMs)) {
      if (message.hasStreamNotFound()) return undefined;
      const event = eventOf(message);
      if (event !== undefined) events.push(event);
    }
    return events;
  };

  /** A stream that was deleted softly looks like one that never was, except for its settings. */
  const refuseDeleted = async (stream: string): Promise<void> => {
    for await (const message of messages(client.readStream(`$$${stream}`, { ...options, fromRevision: END, direction: BACKWARDS, maxCount: 1 }), silenceMs)) {
      const settings = eventOf(message);
      if (settings !== undefined && '$tb' in (JSON.parse(settings.data) as object)) throw new Fault(`Stream ${stream} was deleted in the event store`);
    }
  };

  /** The store's order from a position on, that one included, or backwards before it. */
  const all = async function* (fromPosition: ReturnType<typeof logPosition> | typeof START | typeof END, direction: 'forwards' | 'backwards', maxCount?: number) {
    const call = client.readAll({ ...options, fromPosition: fromPosition ?? START, direction, ...(maxCount === undefined ? {} : { maxCount }) });
    for await (const message of messages(call, silenceMs)) {
      const event = eventOf(message);
      if (event !== undefined) yield event;
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
    /** The client sends no filter with a read, so foreign events come along and are dropped here. */
    async readAll(after, filter, limit): Promise<Page> {
      const from = after === null ? START : logPosition(after);
      if (from === undefined) throw new RangeError(`${after} is not a position of this store`);
      const events: StoredEvent[] = [];
      const most = Math.max(limit, pageWindow) + 1;
      let position = after;
      let examined = 0;
      try {
        for await (const event of all(from, 'forwards', most)) {
          examined += 1;
          if (event.position === after) continue;
          position = event.position;
          if (keeps(filter, event)) events.push(event);
          if (events.length === limit) return { events, position, end: false };
        }
      } catch (error) {
        throw isInvalidPosition(error) ? new RangeError(`${after} is not a position of this store`) : error;
      }
      return { events, position, end: examined < most };
    },
    async readAt(position) {
      const from = logPosition(position);
      if (from === undefined) return undefined;
      try {
        for await (const event of all(from, 'forwards', 1)) return event.position === position ? event : undefined;
      } catch (error) {
        if (!isInvalidPosition(error)) throw error;
      }
      return undefined;
    },
    async head(filter): Promise<Position | null> {
      for await (const event of all(END, 'backwards')) if (keeps(filter, event)) return event.position;
      return null;
    },
  };
};
