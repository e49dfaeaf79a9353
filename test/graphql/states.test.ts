/** What a subscription sends, when: judged when it is sent, nothing missed before it listens, and nothing once the process drains. (iam-auth-audit 8.4) */
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import type { Context } from '../../schema/index.ts';
import { itemsOf, statesOf } from '../../schema/states.ts';
import { forbidden } from '../../src/iam/authorizer.ts';
import { until } from '../support/until.ts';

beforeEach(() => void vi.useFakeTimers({ toFake: ['performance'] }));
afterEach(() => void vi.useRealTimers());

const settled = () => new Promise((resolve) => setImmediate(resolve));

const atOnce = 3;

/** A subscription to numbers that are appended; nobody is told when they are. */
const subscribed = async (numbers: number[]) => {
  const closing = new AbortController();
  let isPermitted = true;
  let last = 0;
  const renewCaller = () => (isPermitted ? Promise.resolve({}) : Promise.reject(forbidden()));
  let tick = () => {};
  const every = (_: number, listener: () => void) => ((tick = listener), () => {});
  let hasEnded = false;
  const context = { caller: {}, renewCaller, every, closing: closing.signal, ended: () => (hasEnded = true) } as unknown as Context;
  const items = await itemsOf<number>(context, {
    round: () => Promise.resolve(numbers.filter((number) => number > last).slice(0, atOnce)),
    subscribe: () => () => {},
    atOnce,
    sending: (number) => {
      last = number;
    },
  });
  const iterator = items[Symbol.asyncIterator]();
  return { next: async () => (await iterator.next()) as IteratorResult<number, undefined>, revoke: () => (isPermitted = false), drain: () => closing.abort(), tick: () => tick(), hasEnded: () => hasEnded };
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

it('a client that takes nothing is judged all the same, and left alone while it may read', async () => {
  const { next, revoke, tick, hasEnded } = await subscribed([1, 2, 3]);
  expect(await next()).toEqual({ done: false, value: 1 });
  for (let count = 0; count < 3; count++) {
    tick();
    await settled();
  }
  expect(hasEnded()).toBe(false);
  expect(await next()).toEqual({ done: false, value: 2 });
  revoke();
  tick();
  await until('the end', hasEnded, (ended) => ended);
});

it('a state that was read but not taken yet is not sent twice, nor is one left out', async () => {
  let state = 1;
  let changed = () => {};
  const context = { caller: {}, renewCaller: () => Promise.resolve({}), every: () => () => {}, closing: new AbortController().signal, ended: () => {} } as unknown as Context;
  const states = await statesOf(context, () => Promise.resolve(state), (listener) => ((changed = listener), () => {}));
  const iterator = states[Symbol.asyncIterator]();
  expect((await iterator.next()).value).toBe(1);
  const second = iterator.next();
  changed();
  state = 2;
  changed();
  expect((await second).value).toBe(2);
});
