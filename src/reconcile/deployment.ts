/** The deployment pass: from an admitted revision to a selected and serving one, or to the reason why not. (agent-lifecycle 3.6 to 3.13) */
import { namespaces, revisions } from '../aggregates.ts';
import type { PresentAgent } from '../agent/agent.ts';
import type { AgentRevisionSnapshotted } from '../agent-revision/messages.ts';
import { snapshotOf } from '../agent-revision/snapshot.ts';
import type { AdmittedRevision } from '../agent/lifecycle.ts';
import { ResultRefused } from '../agent/work.ts';
import { TransientDependency, type Observation, type RevisionSnapshot } from '../compute/driver.ts';
import { isUnreadable } from '../kernel/codec.ts';
import type { Finished } from '../runtime/worker.ts';
import { bind, reload, retireAll, stopAll, type AgentPass } from './agent-effects.ts';
import { currentPolicy, requireActor, requireAgentPrincipal } from './authorization.ts';
import { Ended, dependencyUnavailable, driverFailure, fail, finished, refuse, retry, unfinished, unready } from './outcome.ts';
import { isHere, planDeployment, predecessorsOf, selectedRevision } from './plan.ts';

type Snapshot = AgentRevisionSnapshotted['data'];

/** What a pass has learnt, for the refusal that may end it. */
interface Progress {
  /** Set once owner, Namespace and Compute are known to match: only then may the candidate be touched. */
  candidate?: RevisionSnapshot;
  /** Compute may have prepared the candidate in this pass. */
  prepared: boolean;
}

const isOwn = (agent: PresentAgent, admitted: AdmittedRevision, data: Snapshot): boolean =>
  data.namespaceId === agent.namespaceId &&
  data.agentId === agent.agentId &&
  data.servicePrincipalId === agent.servicePrincipalId &&
  data.revisionId === admitted.revisionId &&
  data.number === admitted.number;

/** Steps 3 to 8: what was admitted still fits what is there. */
const check = async (pass: AgentPass, agent: PresentAgent, admitted: AdmittedRevision, progress: Progress): Promise<Snapshot> => {
  const { streams, driver, approvesHarness } = pass.deps;
  const { namespaceId, agentId } = agent;
  const namespace = await streams.load(namespaces, namespaceId);
  if (namespace.state.status !== 'ready') throw refuse('NAMESPACE_NOT_READY');
  const { state: data } = await streams.load(revisions, admitted.revisionId);
  if (data === null || !isOwn(agent, admitted, data)) throw refuse('INVALID_ADMITTED_REVISION');
  const here = isHere(data.compute, driver);
  if (here) progress.candidate = snapshotOf(data);
  if (!approvesHarness(data.harness)) throw refuse('HARNESS_DESCRIPTOR_MISMATCH');
  if (!here) throw refuse('COMPUTE_DRIVER_MISMATCH');
  if (agent.activeRevisionId !== null && selectedRevision(agent) === undefined) throw refuse('INVALID_ACTIVE_REVISION');
  const policy = await currentPolicy(pass);
  const ref = { kind: 'agent', id: agentId, namespaceId } as const;
  requireAgentPrincipal(policy, agent.servicePrincipalId, ref);
  requireActor(policy, admitted.actor.principalId, [
    ['deploy', ref],
    ['read', { kind: 'configuration', id: data.configurationId, namespaceId }],
  ]);
  return data;
};

/** Steps 9 and 12: nothing outside the snapshot that this control plane cannot resolve. A selected revision waits instead of failing. */
const resolve = (data: Snapshot, selected: boolean): void => {
  const missing = (code: string): Ended => (selected ? unfinished(code) : refuse(code));
  const { settings, backendId } = data;
  if (isUnreadable(settings)) throw refuse('INVALID_ADMITTED_REVISION');
  if (backendId !== null) throw missing('BACKEND_UNAVAILABLE');
  if (Object.keys(settings.secretBindings ?? {}).length > 0) throw missing('SECRET_BINDING_UNAVAILABLE');
  if (settings.harnessAuth.method !== 'runtime') throw missing('HARNESS_AUTH_SOURCE_UNAVAILABLE');
  if (settings.credentialSources.length > 0) throw missing('CREDENTIAL_SOURCE_UNAVAILABLE');
  if (Object.values(settings.plugins ?? {}).some(({ enabled }) => enabled)) throw fail('RUNTIME_STARTUP_FAILED');
};

