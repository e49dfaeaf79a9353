/**
 * The deletion pass: everything of the Agent is retired, that is said once, and then the removal runs in one
 * order, each step repeatable by anyone. (agent-lifecycle 4.3, failure scenario 8)
 */
import { agents, iam, namespaces } from '../aggregates.ts';
import type { PresentAgent, RemovedAgent } from '../agent/agent.ts';
import type { Deletion } from '../agent/lifecycle.ts';
import type { Settlement } from '../runtime/worker.ts';
import { bind, identityOf, retireAll, type AgentPass } from './agent-effects.ts';
import { currentPolicy, requireActor } from './authorization.ts';
import { dependencyUnavailable, refuse, retry } from './outcome.ts';
import type { WorkRecord } from './pass.ts';
import { isHere } from './plan.ts';

const step = (reasonCode: string): WorkRecord => ({ outcome: 'success', reasonCode });

const tearDown = async (pass: AgentPass, agent: PresentAgent, deletion: Deletion): Promise<void> => {
  const { driver } = pass.deps;
  const { namespaceId, agentId } = agent;
  if (agent.desired !== 'stopped') throw refuse('INVALID_AGENT_STATE');
  const policy = await currentPolicy(pass);
  requireActor(policy, deletion.actor.principalId, [['delete', { kind: 'agent', id: agentId, namespaceId }]]);
  if (!agent.revisions.every(({ compute }) => isHere(compute, driver))) throw refuse('COMPUTE_DRIVER_MISMATCH');
  const judge = () => retry(dependencyUnavailable);
  await bind(pass, agent, judge);
  await retireAll(pass, agent.revisions, judge);
  await pass.point('deletion:retired');
  await pass.effect((options) => driver.deleteAgent(identityOf(agent), options), judge);
  await pass.point('deletion:erased');
  await pass.append({ type: 'FinishTeardown', claim: pass.work }, step('AGENT_TEARDOWN_FINISHED'));
  await pass.point('deletion:finished');
};

/** From here nothing is asked of policy or Compute: what is left can only succeed, now or later. */
const remove = async (pass: AgentPass, agent: PresentAgent): Promise<void> => {
  const { namespaceId, agentId, servicePrincipalId } = agent;
  const revisionIds = agent.revisions.map(({ revisionId }) => revisionId);
  await pass.appendTo(iam, '', { type: 'RemoveAgentBindings', agentId, namespaceId, servicePrincipalId, revisionIds }, step('AGENT_BINDINGS_REMOVED'));
  await pass.point('deletion:unbound');
  await pass.deps.erasePrincipalRows(servicePrincipalId);
  await pass.point('deletion:rows-erased');
  await pass.appendTo(agents, agentId, { type: 'RemoveAgent' }, { action: 'openclaw.agents.lifecycle.delete', ...step('AGENT_DELETED') });
  await pass.point('deletion:removed');
};

/** Policy that still names the Agent, and its name: settled last, after every reader has seen it go. */
export const finishRemoval = async (pass: AgentPass, agent: Pick<RemovedAgent, 'agentId' | 'namespaceId' | 'revisionIds'>): Promise<Settlement> => {
  const { agentId, namespaceId, revisionIds } = agent;
  await pass.appendTo(iam, '', { type: 'RemoveAgentRestrictions', agentId, namespaceId, revisionIds }, step('AGENT_RESTRICTIONS_REMOVED'));
  await pass.point('deletion:unrestricted');
  await pass.appendTo(namespaces, namespaceId, { type: 'RemoveResource', resource: { kind: 'agent', id: agentId } }, step('AGENT_NAME_RELEASED'));
  await pass.point('deletion:released');
  return { kind: 'removed', agentId };
};

export const runDeletion = async (pass: AgentPass, agent: PresentAgent, deletion: Deletion): Promise<Settlement> => {
  if (!deletion.finished) await tearDown(pass, agent, deletion);
  await remove(pass, agent);
  return finishRemoval(pass, { ...agent, revisionIds: agent.revisions.map(({ revisionId }) => revisionId) });
};
