/** Events that any work item leaves on its lane's stream: waiting, failing and to be retried, or fenced off. (agent-lifecycle 3.5, failure scenario 4) */
import Type from 'typebox';
import { defineEvent, type EventOf } from './codec.ts';

/** The pass ended pending; the attempt is refunded. `refusal` names the refusal a candidate is stopped for. */
export const workDeferred = defineEvent('WorkDeferred', {
  skeleton: Type.Object({ workKey: Type.String(), code: Type.String(), refusal: Type.Optional(Type.String()) }),
  view: ['workKey', 'code', 'refusal'],
});

/** The pass failed and will be repeated; the attempt is kept. */
export const workRetryScheduled = defineEvent('WorkRetryScheduled', {
  skeleton: Type.Object({ workKey: Type.String(), code: Type.String(), attempt: Type.Integer() }),
  view: ['workKey', 'code', 'attempt'],
});

/** A fence: nothing may be appended under this claim any more. Written before the work is handed on. */
export const workClaimExpired = defineEvent('WorkClaimExpired', {
  skeleton: Type.Object({
    workKey: Type.String(),
    claimToken: Type.String(),
    attempt: Type.Integer(),
    /** `LEASE_EXPIRED`, or `ACTIVE_REVISION_RECOVERY` once per deployment when its last attempt was lost after publication. */
    code: Type.String(),
    refusal: Type.Optional(Type.String()),
  }),
  view: ['workKey', 'attempt', 'code', 'refusal'],
});

export type WorkEvidence = EventOf<typeof workDeferred> | EventOf<typeof workRetryScheduled> | EventOf<typeof workClaimExpired>;
