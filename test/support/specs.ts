/** Given events, when command, then exactly these events or this refusal. */
import { expect } from 'vitest';
import { isRefusal, type Decider, type Message } from '../../src/kernel/decider.ts';
import type { Code } from '../../src/kernel/errors.ts';
import type { Actor, Envelope } from '../../src/kernel/event.ts';

export const someone: Actor = { principalId: 'prn_1', kind: 'principal' };

/** The envelope of the event at this revision of a stream. */
export const envelopeAt = (revision: number, more: Partial<Envelope> = {}): Envelope => ({
  id: `event-${revision}`,
  stream: 'stream',
  revision,
  schema: 1,
  actor: someone,
  requestId: null,
  correlationId: 'correlation',
  causationId: null,
  occurredAt: '2026-01-02T03:04:05.678Z',
  policyRevision: null,
  previousHash: null,
  ...more,
});

/** Some events are given with their actor; the others happened for {@link someone}. */
export type Given<E> = E | readonly [event: E, envelope: Partial<Envelope>];

export const fold = <S, C, E extends Message>({ initial, evolve }: Decider<S, C, E>, given: readonly Given<E>[]): S =>
  given.reduce<S>((state, one, revision) => {
    const [event, more] = (Array.isArray(one) ? one : [one, {}]) as [E, Partial<Envelope>];
    return evolve(state, event, envelopeAt(revision, more));
  }, initial);

export const deciderSpec =
  <S, C, E extends Message>(decider: Decider<S, C, E>) =>
  (...given: readonly Given<E>[]) => ({
    state: () => fold(decider, given),
    when: (command: C) => {
      const decision = decider.decide(fold(decider, given), command);
      return {
        then: (...events: readonly E[]) => expect(decision).toStrictEqual(events),
        refused: (code: Code, message?: RegExp) => {
          expect(isRefusal(decision) ? decision.code : decision).toBe(code);
          if (message !== undefined) expect(isRefusal(decision) && decision.message).toMatch(message);
        },
      };
    },
  });
