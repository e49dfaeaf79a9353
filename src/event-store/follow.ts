/** Turns pages read on demand into a subscription: read to the end, wait for news, read on. */
import { setTimeout as delay } from 'node:timers/promises';
import { StoreUnavailable } from './event-store.ts';
import type { EventStore, Page, Position } from './event-store.ts';

/** Tells listeners that something may have been appended; it may ring for nothing. */
export interface Bell {
  /** Calls the listener at every ring until the returned function is called. */
  on(listener: () => void): () => void;
}

/** A {@link Bell} that rings when told to. */
export const createBell = (): Bell & { readonly ring: () => void } => {
  const listeners = new Set<() => void>();
  return {
    on(listener) {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    ring: () => {
      for (const listener of [...listeners]) listener();
    },
  };
};

interface FollowOptions {
  readonly signal: AbortSignal;
  /** How long to trust a silent bell before reading anyway. */
  readonly pollMs: number;
}

const retryMs = 100;

/**
 * The pages after a position, for ever: the first at once even when it is empty, later ones when the reader
 * has moved. While the store is unavailable it tries again; any other error ends the iteration with it.
 * A page counts as taken when the next one is asked for, so a position never runs ahead of its consumer.
 * (failure scenario 6)
 */
export async function* follow(
  readAfter: (position: Position | null) => ReturnType<EventStore['readAll']>,
  bell: Bell,
  after: Position | null,
  { signal, pollMs }: FollowOptions,
): AsyncGenerator<Page, void, undefined> {
  let position = after;
  let first = true;
  let news = false;
  let wake = (): void => {};
  const listener = (): void => {
    news = true;
    wake();
  };
  const silence = bell.on(listener);
  signal.addEventListener('abort', listener);
  try {
    while (!signal.aborted) {
      news = false;
      const page = await untilAborted(readAfter(position), signal).catch((error: unknown) => {
        if (!(error instanceof StoreUnavailable)) throw error;
      });
      if (signal.aborted) return;
      if (page === undefined) {
        await delay(retryMs, undefined, { signal }).catch(() => {});
        continue;
      }
      if (first || page.position !== position) {
        first = false;
        position = page.position;
        yield page;
      }
      if (page.end && !news) {
        const timer = setTimeout(listener, pollMs);
        await new Promise<void>((resolve) => (wake = resolve));
        clearTimeout(timer);
      }
    }
  } finally {
    silence();
    signal.removeEventListener('abort', listener);
  }
}

/** Settles as the promise does, or with undefined as soon as the signal is aborted. */
const untilAborted = <T>(promise: Promise<T>, signal: AbortSignal): Promise<T | undefined> =>
  new Promise((resolve, reject) => {
    const abort = (): void => resolve(undefined);
    signal.addEventListener('abort', abort, { once: true });
    promise.then(resolve, reject).finally(() => signal.removeEventListener('abort', abort));
  });
