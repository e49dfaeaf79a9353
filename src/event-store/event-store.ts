/**
 * The event store port: ordered streams of immutable events, and one order over all of them.
 * Both stores of the product and the in-memory one of the tests pass the same contract suite
 * (test/contracts/event-store.ts). (architecture section 3)
 */
import type { EventBytes } from '../kernel/event.ts';

/** An opaque place in the order over all streams. Its text sorts by code units (C collation), never as a number. */
export type Position = string & { readonly __position: true };

/** The revision to expect of a stream that does not exist. The first event has revision 0. */
export const noStream = -1;

export interface StoredEvent extends EventBytes {
  readonly stream: string;
  readonly revision: number;
  readonly position: Position;
}

export interface Appended {
  /** Position of the last event of this append. */
  readonly position: Position;
  /** Revision of the last event of this append. */
  readonly revision: number;
}

/** The stream is not at the expected revision, and the events are not the ones already stored there. */
export class WrongExpectedRevision extends Error {
  override readonly name = 'WrongExpectedRevision';
  readonly stream: string;
  readonly expected: number;

  constructor(stream: string, expected: number) {
    super(`Stream ${stream} is not at revision ${expected}`);
    this.stream = stream;
    this.expected = expected;
  }
}

/** The store did not answer, or not in time; whether an append was stored is unknown. */
export class StoreUnavailable extends Error {
  override readonly name = 'StoreUnavailable';
}

/** The append holds more than {@link maxAppendBytes}; nothing was stored. */
export class AppendTooLarge extends Error {
  override readonly name = 'AppendTooLarge';
}

/** Most stored bytes (data, metadata, type names, UTF-8) of one append, on every adapter. */
export const maxAppendBytes = 1_000_000;

/** Stored bytes of an append as {@link maxAppendBytes} counts them. */
export const appendBytes = (events: readonly EventBytes[]): number =>
  events.reduce(
    (sum, event) => sum + Buffer.byteLength(event.data) + Buffer.byteLength(event.metadata) + Buffer.byteLength(event.type),
    0,
  );

/** Keeps events whose stream begins with the prefix. */
export interface Filter {
  readonly streamPrefix: string;
}

/** A page of the order over all streams. */
export interface Page {
  readonly events: readonly StoredEvent[];
  /** Where the reader now is: the position of the last event examined, kept by the filter or not. Null at the very start. */
  readonly position: Position | null;
  /** Whether the reader was at the end of the store when the page was read. */
  readonly end: boolean;
}

export interface EventStore {
  /**
   * Appends all events or none, at exactly the expected revision. Sending the same ids again at the same
   * revision is a success with the first answer.
   * @throws WrongExpectedRevision, AppendTooLarge, StoreUnavailable (outcome unknown)
   */
  append(stream: string, expectedRevision: number, events: readonly EventBytes[]): Promise<Appended>;
  /** Events of a stream from a revision on, in order; empty when there are none. Never stale behind an acknowledged append. */
  readStream(stream: string, fromRevision: number): Promise<readonly StoredEvent[]>;
  /** {@link readStream} for many streams at the cost of one round trip where the store allows it; answers in order. */
  readStreams(requests: readonly { readonly stream: string; readonly fromRevision: number }[]): Promise<readonly (readonly StoredEvent[])[]>;
  /** The next page after a position (null: from the beginning). No event that commits later has a place before the page's end. */
  readAll(after: Position | null, filter: Filter, limit: number): Promise<Page>;
  /** The event at exactly this position, or undefined: how a checkpoint is recognised again. */
  readAt(position: Position): Promise<StoredEvent | undefined>;
  /**
   * Pages after a position, for ever, woken by appends of any process. Ends without an error when the signal
   * is aborted; survives a store that goes away and comes back. Delivers every event at least once.
   */
  subscribe(after: Position | null, filter: Filter, options: { readonly limit: number; readonly signal: AbortSignal }): AsyncIterable<Page>;
  /** Position of the last event the filter keeps, or null in an empty store. */
  head(filter: Filter): Promise<Position | null>;
  close(): Promise<void>;
}
