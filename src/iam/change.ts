/** How a caller changes policy: judged once more on the very fold the change is decided on, so that authority taken away before it never passes. (failure scenario 3) */
import { iam } from '../aggregates.ts';
import { contextOf, type Core } from '../core.ts';
import type { Decision } from '../kernel/decider.ts';
import { Refusal } from '../kernel/errors.ts';
import type { ResourceRef } from '../kernel/event.ts';
import type { Executed } from '../runtime/streams.ts';
import { forbidden, hasEnded, type Grant, type Operation, type Permission } from './authorizer.ts';
import type { Caller } from './caller.ts';
import { evaluate } from './evaluate.ts';
import type { IamEvent } from './messages.ts';
import type { Policy } from './policy.ts';

export interface PolicyChange {
  readonly caller: Caller;
  readonly operation: Operation;
  readonly permissions: readonly Permission[];
  readonly grant: Grant;
  readonly decide: (policy: Policy) => Decision<IamEvent>;
  /** What its audit record is about, and what it says. */
  readonly about: { readonly resource: ResourceRef; readonly details: Readonly<Record<string, unknown>> };
}

/** Appends what policy decides. @throws Refusal as decided, UNAUTHENTICATED, FORBIDDEN (audited), DEPENDENCY_UNAVAILABLE */
export type ChangePolicy = (change: PolicyChange) => Promise<Executed<Policy, IamEvent>>;

/** The caller had the permissions, and what he came in with counted, when the request was judged. */
class AuthorityLost extends Refusal {}

export const createChangePolicy = ({ streams, authorizer, waitFor }: Core): ChangePolicy => {
  const change: ChangePolicy = async (one) => {
    const { caller, operation, permissions, grant, decide, about } = one;
    const holds = (policy: Policy) => !hasEnded(policy, caller) && permissions.every(([action, resource]) => evaluate(policy, caller.actor.principalId, action, resource).allowed);
    const context = contextOf(caller, { action: operation.action, resource: about.resource }, grant, { details: about.details });
    try {
      const lost = forbidden();
      const changed = await streams.execute(iam, '', (policy) => (holds(policy) ? decide(policy) : new AuthorityLost(lost.code, lost.message)), context, grant.guard);
      await waitFor(changed.lastPosition);
      return changed;
    } catch (refusal) {
      if (!(refusal instanceof AuthorityLost)) throw refusal;
      const again = await authorizer.require({ ...caller, arrivedAt: performance.now() }, operation, permissions);
      return change({ ...one, grant: again });
    }
  };
  return change;
};
