/** The lease of one claim, seen from the pass that holds it: renewed while the pass runs, and its end heard of in time. (agent-lifecycle 3.4) */
import type { Claim } from '../kernel/work.ts';
import type { LeaseStanding, WorkQueue } from './work-queue.ts';

/** The claim is no longer held; the pass ends and says nothing more. */
export class ClaimLost extends Error {
  override readonly name = 'ClaimLost';
}

export interface Lease {
  /** Aborted when the last confirmed lease ends, when the claim is lost, and when the worker stops. */
  readonly signal: AbortSignal;
  /** Renews before an external effect. @throws ClaimLost */
  renew(): Promise<void>;
  /** The lease as PostgreSQL sees it now; asked before each append. @throws ClaimLost */
  verify(): Promise<LeaseStanding>;
  /** Ends the heartbeat; the row is settled by the caller. */
  end(): void;
}

/** Begins the heartbeat of a claim that was made at `claimedAt` of `performance.now()`. */
export const holdLease = (
  queue: Pick<WorkQueue, 'renew' | 'verify'>,
  claim: Claim,
  { leaseDurationMs, claimedAt, stopping }: { readonly leaseDurationMs: number; readonly claimedAt: number; readonly stopping: AbortSignal },
): Lease => {
  const lost = new AbortController();
  let ended = false;
  const end = () => {
    ended = true;
    clearInterval(heartbeat);
    clearTimeout(expiry);
  };
  const lose = () => {
    end();
    lost.abort(new ClaimLost(`The claim on ${claim.workKey} was lost`));
  };
  let confirmedUntil = claimedAt + leaseDurationMs;
  let expiry = setTimeout(lose, leaseDurationMs);

  /** A renewal that is never answered extends nothing; one that is answered extends from when it was sent. */
  const renew = async (): Promise<void> => {
    lost.signal.throwIfAborted();
    const sentAt = performance.now();
    const renewed = await queue.renew(claim);
    if (!renewed) lose();
    lost.signal.throwIfAborted();
    if (ended || sentAt + leaseDurationMs <= confirmedUntil) return;
    confirmedUntil = sentAt + leaseDurationMs;
    clearTimeout(expiry);
    expiry = setTimeout(lose, confirmedUntil - performance.now());
  };

  const heartbeat = setInterval(() => void renew().catch(() => {}), leaseDurationMs / 3);

  return {
    signal: AbortSignal.any([lost.signal, stopping]),
    renew,
    verify: async () => {
      lost.signal.throwIfAborted();
      const standing = await queue.verify(claim);
      if (standing === undefined) lose();
      lost.signal.throwIfAborted();
      return standing!;
    },
    end,
  };
};
