/**
 * The worker: recovers lost claims, claims what is due, runs one pass per lane, and settles the row after the
 * pass has written its events. It knows nothing of what a pass does. (agent-lifecycle section 3, architecture R4)
 */
import { ClaimLost, holdLease, type Lease } from './lease.ts';
import type { ClaimedWork, FinalState, Requeue, WorkItem, WorkQueue } from './work-queue.ts';

export interface Finished {
  readonly kind: 'finished';
  readonly state: FinalState;
  readonly code: string;
}

/** What happens to the row when the pass has ended and its events are written. */
export type Settlement =
  | Finished
  /** Back into the queue; `refunded` gives the attempt back. */
  | { readonly kind: 'requeued'; readonly delayMs: number; readonly refunded: boolean }
  /** The work is done and its Agent gone: all rows of the Agent go. */
  | { readonly kind: 'removed'; readonly agentId: string }
  /** The claim was lost: recovery will hand the row on. */
  | { readonly kind: 'lost' };

/** What recovery found in the stream of a lost claim, after it has written what was missing there. */
export type Recovery = Finished | ({ readonly kind: 'requeued' } & Requeue);

/** The passes a worker runs. */
export interface WorkRunner {
  /** One pass under a live claim. A throw is an error of ours: logged, and repeated with backoff. */
  run(work: ClaimedWork, lease: Lease): Promise<Settlement>;
  /** Fences a claim whose lease has ended in its lane's stream, before the row is handed on. */
  recover(work: ClaimedWork): Promise<Recovery>;
  /** Writes the failure of an item whose attempts are used up. */
  exhaust(work: WorkItem & { readonly attempt: number }): Promise<Recovery>;
}

export interface WorkerSettings {
  readonly pollIntervalMs: number;
  readonly leaseDurationMs: number;
  /** Lanes worked on at the same time by this process. */
  readonly concurrency: number;
}

export interface WorkerLog {
  error(facts: object, message: string): void;
  warn(facts: object, message: string): void;
}

export interface Worker {
  /** Something may have become due. */
  wake(): void;
  /** The world of a lane has changed: its waiting item is due now, also when its pass is just ending. */
  laneChanged(lane: string): void;
  /** Milliseconds since the loop last turned. */
  idleMs(): number;
  /** Passes running now. */
  running(): number;
  /** Settled when the signal has been aborted and every pass has ended. */
  readonly done: Promise<void>;
}

const recoveryBatch = 100;
const shortestWaitMs = 10;
/** After an error of ours, or a stream this build cannot read. */
const faultDelayMs = 30_000;

export const startWorker = ({
  queue,
  runner,
  settings,
  log,
  signal,
}: {
  readonly queue: WorkQueue;
  readonly runner: WorkRunner;
  readonly settings: WorkerSettings;
  readonly log: WorkerLog;
  readonly signal: AbortSignal;
}): Worker => {
  const passes = new Map<string, Promise<void>>();
  const changedLanes = new Set<string>();
  let lastTurn = performance.now();
  let woken = false;
  let ring = () => {};

  const wake = () => {
    woken = true;
    ring();
  };

  const wait = async (ms: number): Promise<void> => {
    if (!woken && !signal.aborted)
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, ms);
        ring = () => {
          clearTimeout(timer);
          resolve();
        };
      });
    ring = () => {};
    woken = false;
  };

  const settle = async (work: ClaimedWork, settlement: Settlement): Promise<void> => {
    switch (settlement.kind) {
      case 'finished':
        return void (await queue.finish(work, settlement.state, settlement.code));
      case 'removed':
        return void (await queue.removeAgent(work, settlement.agentId));
      case 'requeued': {
        const attempts = settlement.refunded ? Math.max(0, work.attempt - 1) : work.attempt;
        return void (await queue.requeue(work, { delayMs: settlement.delayMs, attempts }));
      }
      case 'lost':
        log.warn({ workKey: work.key, code: 'CLAIM_LOST' }, 'claim lost');
    }
  };

  const runPass = async (work: ClaimedWork, claimedAt: number): Promise<void> => {
    const { leaseDurationMs } = settings;
    const lease = holdLease(queue, work, { leaseDurationMs, claimedAt, stopping: signal });
    try {
      const settlement = await runner.run(work, lease).catch((error: unknown): Settlement => {
        if (signal.aborted) return { kind: 'requeued', delayMs: 0, refunded: true };
        if (error instanceof ClaimLost || lease.signal.aborted) return { kind: 'lost' };
        log.error({ workKey: work.key, error }, 'pass failed');
        return { kind: 'requeued', delayMs: faultDelayMs, refunded: true };
      });
      await settle(work, settlement);
    } catch (error) {
      log.error({ workKey: work.key, error }, 'work item cannot be settled');
    } finally {
      lease.end();
    }
  };

  const wakeLane = (lane: string): void =>
    void queue.wakeLane(lane).then(wake, (error: unknown) => log.error({ lane, error }, 'lane cannot be woken'));

  const start = (work: ClaimedWork, claimedAt: number): void => {
    const pass = runPass(work, claimedAt).finally(() => {
      passes.delete(work.lane);
      if (changedLanes.delete(work.lane)) wakeLane(work.lane);
      wake();
    });
    passes.set(work.lane, pass);
  };

  const recoverOne = async (work: ClaimedWork): Promise<void> => {
    const recovery = await runner.recover(work);
    if (recovery.kind === 'finished') await queue.finishExpired(work, recovery.state, recovery.code);
    else await queue.requeueExpired(work, recovery);
  };

  const exhaustOne = async (work: WorkItem & { readonly attempt: number }): Promise<void> => {
    const recovery = await runner.exhaust(work);
    if (recovery.kind === 'finished') await queue.finishQueued(work.key, recovery.state, recovery.code);
    else await queue.requeueExhausted(work.key, recovery);
  };

  /** One item that cannot be recovered now must not hold up the others. */
  const each = async <T extends WorkItem>(items: readonly T[], step: (item: T) => Promise<void>): Promise<void> => {
    for (const item of items) {
      if (signal.aborted) return;
      await step(item).catch((error: unknown) => log.error({ workKey: item.key, error }, 'claim cannot be recovered'));
    }
  };

  const turn = async (): Promise<number> => {
    await each(await queue.expired(recoveryBatch), recoverOne);
    await each(await queue.exhausted(recoveryBatch), exhaustOne);
    while (passes.size < settings.concurrency && !signal.aborted) {
      const claimedAt = performance.now();
      const work = await queue.claim();
      if (work === undefined) break;
      start(work, claimedAt);
    }
    if (passes.size >= settings.concurrency) return settings.pollIntervalMs;
    const dueMs = (await queue.nextDueMs()) ?? settings.pollIntervalMs;
    return Math.min(settings.pollIntervalMs, Math.max(shortestWaitMs, Math.ceil(dueMs)));
  };

  const loop = async (): Promise<void> => {
    signal.addEventListener('abort', wake, { once: true });
    while (!signal.aborted) {
      lastTurn = performance.now();
      const waitMs = await turn().catch((error: unknown) => {
        if (!signal.aborted) log.error({ error }, 'worker turn failed');
        return settings.pollIntervalMs;
      });
      await wait(waitMs);
    }
    await Promise.all(passes.values());
  };

  return {
    wake,
    laneChanged: (lane) => {
      if (passes.has(lane)) changedLanes.add(lane);
      else wakeLane(lane);
    },
    idleMs: () => performance.now() - lastTurn,
    running: () => passes.size,
    done: loop(),
  };
};
