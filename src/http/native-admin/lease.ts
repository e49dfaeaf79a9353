/** Who has opened something long is judged again while it stays open. (agent-lifecycle 9.2) */

export interface Timers {
  /** Calls again and again; the answer ends it. */
  every(ms: number, listener: () => void): () => void;
  /** Calls once; the answer prevents it. */
  after(ms: number, listener: () => void): () => void;
}

export const realTimers: Timers = {
  every: (ms, listener) => {
    const timer = setInterval(listener, ms);
    return () => clearInterval(timer);
  },
  after: (ms, listener) => {
    const timer = setTimeout(listener, ms);
    return () => clearTimeout(timer);
  },
};

const everyMs = 25_000;
const limitMs = 5_000;

/** A check that did not answer in time. */
export class LeaseTimedOut extends Error {
  override readonly name = 'LeaseTimedOut';
}

/** Checks every 25 seconds, for at most 5; `lost` is called once, with the reason. The answer ends it. */
export const holdLease = (timers: Timers, check: () => Promise<void>, lost: (reason: unknown) => void): (() => void) => {
  let limit: (() => void) | undefined;
  let ended = false;
  const end = (): void => {
    ended = true;
    stop();
    limit?.();
  };
  const lose = (reason: unknown): void => {
    if (ended) return;
    end();
    lost(reason);
  };
  const stop = timers.every(everyMs, () => {
    if (limit !== undefined) return;
    const prevent = timers.after(limitMs, () => lose(new LeaseTimedOut()));
    limit = prevent;
    check().then(
      () => {
        prevent();
        limit = undefined;
      },
      (error: unknown) => lose(error),
    );
  });
  return end;
};
