/** Re-authorization at dispatch: the work is done only while its actor could still ask for it. (agent-lifecycle 3.7) */
import { evaluate, type Action } from '../iam/evaluate.ts';
import type { Policy } from '../iam/policy.ts';
import type { ResourceRef } from '../kernel/event.ts';
import { dependencyUnavailable, refuse, retry } from './outcome.ts';
import type { Pass } from './pass.ts';

export type Permission = readonly [action: Action, resource: ResourceRef];

/** Policy now; its outage is no denial. The pass records the revision it was judged by. */
export const currentPolicy = async (pass: Pass<never>): Promise<Policy> => {
  const { state, revision } = await pass.deps.policy.current().catch((error: unknown) => {
    pass.deps.log.warn({ workKey: pass.work.key, error }, 'policy is unavailable');
    throw retry(dependencyUnavailable);
  });
  pass.policyRevision = revision;
  return state;
};

/** @throws Ended with `ACTOR_REVOKED` or `AUTHORIZATION_DENIED`, each with its denial */
export const requireActor = (policy: Policy, principalId: string, permissions: readonly Permission[]): void => {
  const exists = policy.identities.has(principalId);
  for (const [action, resource] of permissions) {
    const verdict = evaluate(policy, principalId, action, resource);
    if (!verdict.allowed)
      throw refuse(exists ? 'AUTHORIZATION_DENIED' : 'ACTOR_REVOKED', { principalId, action, resource, reason: verdict.reason });
  }
};

/** @throws Ended with `INVALID_AGENT_PRINCIPAL` unless the principal exists and belongs to this Agent */
export const requireAgentPrincipal = (policy: Policy, principalId: string, agent: ResourceRef): void => {
  if (policy.identities.get(principalId)?.agentId !== agent.id)
    throw refuse('INVALID_AGENT_PRINCIPAL', { principalId, action: 'deploy', resource: agent, reason: 'The Agent has no principal of its own' });
};
