/**
 * What a lane's stream knows of its work items: which claims are fenced off, which items are closed, and
 * the latest evidence of each. Every append of a pass is judged by it. (failure scenarios 4 and 33)
 */
import { Map, Set } from 'immutable';
import { Refusal } from './errors.ts';
import type { Envelope } from './event.ts';
import type { WorkEvidence } from './work-evidence.ts';

/** The right to append results: one claim of one work item. */
export interface Claim {
  readonly workKey: string;
  readonly claimToken: string;
}

export interface Evidence {
  readonly outcome: 'deferred' | 'retried' | 'expired';
  readonly code: string;
  readonly refusal: string | undefined;
  readonly at: string;
  /** How many times in a row the same was recorded. */
  readonly count: number;
}

export interface WorkState {
  readonly fenced: Set<string>;
  /** Closing code by work key; the closing event of an item is written once. */
  readonly closed: Map<string, string>;
  readonly latest: Map<string, Evidence>;
  /** Deployments whose last attempt was lost after publication and that were granted one more. */
  readonly recovered: Set<string>;
}

export const noWork: WorkState = { fenced: Set(), closed: Map(), latest: Map(), recovered: Set() };

/** The claim was fenced off, or its work has already ended: nothing may be appended under it. */
export class ClaimEnded extends Refusal {
  constructor(claim: Claim) {
    super('RESOURCE_CONFLICT', `The claim on ${claim.workKey} has ended`);
  }
}

/** Another permitted caller may not restart a failed deletion while its initiator could. (agent-lifecycle 4.4) */
export class DeletionOwned extends Refusal {
  readonly initiatingActorId: string;

  constructor(initiatingActorId: string) {
    super('FORBIDDEN', 'The deletion was begun by another caller who can still repeat it');
    this.initiatingActorId = initiatingActorId;
  }
}

/** Undefined when the claim may still append. */
export const claimEnded = (work: WorkState, claim: Claim): ClaimEnded | undefined =>
  work.fenced.has(claim.claimToken) || work.closed.has(claim.workKey) ? new ClaimEnded(claim) : undefined;

/** Whether a deferral says nothing new and need not be recorded. Stops for a refused candidate always are. (agent-lifecycle 3.5) */
export const repeatsLatest = (work: WorkState, workKey: string, code: string): boolean => {
  const latest = work.latest.get(workKey);
  return latest?.outcome === 'deferred' && latest.code === code && code !== 'REFUSED_CANDIDATE_STOP_PENDING';
};

/** Marks a work item as ended by its closing event. */
export const closeWork = (work: WorkState, workKey: string, code: string): WorkState => ({
  ...work,
  closed: work.closed.set(workKey, code),
  latest: work.latest.delete(workKey),
});

/** The same item is queued again: only a repeated deletion does that. */
export const reopenWork = (work: WorkState, workKey: string): WorkState => ({ ...work, closed: work.closed.delete(workKey) });

export const evolveWork = (work: WorkState, { type, data }: WorkEvidence, { occurredAt }: Envelope): WorkState => {
  const note = (outcome: Evidence['outcome']) => {
    const earlier = work.latest.get(data.workKey);
    const count = earlier?.outcome === outcome && earlier.code === data.code ? earlier.count + 1 : 1;
    return work.latest.set(data.workKey, { outcome, code: data.code, refusal: 'refusal' in data ? data.refusal : undefined, at: occurredAt, count });
  };
  switch (type) {
    case 'WorkDeferred':
      return { ...work, latest: note('deferred') };
    case 'WorkRetryScheduled':
      return { ...work, latest: note('retried') };
    case 'WorkClaimExpired':
      return {
        ...work,
        latest: note('expired'),
        fenced: work.fenced.add(data.claimToken),
        recovered: data.code === 'ACTIVE_REVISION_RECOVERY' ? work.recovered.add(data.workKey) : work.recovered,
      };
  }
};

/** The command behind every evidence event, as workers and recovery send it. */
export type EvidenceCommand =
  | { readonly type: 'DeferWork'; readonly claim: Claim; readonly code: string; readonly refusal?: string }
  | { readonly type: 'ScheduleWorkRetry'; readonly claim: Claim; readonly code: string; readonly attempt: number }
  | { readonly type: 'ExpireWorkClaim'; readonly claim: Claim; readonly code: string; readonly attempt: number };

/** Decides evidence alike on every lane. A fence is written even for an item that has ended meanwhile, once. */
export const decideEvidence = (work: WorkState, command: EvidenceCommand): readonly WorkEvidence[] | Refusal => {
  const { claim, code } = command;
  const { workKey } = claim;
  switch (command.type) {
    case 'ExpireWorkClaim': {
      if (work.fenced.has(claim.claimToken) || work.closed.has(workKey)) return [];
      const refusal = work.latest.get(workKey)?.refusal;
      const data = { workKey, claimToken: claim.claimToken, attempt: command.attempt, code };
      return [{ type: 'WorkClaimExpired', data: refusal === undefined ? data : { ...data, refusal } }];
    }
    case 'DeferWork': {
      const ended = claimEnded(work, claim);
      if (ended !== undefined) return ended;
      if (repeatsLatest(work, workKey, code)) return [];
      return [{ type: 'WorkDeferred', data: command.refusal === undefined ? { workKey, code } : { workKey, code, refusal: command.refusal } }];
    }
    case 'ScheduleWorkRetry':
      return claimEnded(work, claim) ?? [{ type: 'WorkRetryScheduled', data: { workKey, code, attempt: command.attempt } }];
  }
};

/** Work keys: the target and the operation, so that deriving an item twice is harmless. (agent-lifecycle 3.1) */
export const workKey = {
  deployment: (revisionId: string): string => `agent_revision:${revisionId}:reconcile`,
  stop: (agentId: string, operationId: string): string => `agent:${agentId}:stop:${operationId}`,
  deletion: (agentId: string): string => `agent:${agentId}:delete`,
  /** Brings a selected revision back up; no event asks for it and none closes it. */
  maintenance: (revisionId: string): string => `agent_revision:${revisionId}:maintenance`,
  namespaceReady: (namespaceId: string): string => `namespace:${namespaceId}:ready`,
  namespaceDeletion: (namespaceId: string): string => `namespace:${namespaceId}:delete`,
};
