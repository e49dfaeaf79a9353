/**
 * One pass: the claim it runs under, what it may append, and how it touches the world. Every append folds the
 * lane's stream to its tail, is refused when the claim has ended, and lands at exactly the revision it was
 * decided at. (architecture section 5, failure scenarios 4 and 24)
 */
import { FencedOff, type EffectOptions, type Fence } from '../compute/driver.ts';
import type { Message } from '../kernel/decider.ts';
import type { Actor, AuditRecord, ResourceRef } from '../kernel/event.ts';
import { ClaimEnded, type EvidenceCommand } from '../kernel/work.ts';
import { ClaimLost, type Lease } from '../runtime/lease.ts';
import type { Aggregate, CommandContext } from '../runtime/streams.ts';
import type { ClaimedWork } from '../runtime/work-queue.ts';
import type { Denial, Ended } from './outcome.ts';
import type { ReconcileDependencies } from './ports.ts';

/** On whose behalf work is done, and the event that asked for it. */
export interface Asker {
  readonly actor: Actor;
  readonly eventId: string | null;
}

/** The audit record of one append, without what every record of the work shares. */
export interface WorkRecord {
  /** `reconcile`, or the name of the completion. */
  readonly action?: string;
  readonly outcome: 'success' | 'failure';
  readonly reasonCode: string;
  /** The worker will not try again. */
  readonly final?: true;
  readonly details?: Readonly<{ [name: string]: unknown }>;
  readonly denial?: Denial | undefined;
  /** What a denial was about, as callers' commands name it. */
  readonly deniedAction?: string;
}

interface PassSubject {
  readonly work: ClaimedWork;
  readonly asker: Asker;
  readonly resource: ResourceRef;
  /** Revision of the policy the pass was judged by. */
  readonly policyRevision: number | null;
}

/** The context of everything that is appended for a work item. */
const workContext = ({ work, asker, resource, policyRevision }: PassSubject, record: WorkRecord): CommandContext => {
  const { action = 'reconcile', outcome, reasonCode, final, details, denial, deniedAction } = record;
  const shared = {
    resource,
    reasonCode,
    details: { workId: work.key, attemptCount: work.attempt, ...(final !== undefined && { final }), ...details },
  };
  const audit: AuditRecord =
    denial === undefined
      ? { kind: 'mutation', action, outcome, ...shared }
      : {
          kind: 'authorization_denial',
          action: deniedAction ?? action,
          outcome: 'denied',
          ...shared,
          authorization: { principalId: denial.principalId, action: denial.action, resource: denial.resource },
          details: { ...shared.details, decisionReason: denial.reason },
        };
  return {
    actor: asker.actor,
    requestId: null,
    correlationId: work.key,
    causationId: asker.eventId,
    policyRevision,
    work: { key: work.key, claimToken: work.claimToken },
    audit,
  };
};

export interface Pass<C> {
  readonly work: ClaimedWork;
  readonly deps: ReconcileDependencies;
  readonly fence: Fence;
  /** For driver verbs that take no fence. */
  readonly signal: AbortSignal;
  /** Set by re-authorization; every later append records it. */
  policyRevision: number | null;
  /** Decides at the tail of the lane's stream and appends under the claim. @throws ClaimLost, Refusal of the decision */
  append(command: C | EvidenceCommand, record: WorkRecord): Promise<void>;
  /** The same on another stream, where repeating it changes nothing. */
  appendTo<S, D, E extends Message>(aggregate: Aggregate<S, D, E>, id: string, command: D, record: WorkRecord): Promise<void>;
  /** One external effect, behind a renewed lease; what it throws is logged and judged. @throws ClaimLost, Ended */
  effect<T>(call: (options: EffectOptions) => Promise<T>, judge: (error: unknown) => Ended): Promise<T>;
  /** A named place at which a test may end the process. */
  point(name: string): Promise<void>;
}

export const openPass = <S, C extends { readonly type: string }, E extends Message>({
  deps,
  work,
  lease,
  aggregate,
  fence,
  asker,
  resource,
}: {
  readonly deps: ReconcileDependencies;
  readonly work: ClaimedWork;
  readonly lease: Lease;
  readonly aggregate: Aggregate<S, C, E>;
  readonly fence: Fence;
  readonly asker: Asker;
  readonly resource: ResourceRef;
}): Pass<C> => {
  const claimLives = async () => {
    await lease.verify();
    return {};
  };
  const pass: Pass<C> = {
    work,
    deps,
    fence,
    signal: lease.signal,
    policyRevision: null,
    append: (command, record) => pass.appendTo(aggregate, work.lane, command as C, record),
    appendTo: async (other, id, command, record) => {
      const context = workContext({ work, asker, resource, policyRevision: pass.policyRevision }, record);
      try {
        await deps.streams.execute(other, id, command, context, claimLives);
      } catch (error) {
        throw error instanceof ClaimEnded ? new ClaimLost(error.message) : error;
      }
    },
    effect: async (call, judge) => {
      await lease.renew();
      lease.signal.throwIfAborted();
      try {
        const answer = await call({ fence, signal: lease.signal });
        lease.signal.throwIfAborted();
        return answer;
      } catch (error) {
        if (lease.signal.aborted || error instanceof FencedOff) throw new ClaimLost(`The pass on ${work.key} was overtaken`);
        const ended = judge(error);
        const { outcome } = ended;
        deps.log.warn({ workKey: work.key, outcome: outcome.kind, code: 'code' in outcome ? outcome.code : undefined, error }, 'effect failed');
        throw ended;
      }
    },
    point: async (name) => deps.onPoint?.(name),
  };
  return pass;
};
