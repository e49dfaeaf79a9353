/** The passes as the worker runs them: how each outcome is recorded and settled, and how lost claims are recovered. (agent-lifecycle 3.5, 3.14, failure scenarios 4 and 33) */
import { randomUUID } from 'node:crypto';
import { Fault, Refusal } from '../kernel/errors.ts';
import { ClaimLost, type Lease } from '../runtime/lease.ts';
import type { Finished, Recovery, Settlement, WorkRunner } from '../runtime/worker.ts';
import type { ClaimedWork } from '../runtime/work-queue.ts';
import { openWork, type OpenWork } from './open-work.ts';
import {
  Ended,
  atDeadline,
  backoffMs,
  dependencyUnavailable,
  finished,
  readinessRecheckMs,
  refusedCandidateStopPending,
  refusedStopRecheckMs,
  type Outcome,
} from './outcome.ts';
import type { ReconcileDependencies } from './ports.ts';

/** Recovery writes under a claim that has ended and is not yet fenced: the stream alone judges it. */
const noLease: Lease = {
  signal: new AbortController().signal,
  renew: () => Promise.resolve(),
  verify: () => Promise.resolve({ remainingMs: 0, ageMs: 0 }),
  end: () => {},
};

const activeRevisionRecovery = 'ACTIVE_REVISION_RECOVERY';
const leaseExpired = 'LEASE_EXPIRED';
const recoveryDelayMs = 1_000;
const storeOutageDelayMs = 1_000;

const isUnavailable = (error: unknown): boolean => error instanceof Refusal && error.kind === 'unavailable';

/** What a pass threw, as an outcome. Faults, and the loss of the claim, are the worker's business. */
const outcomeOf = (error: unknown): Outcome => {
  if (error instanceof Ended) return error.outcome;
  if (error instanceof ClaimLost || error instanceof Fault || (error instanceof Refusal && !isUnavailable(error))) throw error;
  return { kind: 'retry', code: dependencyUnavailable };
};

