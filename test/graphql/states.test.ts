/** What a subscription sends, when: judged when it is sent, nothing missed before it listens, and nothing once the process drains. (iam-auth-audit 8.4) */
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import type { Context } from '../../schema/index.ts';
import { itemsOf } from '../../schema/states.ts';
import { forbidden } from '../../src/iam/authorizer.ts';

beforeEach(() => void vi.useFakeTimers({ toFake: ['performance'] }));
afterEach(() => void vi.useRealTimers());

const atOnce = 3;

/** A subscription to numbers that are appended; nobody is told when they are. */
const subscribed = async (numbers: number[]) => {
  const closing = new AbortController();
  let isPermitted = true;
  let last = 0;
  const renewCaller = () => (isPermitted ? Promise.resolve({}) : Promise.reject(forbidden()));
  const context = { caller: {}, renewCaller, every: () => () => {}, closing: closing.signal } as unknown as Context;
  const items = await itemsOf<number>(context, {
    round: () => Promise.resolve(numbers.filter((number) => number > last).slice(0, atOnce)),
    subscribe: () => () => {},
    atOnce,
    sending: (number) => {
      last = number;
    },
  });
  const iterator = items[Symbol.asyncIterator]();
  return { next: async () => (await iterator.next()) as IteratorResult<number, undefined>, revoke: () => (isPermitted = false), drain: () => closing.abort() };
};

it('a slow client is judged again before it gets what was found for it long ago', async () => {
  const { next, revoke } = await subscribed([1, 2, 3]);
  expect(await next()).toEqual({ done: false, value: 1 });
  revoke();
  vi.advanceTimersByTime(1_000);
  await expect(next()).rejects.toMatchObject({ code: 'FORBIDDEN' });
});

it('a slow client that may still read gets each one once', async () => {
  const { next } = await subscribed([1, 2, 3, 4, 5, 6, 7]);
  const got: unknown[] = [];
  for (let count = 1; count <= 7; count++) {
    got.push((await next()).value);
    vi.advanceTimersByTime(count % 2 === 0 ? 1_000 : 0);
  }
  expect(got).toEqual([1, 2, 3, 4, 5, 6, 7]);
});

it('what comes before anybody listens is sent all the same', async () => {
  const numbers: number[] = [];
  const { next } = await subscribed(numbers);
  numbers.push(1);
  expect(await next()).toEqual({ done: false, value: 1 });
});

it('one that begins while the process drains ends at once', async () => {
  const { next, drain } = await subscribed([1]);
  drain();
  expect((await next()).done).toBe(true);
});
