/** Repeats calls whose failure may pass by itself: a leader that changes or a server that restarts is not the caller's concern. */
import { setTimeout as delay } from 'node:timers/promises';
import { StoreUnavailable } from '../event-store.ts';
import { failure } from './failure.ts';

export const retryMs = 50;

/**
 * The first answer of the attempts made within the budget; `leftMs` of it are left to an attempt.
 * @throws StoreUnavailable when it is spent, or the failure that no repetition changes
 */
export const retrying = async <T>(budgetMs: number, attempt: (leftMs: number, number: number) => Promise<T>): Promise<T> => {
  const deadline = performance.now() + budgetMs;
  for (let number = 1; ; number += 1) {
    const leftMs = Math.max(1, deadline - performance.now());
    try {
      return await within(leftMs, attempt(leftMs, number));
    } catch (error) {
      const failed = failure(error);
      if (!(failed instanceof StoreUnavailable)) throw failed;
      if (performance.now() + retryMs >= deadline) throw new StoreUnavailable(`EventStoreDB did not answer within ${budgetMs} ms`, { cause: failed });
    }
    await delay(retryMs);
  }
};

/** Rejects after so many milliseconds, whatever the promise does: looking for a cluster has no deadline of its own. */
const within = <T>(ms: number, promise: Promise<T>): Promise<T> =>
  new Promise((resolve, reject) => {
    const timer = setTimeout(() => reject(new StoreUnavailable(`EventStoreDB did not answer within ${Math.round(ms)} ms`)), ms);
    promise.then(resolve, reject).finally(() => clearTimeout(timer));
  });
