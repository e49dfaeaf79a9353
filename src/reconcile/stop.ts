/** The stop pass: everything of the Agent that was admitted before the stop goes down, then the pointer is cleared. (agent-lifecycle 4.1) */
import type { PresentAgent } from '../agent/agent.ts';
import type { StopOperation } from '../agent/lifecycle.ts';
import { ResultRefused } from '../agent/work.ts';
import type { Finished } from '../runtime/worker.ts';
import { bind, reload, stopAll, type AgentPass } from './agent-effects.ts';
import { currentPolicy, requireActor } from './authorization.ts';
import { dependencyUnavailable, finished, refuse, retry } from './outcome.ts';
import { planStop, selectedRevision } from './plan.ts';

const action = 'openclaw.agents.lifecycle.stop';

const supersede = async (pass: AgentPass, { operationId }: StopOperation): Promise<Finished> => {
  await pass.append({ type: 'SupersedeStop', claim: pass.work, operationId }, { action, outcome: 'success', reasonCode: 'STOP_SUPERSEDED' });
  return finished('STOP_SUPERSEDED');
};

export const runStop = async (pass: AgentPass, agent: PresentAgent, stop: StopOperation): Promise<Finished> => {
  const { namespaceId, agentId, activeRevisionId } = agent;
  const policy = await currentPolicy(pass);
  requireActor(policy, stop.actor.principalId, [['operate', { kind: 'agent', id: agentId, namespaceId }]]);
  if (activeRevisionId !== null && selectedRevision(agent) === undefined) throw refuse('INVALID_ACTIVE_REVISION');
  const plan = planStop(agent, stop, pass.deps.driver);
  if (plan.step === 'supersede') return supersede(pass, stop);
  if (plan.step === 'elsewhere') throw refuse('COMPUTE_DRIVER_MISMATCH');
  const judge = () => retry(dependencyUnavailable);
  await bind(pass, agent, judge);
  for (const revision of plan.revisions) {
    if ((await reload(pass)).desired !== 'stopped') return supersede(pass, stop);
    await stopAll(pass, [revision], judge);
  }
  await pass.point('stop:stopped');
  const code = activeRevisionId === null ? 'AGENT_ALREADY_STOPPED' : 'AGENT_STOPPED';
  try {
    await pass.append(
      { type: 'CompleteStop', claim: pass.work, operationId: stop.operationId, revisionId: activeRevisionId },
      { action, outcome: 'success', reasonCode: code },
    );
  } catch (error) {
    if (!(error instanceof ResultRefused)) throw error;
    if (error.reason === 'STOP_SUPERSEDED') return supersede(pass, stop);
    throw retry(error.reason);
  }
  await pass.point('stop:completed');
  return finished(code);
};
