/**
 * An event consumer: something in PostgreSQL that follows the whole history, such as a read model or a saga.
 * Each has a name and a version, and with them its own checkpoint and its own leadership, so that builds
 * of different versions feed their own side by side. (architecture sections 4 and 5, failure scenarios 16 and 17)
 */
import type { ClientBase } from 'pg';
import type { Position } from '../event-store/event-store.ts';
import type { Message } from '../kernel/decider.ts';
import type { Envelope } from '../kernel/event.ts';

/** An event as handlers receive it. Times come from `envelope.occurredAt`, never from a clock. */
export interface Delivered<D = object> {
  readonly type: string;
  readonly data: D;
  readonly envelope: Envelope;
  readonly position: Position;
  /** Without the Installation prefix, for example `agent-agt_…`. */
  readonly stream: string;
  /** First word of the stream name, for example `agent`. */
  readonly kind: string;
  /** The metadata as stored, for those who keep it. */
  readonly metadata: string;
}

/** What is known of an event that this build cannot read. */
export interface Unread {
  readonly id: string;
  readonly type: string;
  readonly position: Position;
  readonly stream: string;
  readonly kind: string;
  readonly revision: number;
  /** As stored; may be anything. */
  readonly metadata: string;
}

/** What an event's handler is, by event type; a type without a handler passes unread. */
export type Handlers<E extends Message, Result> = {
  readonly [T in E['type']]?: (delivered: Delivered<Extract<E, { readonly type: T }>['data']>) => readonly Result[];
};

/** The events of one transaction as a consumer collects and then writes them. */
export interface ConsumerBatch {
  /** Takes an event in. Whatever it throws parks the event's stream. */
  add(delivered: Delivered): void;
  /**
   * Takes in that there is an event which cannot be read, for a consumer that leaves no gap. Its stream is parked all
   * the same, so that the event is driven again; those behind it need not wait, because each stands for itself.
   */
  mark?(unread: Unread): void;
  /** Writes what the events taken in lead to, inside the caller's transaction. */
  write(client: ClientBase): Promise<void>;
}

export interface ConsumerId {
  readonly name: string;
  /** Raised whenever the shape or the meaning of what is written changes. */
  readonly version: number;
}

export interface Consumer extends ConsumerId {
  readonly role: 'read-model' | 'saga';
  /** Kinds of streams it follows, for example `agent`; undefined: all. */
  readonly streams: ReadonlySet<string> | undefined;
  /** Whether events of this type matter to it. */
  handles(type: string): boolean;
  /** Creates its tables where they are missing. */
  prepare(client: ClientBase): Promise<void>;
  /** Statements that give its readers what filling did without, each of which may run twice; run before it first says that it stands at the end. */
  readonly completion?: readonly string[];
  begin(): ConsumerBatch;
  /** A consumer that fills a second table from nothing and can take this one's place. Sagas have none. */
  readonly shadow?: ShadowConsumer;
}

export interface ShadowConsumer extends Consumer {
  /** Removes what an interrupted rebuild has left. */
  discard(client: ClientBase): Promise<void>;
  /** Gives its table the name of the live one, which goes. */
  takeOver(client: ClientBase): Promise<void>;
}
