/** Timers that a test lets run. */
import { setImmediate } from 'node:timers/promises';
import type { Timers } from '../../src/http/native-admin/lease.ts';

interface Waiting {
  readonly ms: number;
  readonly listener: () => void;
}

export const manualTimers = (): Timers & {
  /** Lets everything that repeats happen once. */
  fire(): Promise<void>;
  /** Lets the time of everything that waits run out. */
  expire(): Promise<void>;
  /** How many repeat. */
  running(): number;
  /** How many wait. */
  waiting(): number;
  /** How often things repeat, and how long they may take, in milliseconds. */
  readonly seen: { readonly every: Set<number>; readonly after: Set<number> };
} => {
  const repeating = new Set<Waiting>();
  const once = new Set<Waiting>();
  const seen = { every: new Set<number>(), after: new Set<number>() };
  const keep = (set: Set<Waiting>, waiting: Waiting) => {
    set.add(waiting);
    return () => void set.delete(waiting);
  };
  const call = (set: Set<Waiting>) => {
    for (const { listener } of [...set]) listener();
    return setImmediate();
  };
  return {
    every: (ms, listener) => (seen.every.add(ms), keep(repeating, { ms, listener })),
    after: (ms, listener) => (seen.after.add(ms), keep(once, { ms, listener })),
    fire: () => call(repeating),
    expire: () => call(once),
    running: () => repeating.size,
    waiting: () => once.size,
    seen,
  };
};
