/** Writes events to a store as the product does, for tests of those who read them. */
import { v7 as uuid } from 'uuid';
import { productEvents } from '../../projections/events.ts';
import type { EventStore, Position } from '../../src/event-store/event-store.ts';
import { canonicalText } from '../../src/kernel/canonical.ts';
import type { Message } from '../../src/kernel/decider.ts';
import type { Actor, EventBytes, Metadata } from '../../src/kernel/event.ts';

export const prefix = 'ins_11111111-1111-4111-8111-111111111111-';
export const actor: Actor = { principalId: 'prn_author', kind: 'principal' };

const firstMs = Date.parse('2026-01-01T00:00:00.000Z');

export interface HistoryWriter {
  /** Appends one event at the end of a stream (name without prefix) and answers its position. */
  append(stream: string, event: Message, metadata?: Partial<Metadata>): Promise<Position>;
  /** Appends an event as a build with other schemas would. */
  appendRaw(stream: string, type: string, data: object, metadata?: Partial<Metadata>): Promise<Position>;
  /** Time of the nth event written, from 0. */
  timeOf(index: number): string;
}

/** Each event is one second after the one before. */
export const writeHistory = (store: EventStore): HistoryWriter => {
  const revisions = new Map<string, number>();
  let written = 0;
  const timeOf = (index: number): string => new Date(firstMs + index * 1_000).toISOString();

  const appendBytes = async (stream: string, bytes: EventBytes): Promise<Position> => {
    const expected = revisions.get(stream) ?? -1;
    const { position, revision } = await store.append(prefix + stream, expected, [bytes]);
    revisions.set(stream, revision);
    return position;
  };
  const appendRaw: HistoryWriter['appendRaw'] = (stream, type, data, more) => {
    const metadata: Metadata = {
      schema: 1,
      actor,
      requestId: null,
      correlationId: 'req_test',
      causationId: null,
      occurredAt: timeOf(written++),
      policyRevision: null,
      previousHash: null,
      ...more,
    };
    return appendBytes(stream, { id: uuid(), type, data: canonicalText(data), metadata: canonicalText(metadata) });
  };
  return {
    append: (stream, event, more) => appendRaw(stream, event.type, JSON.parse(productEvents.encode(event).data) as object, more),
    appendRaw,
    timeOf,
  };
};
