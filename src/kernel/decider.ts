/** The decider: command in, events or a refusal out. No clock, no randomness, no promises. */
import type { Envelope } from './event.ts';
import { Refusal } from './errors.ts';

/** A fact, named in the past tense. */
export interface Message<T extends string = string, D = object> {
  readonly type: T;
  readonly data: D;
}

export type Decision<E> = readonly E[] | Refusal;

/** Three pure functions: where we begin, what a command leads to, what an event changes. */
export interface Decider<S, C, E extends Message> {
  readonly initial: S;
  readonly decide: (state: S, command: C) => Decision<E>;
  /** Never refuses and never validates: the past happened. */
  readonly evolve: (state: S, event: E, envelope: Envelope) => S;
}

export const isRefusal = <E>(decision: Decision<E>): decision is Refusal => decision instanceof Refusal;
