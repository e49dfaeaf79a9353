/** How waiting appends are cut into calls. */
import { expect, it } from 'vitest';
import { maxBatchAppends, maxBatchBytes, takeBatch } from '../../src/event-store/postgres/append-lane.ts';

const appends = (count: number, bytes: number) => Array.from({ length: count }, () => ({ bytes }));

it('scenario 14: a call ends at 64 appends', () => {
  expect(takeBatch(appends(63, 1))).toHaveLength(63);
  expect(takeBatch(appends(200, 1))).toHaveLength(maxBatchAppends);
  expect(takeBatch(appends(200, 1), 1)).toHaveLength(1);
});

it('scenario 14: a call ends at one mebibyte, the first append included', () => {
  expect(takeBatch(appends(4, maxBatchBytes / 4))).toHaveLength(4);
  expect(takeBatch(appends(5, maxBatchBytes / 4))).toHaveLength(4);
  expect(takeBatch([...appends(1, maxBatchBytes), ...appends(1, 1)])).toHaveLength(1);
});