const bindFailure = (published: boolean) => (error: unknown): Ended => {
  if (error instanceof TransientDependency) return driverFailure(error, published);
  return published ? unfinished('COMPUTE_BINDING_INCOMPLETE') : retry(dependencyUnavailable);
};

const close = async (pass: AgentPass, code: string, command: Parameters<AgentPass['append']>[0], action?: string, details = {}): Promise<Finished> => {
  await pass.append(command, { ...(action !== undefined && { action }), outcome: 'success', reasonCode: code, details });
  return finished(code);
};

/** Steps 10 and 18: the Agent shall not run. Predecessors go too, unless another revision is the selected one. */
const standDown = async (pass: AgentPass, agent: PresentAgent, admitted: AdmittedRevision): Promise<Finished> => {
  const { driver } = pass.deps;
  const published = agent.activeRevisionId === admitted.revisionId;
  const judge = (error: unknown) => driverFailure(error, published);
  await bind(pass, agent, bindFailure(published));
  await stopAll(pass, [admitted], judge);
  if (published || agent.activeRevisionId === null) await retireAll(pass, predecessorsOf(agent, admitted, driver), judge);
  return close(pass, 'REVISION_STOPPED', { type: 'StopDeployment', claim: pass.work, revisionId: admitted.revisionId });
};

const prepare = async (pass: AgentPass, snapshot: RevisionSnapshot, published: boolean): Promise<Observation> => {
  const seen = await pass.effect(
    (options) => pass.deps.driver.prepareRevision(snapshot, options),
    (error) => driverFailure(error, published),
  );
  const { namespaceId, agentId, revisionId } = snapshot;
  if (seen.namespaceId !== namespaceId || seen.agentId !== agentId || seen.revisionId !== revisionId) throw refuse('INVALID_DRIVER_OBSERVATION');
  if (!seen.ready) throw unready(seen);
  await pass.point('deployment:prepared');
  return seen;
};

/** Sections 3 to 5 of publication: serve it, retire what it replaces, and say so. */
const complete = async (
  pass: AgentPass,
  agent: PresentAgent,
  admitted: AdmittedRevision,
  snapshot: RevisionSnapshot,
  { warnings = [] }: Observation,
  code: 'REVISION_ACTIVATED' | 'REVISION_ALREADY_ACTIVE',
): Promise<Finished> => {
  const { driver } = pass.deps;
  const judge = (error: unknown) => driverFailure(error, true);
  await pass.effect((options) => driver.activateRevision(snapshot, options), judge);
  await pass.point('deployment:activated');
  await retireAll(pass, predecessorsOf(agent, admitted, driver), judge);
  await pass.point('deployment:retired');
  const { revisionId } = admitted;
  const { previousRevisionId } = agent;
  const once = warnings.filter(({ pluginId }, index) => warnings.findIndex((other) => other.pluginId === pluginId) === index);
  try {
    return await close(
      pass,
      code,
      { type: 'CompleteDeployment', claim: pass.work, revisionId, code, previousRevisionId, warnings: once },
      'openclaw.agents.lifecycle.activate',
      { previousRevisionId },
    );
  } catch (error) {
    throw error instanceof ResultRefused ? retry(error.reason) : error;
  }
};

