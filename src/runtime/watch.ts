/**
 * Tells subscribers that what is shown of a resource has changed. One loop serves all of them: it reads everything
 * that is watched in one statement when a notification comes, and once a second while anyone watches, because the
 * end of a lease is no event. (architecture section 7)
 */

export interface Watch {
  /** Calls the listener soon after what this key names changed, sometimes without need. The answer ends it. */
  subscribe(key: string, changed: () => void): () => void;
}

/** Where notifications come from; the answer ends the subscription. */
export interface Changes {
  subscribe(listener: () => void): () => void;
}

const pollMs = 1_000;

/** Watches what `read` answers for the keys that are watched: what is shown of each as text; a key that is left out is gone. */
export const createWatch = ({ read, changes }: { readonly read: (keys: readonly string[]) => Promise<ReadonlyMap<string, string>>; readonly changes: Changes }): Watch => {
  const listeners = new Map<string, Set<() => void>>();
  /** What was last seen of each. */
  const seen = new Map<string, string>();
  let running = false;
  let rung = false;
  let wake = (): void => {};

  const ring = (): void => {
    rung = true;
    wake();
  };

  const compare = async (): Promise<void> => {
    const found = await read([...listeners.keys()]);
    for (const [key, interested] of listeners) {
      const now = found.get(key) ?? '';
      if (seen.get(key) === now) continue;
      seen.set(key, now);
      for (const changed of interested) changed();
    }
  };

  const rest = (): Promise<void> =>
    new Promise((resolve) => {
      const timer = setTimeout(resolve, pollMs);
      wake = () => {
        clearTimeout(timer);
        resolve();
      };
      if (rung) wake();
    });

  const run = async (): Promise<void> => {
    running = true;
    const unsubscribe = changes.subscribe(ring);
    while (listeners.size > 0) {
      rung = false;
      await compare().catch(() => {}); // not reachable now: the next round asks again
      if (listeners.size > 0) await rest();
    }
    unsubscribe();
    running = false;
  };

  return {
    subscribe: (key, changed) => {
      const interested = listeners.get(key) ?? new Set();
      listeners.set(key, interested.add(changed));
      ring();
      if (!running) void run();
      return () => {
        interested.delete(changed);
        if (interested.size > 0 || listeners.get(key) !== interested) return;
        listeners.delete(key);
        seen.delete(key);
        ring();
      };
    },
  };
};