export const createReconciler = (deps: ReconcileDependencies): WorkRunner => {
  const { maxAttempts, convergenceTimeoutMs } = deps.settings;
  const backoff = (attempt: number): number => backoffMs(attempt, deps.random());
  const closedBy = ({ evidence }: OpenWork, { key }: ClaimedWork): Finished | undefined => {
    const code = evidence.closed.get(key);
    return code === undefined ? undefined : finished(code);
  };

  const fail = async (open: OpenWork, work: ClaimedWork, outcome: Outcome & { kind: 'permanent' }): Promise<Finished> => {
    const { code, data, denial } = outcome;
    deps.log.warn({ workKey: work.key, code }, 'work failed');
    await open.fail(code, data, {
      action: open.failedAction,
      outcome: 'failure',
      reasonCode: code,
      final: true,
      denial,
      deniedAction: open.deniedAction,
    });
    return finished(code);
  };

  const wait = async (open: OpenWork, work: ClaimedWork, code: string, delayMs: number, refusal?: string): Promise<Settlement> => {
    if (open.failing === 'recorded')
      await open.record(
        { type: 'DeferWork', claim: work, code, ...(refusal !== undefined && { refusal }) },
        { outcome: 'success', reasonCode: code, details: refusal === undefined ? {} : { refusal } },
      );
    return { kind: 'requeued', delayMs, refunded: true };
  };

  const conclude = async (open: OpenWork, work: ClaimedWork, lease: Lease, reached: Outcome): Promise<Settlement> => {
    const { ageMs } = await lease.verify();
    const outcome = open.hasDeadline ? atDeadline(reached, ageMs, convergenceTimeoutMs) : reached;
    switch (outcome.kind) {
      case 'pending':
        return wait(open, work, outcome.code, outcome.cadence === 'readiness' ? readinessRecheckMs(ageMs) : backoff(work.attempt));
      case 'stop-pending': {
        const latest = open.evidence.latest.get(work.key);
        const earlierFailures = latest?.code === refusedCandidateStopPending ? latest.count : 0;
        const delayMs = refusedStopRecheckMs(ageMs, earlierFailures, outcome.stopMs);
        return wait(open, work, refusedCandidateStopPending, delayMs, outcome.refusal);
      }
      case 'retry': {
        const { code } = outcome;
        if (open.failing === 'never') return { kind: 'requeued', delayMs: backoff(work.attempt), refunded: true };
        if (work.attempt >= maxAttempts) return fail(open, work, { kind: 'permanent', code, refused: false });
        if (open.failing === 'recorded')
          await open.record({ type: 'ScheduleWorkRetry', claim: work, code, attempt: work.attempt }, { outcome: 'failure', reasonCode: code });
        return { kind: 'requeued', delayMs: backoff(work.attempt), refunded: false };
      }
      case 'permanent':
        return fail(open, work, outcome);
    }
  };

  const pass = async (work: ClaimedWork, lease: Lease): Promise<Settlement> => {
    const open = await openWork(deps, work, lease);
    if ('kind' in open) return open;
    const closed = closedBy(open, work);
    if (closed !== undefined) return closed;
    try {
      return await open.run();
    } catch (error) {
      if (lease.signal.aborted) throw error;
      const outcome = outcomeOf(error);
      if (!(error instanceof Ended)) deps.log.warn({ workKey: work.key, error }, 'pass could not go on');
      // The pass itself may have finished the teardown, and from then on its work cannot fail.
      const now = await openWork(deps, work, lease);
      return 'kind' in now ? now : conclude({ ...open, failing: now.failing }, work, lease, outcome);
    }
  };

  /** Where the store cannot even be read or told, the attempt is given back without evidence. */
  const run: WorkRunner['run'] = (work, lease) =>
    pass(work, lease).catch((error: unknown): Settlement => {
      if (lease.signal.aborted || !isUnavailable(error)) throw error;
      deps.log.warn({ workKey: work.key, error }, 'the event store is unavailable');
      return { kind: 'requeued', delayMs: storeOutageDelayMs, refunded: true };
    });

  const fence = async (open: OpenWork, work: ClaimedWork, code: string, attempts: number, delayMs: number): Promise<Recovery> => {
    if (open.evidence.fenced.has(work.claimToken)) return { kind: 'requeued', delayMs, attempts };
    const record = { outcome: 'failure', reasonCode: code } as const;
    await open.record({ type: 'ExpireWorkClaim', claim: work, code, attempt: attempts }, record);
    return { kind: 'requeued', delayMs, attempts };
  };

  const recover: WorkRunner['recover'] = async (work) => {
    const open = await openWork(deps, work, noLease);
    if ('kind' in open) return open;
    const closed = closedBy(open, work);
    if (closed !== undefined) return closed;
    const { evidence, failing } = open;
    const latest = evidence.latest.get(work.key);
    const isRefunded = latest?.refusal !== undefined || failing === 'never';
    if (isRefunded) return fence(open, work, leaseExpired, Math.max(0, work.attempt - 1), backoff(work.attempt));
    if (work.attempt < maxAttempts) return fence(open, work, leaseExpired, work.attempt, backoff(work.attempt));
    const wasGranted = evidence.fenced.has(work.claimToken) && latest?.code === activeRevisionRecovery;
    if (wasGranted || (open.isPublished && !evidence.recovered.has(work.key)))
      return fence(open, work, activeRevisionRecovery, maxAttempts - 1, Math.min(backoff(1), recoveryDelayMs));
    if (evidence.fenced.has(work.claimToken)) return { kind: 'requeued', delayMs: 0, attempts: work.attempt };
    return fail(open, work, { kind: 'permanent', code: leaseExpired, refused: false });
  };

  const exhaust: WorkRunner['exhaust'] = async (item) => {
    // No claim ever had this token, so nothing can have been fenced or written under it.
    const work: ClaimedWork = { ...item, workKey: item.key, claimToken: randomUUID() };
    const open = await openWork(deps, work, noLease);
    if ('kind' in open) return open;
    const closed = closedBy(open, work);
    if (closed !== undefined) return closed;
    if (open.failing === 'never') return { kind: 'requeued', delayMs: 0, attempts: 0 };
    return fail(open, work, { kind: 'permanent', code: 'MAX_ATTEMPTS_EXHAUSTED', refused: false });
  };

  return { run, recover, exhaust };
};
