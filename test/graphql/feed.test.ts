/** The end of the history is read once for all who ask alike, and again after every change. (architecture section 7) */
import { expect, it } from 'vitest';
import { createHistoryFeed } from '../../src/history/feed.ts';
import type { HistoryEventView } from '../../src/history/view.ts';

const feeding = () => {
  const asked: string[] = [];
  const rings = new Set<() => void>();
  let time = 0;
  let found: readonly HistoryEventView[] = [];
  let failure: Error | undefined;
  const feed = createHistoryFeed({
    reads: {
      list: (filter, { from }) => {
        asked.push(`${filter.namespaceId ?? 'all'} ${from}`);
        return failure === undefined ? Promise.resolve({ rows: found, fresh: true }) : Promise.reject(failure);
      },
    },
    changes: { subscribe: (listener) => (rings.add(listener), () => rings.delete(listener)) },
    now: () => time,
  });
  return {
    feed,
    asked,
    watches: () => rings.size,
    ring: () => rings.forEach((listener) => listener()),
    pass: (ms: number) => (time += ms),
    find: (rows: readonly HistoryEventView[]) => (found = rows),
    fail: (error: Error | undefined) => (failure = error),
  };
};

const page = { from: 'last', limit: 2 };
const event = { id: 'next' } as HistoryEventView;

it('is watched once, while anybody listens, and rings for each', () => {
  const { feed, watches, ring } = feeding();
  let heard = 0;
  const ends = [1, 2, 3].map(() => feed.subscribe(() => heard++));
  expect(watches()).toBe(1);
  ring();
  expect(heard).toBe(3);
  for (const end of ends) end();
  expect(watches()).toBe(0);
});

it('is read once between two changes by all who ask alike', async () => {
  const { feed, asked, ring, find } = feeding();
  feed.subscribe(() => {});
  await Promise.all([1, 2, 3].map(() => feed.list({}, page)));
  await feed.list({ namespaceId: 'ns_1' }, page);
  expect(asked).toEqual(['all last', 'ns_1 last']);
  ring();
  find([event]);
  const answers = await Promise.all([1, 2, 3].map(() => feed.list({}, page)));
  expect(answers.map(({ rows }) => rows)).toEqual([[event], [event], [event]]);
  expect(asked).toEqual(['all last', 'ns_1 last', 'all last']);
});

it('is read again after a second, though nobody was told of a change', async () => {
  const { feed, asked, pass } = feeding();
  feed.subscribe(() => {});
  await feed.list({}, page);
  pass(1_000);
  await feed.list({}, page);
  expect(asked).toHaveLength(2);
});

it('keeps no full page, no failure, and nothing where nobody listens', async () => {
  const { feed, asked, find, fail } = feeding();
  await feed.list({}, page);
  await feed.list({}, page);
  feed.subscribe(() => {});
  fail(new Error('away'));
  await expect(feed.list({}, page)).rejects.toThrow('away');
  fail(undefined);
  find([event, event]);
  await feed.list({}, page);
  await feed.list({}, page);
  expect(asked).toHaveLength(5);
});
