/**
 * Guesses beyond the limits stand in line: one at a time for each account and place they come from, so that many at once
 * are no faster than one after the other, and a line of an attacker's is none of the account's owner. (iam-auth-audit 6)
 */
import { Refusal } from '../kernel/errors.ts';
import { placeOf } from './place.ts';

/** How many may wait behind the one whose turn it is: a person has one, and a line of more is somebody's who guesses. */
const longestLine = 2;

export interface Turns {
  /** Runs when those before it have ended. @throws Refusal RATE_LIMITED at once when the line is full */
  inTurn<T>(email: string, address: string, waitMs: number, run: () => Promise<T>): Promise<T>;
}

export const tooManyFailed = (waitMs: number): Refusal =>
  new Refusal('RATE_LIMITED', 'Too many sign-ins have failed', { retryAfterSeconds: Math.ceil(waitMs / 1_000) });

export const createTurns = (): Turns => {
  const lines = new Map<string, { readonly last: Promise<unknown>; readonly length: number }>();

  return {
    inTurn: async (email, address, waitMs, run) => {
      const key = `${placeOf(address)}\n${email}`;
      const { last, length } = lines.get(key) ?? { last: Promise.resolve(), length: 0 };
      if (length > longestLine) throw tooManyFailed(waitMs);
      const turn = last.then(run);
      const ended = turn.then(
        () => undefined,
        () => undefined,
      );
      lines.set(key, { last: ended, length: length + 1 });
      try {
        return await turn;
      } finally {
        const line = lines.get(key)!;
        if (line.length === 1) lines.delete(key);
        else lines.set(key, { ...line, length: line.length - 1 });
      }
    },
  };
};
