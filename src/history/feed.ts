/** The end of the history, as subscribers wait there for more: what several ask alike is read once. (architecture section 7) */
import type { Changes } from '../runtime/watch.ts';
import type { HistoryReads } from './view.ts';

/** Reads that were begun after the last change are shared, as long as anybody listens. */
export type HistoryFeed = Changes & Pick<HistoryReads, 'list'>;

/** A change that nobody was told of is found after this time at the latest, by who looks for it. */
const sharedMs = 1_000;

export const createHistoryFeed = ({ reads, changes, now = () => performance.now() }: { readonly reads: Pick<HistoryReads, 'list'>; readonly changes: Changes; readonly now?: () => number }): HistoryFeed => {
  const listeners = new Set<() => void>();
  /** Begun since the last change, by what was asked. */
  const begun = new Map<string, { readonly at: number; readonly answer: ReturnType<HistoryReads['list']> }>();
  let unsubscribe = (): void => {};

  const ring = (): void => {
    begun.clear();
    for (const listener of listeners) listener();
  };

  return {
    subscribe: (listener) => {
      if (listeners.size === 0) unsubscribe = changes.subscribe(ring);
      listeners.add(listener);
      return () => {
        if (!listeners.delete(listener) || listeners.size > 0) return;
        unsubscribe();
        begun.clear();
      };
    },
    list: (filter, request) => {
      if (listeners.size === 0) return reads.list(filter, request);
      const key = JSON.stringify([filter, request]);
      const known = begun.get(key);
      if (known !== undefined && now() - known.at < sharedMs) return known.answer;
      const read = { at: now(), answer: reads.list(filter, request) };
      begun.set(key, read);
      const forget = (): void => void (begun.get(key) === read && begun.delete(key));
      // A full page is history that one subscriber catches up with; nobody else is likely to ask for it.
      read.answer.then(({ rows }) => rows.length >= request.limit && forget(), forget);
      return read.answer;
    },
  };
};
