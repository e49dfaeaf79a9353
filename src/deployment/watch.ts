/**
 * Tells subscribers that what is shown of a deployment has changed. One loop serves all of them: it reads all
 * watched deployments in one statement when a notification comes, and once a second while anyone watches,
 * because the end of a lease is no event. (architecture section 7)
 */
import { deploymentView } from './deployment.ts';
import type { DeploymentReads } from './view.ts';

export interface DeploymentWatch {
  /** Calls the listener soon after the deployment of this revision changed, sometimes without need. The answer ends it. */
  subscribe(revisionId: string, changed: () => void): () => void;
}

/** Where notifications come from; the answer ends the subscription. */
export interface Changes {
  subscribe(listener: () => void): () => void;
}

const pollMs = 1_000;

export const createDeploymentWatch = ({ reads, changes }: { readonly reads: Pick<DeploymentReads, 'byIds'>; readonly changes: Changes }): DeploymentWatch => {
  const listeners = new Map<string, Set<() => void>>();
  /** What was last seen of each, as text. */
  const seen = new Map<string, string>();
  let running = false;
  let rung = false;
  let wake = (): void => {};

  const ring = (): void => {
    rung = true;
    wake();
  };

  const compare = async (): Promise<void> => {
    const { rows } = await reads.byIds([...listeners.keys()]);
    const found = new Map(rows.map(({ record, work }) => [record.revisionId, JSON.stringify(deploymentView(record, work))]));
    for (const [revisionId, interested] of listeners) {
      const now = found.get(revisionId) ?? '';
      if (seen.get(revisionId) === now) continue;
      seen.set(revisionId, now);
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
    subscribe: (revisionId, changed) => {
      const interested = listeners.get(revisionId) ?? new Set();
      listeners.set(revisionId, interested.add(changed));
      ring();
      if (!running) void run();
      return () => {
        interested.delete(changed);
        if (interested.size > 0 || listeners.get(revisionId) !== interested) return;
        listeners.delete(revisionId);
        seen.delete(revisionId);
        ring();
      };
    },
  };
};