/** Whether the pointer now names the revision; false when the Agent was stopped meanwhile. */
const select = async (pass: AgentPass, agent: PresentAgent, { revisionId }: AdmittedRevision): Promise<boolean> => {
  try {
    await pass.append(
      { type: 'SelectRevision', claim: pass.work, revisionId, expectedActiveRevisionId: agent.activeRevisionId },
      { outcome: 'success', reasonCode: 'REVISION_SELECTED' },
    );
  } catch (error) {
    if (!(error instanceof ResultRefused)) throw error;
    if (error.reason === 'REVISION_STOPPED') return false;
    throw retry(error.reason);
  }
  await pass.point('deployment:selected');
  return true;
};

const replace = async (
  pass: AgentPass,
  agent: PresentAgent,
  admitted: AdmittedRevision,
  snapshot: RevisionSnapshot,
  stopFirst: readonly AdmittedRevision[],
  progress: Progress,
): Promise<Finished> => {
  await bind(pass, agent, bindFailure(false));
  await stopAll(pass, stopFirst, (error) => driverFailure(error, false));
  progress.prepared = true;
  const seen = await prepare(pass, snapshot, false);
  if (!(await select(pass, agent, admitted))) return standDown(pass, await reload(pass), admitted);
  const selected = await reload(pass);
  if (selected.desired === 'stopped') return standDown(pass, selected, admitted);
  return complete(pass, selected, admitted, snapshot, seen, 'REVISION_ACTIVATED');
};

/** A refused candidate must not keep serving: it is stopped before its refusal is told, however long that takes. (3.13) */
const stopRefused = async (pass: AgentPass, agent: PresentAgent, admitted: AdmittedRevision, refusal: string): Promise<void> => {
  const startedAt = performance.now();
  const judge = () => new Ended({ kind: 'stop-pending', refusal, stopMs: performance.now() - startedAt });
  await bind(pass, agent, judge);
  await stopAll(pass, [admitted], judge);
};

const mayServe = (pass: AgentPass, agent: PresentAgent, admitted: AdmittedRevision, { candidate, prepared }: Progress): boolean => {
  if (candidate === undefined || agent.activeRevisionId === admitted.revisionId) return false;
  return admitted.exclusive || (agent.activeRevisionId === null && (prepared || agent.work.latest.has(pass.work.key)));
};

const reconcile = async (pass: AgentPass, agent: PresentAgent, admitted: AdmittedRevision, progress: Progress): Promise<Finished> => {
  const data = await check(pass, agent, admitted, progress);
  const plan = planDeployment(agent, admitted, pass.deps.driver);
  if (plan.step === 'stand-down') return standDown(pass, agent, admitted);
  if (plan.step === 'supersede') {
    const { byRevisionId } = plan;
    const refusal = agent.work.latest.get(pass.work.key)?.refusal;
    if (refusal !== undefined) await stopRefused(pass, agent, admitted, refusal);
    const command = { type: 'SupersedeDeployment', claim: pass.work, revisionId: admitted.revisionId, byRevisionId } as const;
    return close(pass, 'REVISION_SUPERSEDED', command, 'openclaw.agents.lifecycle.supersede', { byRevisionId });
  }
  resolve(data, plan.step === 'recover');
  const snapshot = snapshotOf(data);
  if (plan.step === 'replace') return replace(pass, agent, admitted, snapshot, plan.stopFirst, progress);
  await bind(pass, agent, bindFailure(true));
  return complete(pass, agent, admitted, snapshot, await prepare(pass, snapshot, true), 'REVISION_ALREADY_ACTIVE');
};

export const runDeployment = async (pass: AgentPass, agent: PresentAgent, admitted: AdmittedRevision): Promise<Finished> => {
  const progress: Progress = { prepared: false };
  try {
    return await reconcile(pass, agent, admitted, progress);
  } catch (error) {
    if (error instanceof Ended && error.outcome.kind === 'permanent' && error.outcome.refused && mayServe(pass, agent, admitted, progress))
      await stopRefused(pass, agent, admitted, error.outcome.code);
    throw error;
  }
};
