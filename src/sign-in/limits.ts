/**
 * Slows the guessing of passwords: attempts that failed are counted for a minute, per email and per address of a client;
 * beyond a limit the next one waits, longer each time. One table per process. (iam-auth-audit 6)
 */
import { createHmac, randomBytes } from 'node:crypto';
import { placeOf } from './place.ts';

const windowMs = 60_000;
const limitPerEmail = 10;
const limitPerAddress = 20;
const longestWaitMs = 8_000;
const tableSize = 4_096;
/** Attempts beyond a limit after which waits grow no longer. */
const growth = 4;

export interface Attempt {
  /** How long it has to wait before its password is looked at: 0 within the limits, then 1, 2, 4 and 8 seconds. */
  readonly waitMs: number;
  /** The password was right, or nobody could tell: the attempt spends nothing. */
  refund(): void;
}

export interface SignInLimits {
  /** Counts an attempt from its beginning, so that many at once are many. */
  begin(email: string, clientAddress: string | undefined): Attempt;
}

/** `onLimit` hears, once until it is quiet again, that a limit was passed: with a digest that tells keys apart and is no email. */
export const createSignInLimits = ({ now, onLimit }: { readonly now: () => number; readonly onLimit: (limited: { readonly by: string; readonly digest: string }) => void }): SignInLimits => {
  const secret = randomBytes(32);
  /** Times of counted attempts by digest, the longest untouched first. */
  const attempts = new Map<string, number[]>();

  /** The key to let go of, so that nobody has a guessed email forgotten by guessing at thousands of others. */
  const leastGuessed = (at: number): string => {
    let least = { key: '', guesses: Infinity };
    for (const [key, times] of attempts) {
      const guesses = times.filter((time) => time > at - windowMs).length;
      if (guesses < least.guesses) least = { key, guesses };
      if (guesses <= 1) break;
    }
    return least.key;
  };

  const count = (by: 'email' | 'address', value: string, limit: number): Attempt => {
    const key = createHmac('sha256', secret).update(`${by}:${value}`).digest('base64url');
    const at = now();
    const recent = (attempts.get(key) ?? []).filter((time) => time > at - windowMs).slice(-(limit + growth));
    const beyond = recent.length - limit;
    attempts.delete(key);
    if (attempts.size >= tableSize) attempts.delete(leastGuessed(at));
    attempts.set(key, [...recent, at]);
    if (beyond === 0) onLimit({ by, digest: key.slice(0, 12) });
    return {
      waitMs: beyond < 0 ? 0 : Math.min(longestWaitMs, 1_000 * 2 ** beyond),
      refund: () => {
        const times = attempts.get(key);
        const index = times?.indexOf(at) ?? -1;
        if (index >= 0) times!.splice(index, 1);
      },
    };
  };

  return {
    begin: (email, clientAddress) => {
      const counted = [count('email', email, limitPerEmail), ...(clientAddress === undefined ? [] : [count('address', placeOf(clientAddress), limitPerAddress)])];
      return { waitMs: Math.max(...counted.map(({ waitMs }) => waitMs)), refund: () => counted.forEach(({ refund }) => refund()) };
    },
  };
};
