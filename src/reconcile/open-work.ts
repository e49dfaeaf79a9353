/** What a work item means: its lane's stream at the tail, who asked for it, how it is run and how it fails. */
import { agents, namespaces } from '../aggregates.ts';
import type { AgentState, PresentAgent } from '../agent/agent.ts';
import type { WorkCommand } from '../agent/work.ts';
import type { ResourceRef } from '../kernel/event.ts';
import { noWork, type EvidenceCommand, type WorkState } from '../kernel/work.ts';
import type { NamespaceCommand, NamespaceState } from '../namespace/namespace.ts';
import type { Lease } from '../runtime/lease.ts';
import type { Loaded } from '../runtime/streams.ts';
import type { Finished, Settlement } from '../runtime/worker.ts';
import type { ClaimedWork } from '../runtime/work-queue.ts';
import { finishRemoval, runDeletion } from './deletion.ts';
import { runDeployment } from './deployment.ts';
import { runMaintenance } from './maintenance.ts';
import { runNamespaceDeletion, runNamespaceReady } from './namespace.ts';
import type { FailureData } from './outcome.ts';
import { openPass, type Asker, type Pass, type WorkRecord } from './pass.ts';
import type { ReconcileDependencies } from './ports.ts';
import { runStop } from './stop.ts';

/** What becomes of the work when its attempts are used up or its result is final. */
export type Failing =
  /** The failure is an event, and closes the work. */
  | 'recorded'
  /** Nothing may end it but success. */
  | 'never'
  /** Only the row ends: nobody waits for this work. */
  | 'silent';

export interface OpenWork {
  readonly evidence: WorkState;
  readonly failing: Failing;
  /** Waiting is limited by the convergence deadline. */
  readonly hasDeadline: boolean;
  /** Its revision is selected and shall run, so its last attempt may be granted once more. (3.14) */
  readonly isPublished: boolean;
  /** Names of the audit records of a refusal and of a failure. */
  readonly deniedAction: string;
  readonly failedAction: string;
  run(): Promise<Settlement>;
  record(command: EvidenceCommand, record: WorkRecord): Promise<void>;
  fail(code: string, data: FailureData | undefined, record: WorkRecord): Promise<void>;
}

interface Kind<C> {
  readonly asker: Asker;
  readonly resource: ResourceRef;
  readonly failing: Failing;
  readonly hasDeadline: boolean;
  readonly isPublished?: boolean;
  readonly deniedAction: string;
  readonly failedAction?: string;
  readonly run: (pass: Pass<C>) => Promise<Settlement>;
  /** The closing failure event's command; only asked for where failing is recorded. */
  readonly failure?: (code: string, data: FailureData | undefined) => C;
}

const opened = <C>(kind: Kind<C>, evidence: WorkState, pass: Pass<C>): OpenWork => ({
  evidence,
  failing: kind.failing,
  hasDeadline: kind.hasDeadline,
  isPublished: kind.isPublished ?? false,
  deniedAction: kind.deniedAction,
  failedAction: kind.failedAction ?? 'reconcile',
  run: () => kind.run(pass),
  record: (command, record) => pass.append(command, record),
  fail: async (code, data, record) => {
    if (kind.failure !== undefined) await pass.append(kind.failure(code, data), record);
  },
});

/** The row names nothing its stream knows: it ends, and there is nowhere to say more. */
const unknown = (code: string): Finished => ({ kind: 'finished', state: 'failed_permanent', code });

const deploymentOf = (agent: PresentAgent, work: ClaimedWork): Kind<WorkCommand> | Finished => {
  if (work.revisionId === null) return unknown('INVALID_TARGET');
  const admitted = agent.revisions.find(({ revisionId }) => revisionId === work.revisionId);
  if (admitted === undefined) return unknown('INVALID_REVISION_OWNER');
  const { revisionId } = admitted;
  return {
    asker: admitted,
    resource: { kind: 'agent_revision', id: revisionId, namespaceId: agent.namespaceId },
    failing: 'recorded',
    hasDeadline: true,
    isPublished: agent.activeRevisionId === revisionId && agent.desired === 'running',
    deniedAction: 'openclaw.agents.deploy',
    run: (pass) => runDeployment(pass, agent, admitted),
    failure: (code, data) => ({ type: 'FailDeployment', claim: work, revisionId, code, ...(data !== undefined && { data }) }),
  };
};

const stopOf = (agent: PresentAgent, work: ClaimedWork): Kind<WorkCommand> | Finished => {
  const stop = agent.stops.find(({ operationId }) => operationId === work.operationId);
  if (stop === undefined) return unknown('INVALID_TARGET');
  return {
    asker: stop,
    resource: { kind: 'agent', id: agent.agentId, namespaceId: agent.namespaceId },
    failing: 'recorded',
    hasDeadline: false,
    deniedAction: 'openclaw.agents.stop',
    failedAction: 'openclaw.agents.lifecycle.stop',
    run: (pass) => runStop(pass, agent, stop),
    failure: (code) => ({ type: 'FailStop', claim: work, operationId: stop.operationId, code }),
  };
};

const deletionOf = (agent: PresentAgent, work: ClaimedWork): Kind<WorkCommand> | Finished => {
  const { deletion } = agent;
  if (deletion === null) return unknown('INVALID_AGENT_STATE');
  return {
    asker: deletion,
    resource: { kind: 'agent', id: agent.agentId, namespaceId: agent.namespaceId },
    failing: deletion.finished ? 'never' : 'recorded',
    hasDeadline: false,
    deniedAction: 'openclaw.agents.delete',
    failedAction: 'openclaw.agents.lifecycle.delete',
    run: (pass) => runDeletion(pass, agent, deletion),
    failure: (code) => ({ type: 'FailTeardown', claim: work, code }),
  };
};

const maintenanceOf = (agent: PresentAgent, work: ClaimedWork): Kind<WorkCommand> | Finished => {
  const admitted = agent.revisions.find(({ revisionId }) => revisionId === work.revisionId);
  if (admitted === undefined) return unknown('INVALID_REVISION_OWNER');
  return {
    asker: admitted,
    resource: { kind: 'agent_revision', id: admitted.revisionId, namespaceId: agent.namespaceId },
    failing: 'silent',
    hasDeadline: true,
    deniedAction: 'openclaw.agents.deploy',
    run: (pass) => runMaintenance(pass, agent),
  };
};

const agentKinds = new Map([
  ['deployment', deploymentOf],
  ['stop', stopOf],
  ['deletion', deletionOf],
  ['maintenance', maintenanceOf],
]);

const openAgentWork = (deps: ReconcileDependencies, work: ClaimedWork, lease: Lease, loaded: Loaded<AgentState>): OpenWork | Finished => {
  const { state: agent, revision: fence } = loaded;
  const passFor = ({ asker, resource }: Pick<Kind<WorkCommand>, 'asker' | 'resource'>) =>
    openPass({ deps, work, lease, aggregate: agents, fence, asker, resource });
  if (agent.phase === 'removed' && work.kind === 'deletion' && agent.deletion !== null) {
    const kind: Kind<WorkCommand> = {
      asker: agent.deletion,
      resource: { kind: 'agent', id: agent.agentId, namespaceId: agent.namespaceId },
      failing: 'never',
      hasDeadline: false,
      deniedAction: 'openclaw.agents.delete',
      run: (pass) => finishRemoval(pass, agent),
    };
    // The stream has ended, and with it every claim: there is nothing to fence and nowhere to write it.
    return { ...opened(kind, noWork, passFor(kind)), record: () => Promise.resolve() };
  }
  if (agent.phase !== 'present' || agent.namespaceId !== work.namespaceId) return unknown('INVALID_AGENT_OWNER');
  // Nothing but its removal may write now, and nothing else may hold its lane.
  if (agent.deletion?.finished === true && work.kind !== 'deletion') return unknown('AGENT_DELETING');
  const kind = agentKinds.get(work.kind)?.(agent, work) ?? unknown('INVALID_TARGET');
  return 'kind' in kind ? kind : opened(kind, agent.work, passFor(kind));
};

const namespaceKindOf = (state: NamespaceState, work: ClaimedWork): Kind<NamespaceCommand> | Finished => {
  const { namespaceId } = work;
  const resource = { kind: 'namespace', id: namespaceId, namespaceId } as const;
  if (work.kind === 'namespace-ready' && state.creator !== null)
    return {
      asker: { actor: state.creator, eventId: null },
      resource,
      failing: 'recorded',
      hasDeadline: true,
      deniedAction: 'openclaw.namespaces.create',
      run: (pass) => runNamespaceReady(pass, state, namespaceId),
      failure: (code) => ({ type: 'FailNamespace', claim: work, namespaceId, code }),
    };
  const { deletion } = state;
  if (work.kind !== 'namespace-deletion' || deletion === null) return unknown('INVALID_TARGET');
  return {
    asker: { actor: deletion.actor, eventId: null },
    resource,
    failing: 'recorded',
    hasDeadline: true,
    deniedAction: 'openclaw.namespaces.delete',
    failedAction: 'openclaw.namespaces.lifecycle.delete',
    run: (pass) => runNamespaceDeletion(pass, deletion, namespaceId),
    failure: (code) => ({ type: 'FailNamespaceTeardown', claim: work, namespaceId, code }),
  };
};

/** Opens a work item on the tail of its lane's stream, or says how its row ends when there is nothing to open. */
export const openWork = async (deps: ReconcileDependencies, work: ClaimedWork, lease: Lease): Promise<OpenWork | Finished> => {
  if (work.agentId !== null) return openAgentWork(deps, work, lease, await deps.streams.load(agents, work.agentId));
  const { state, revision: fence } = await deps.streams.load(namespaces, work.namespaceId);
  const kind = namespaceKindOf(state, work);
  if ('kind' in kind) return kind;
  return opened(kind, state.work, openPass({ deps, work, lease, aggregate: namespaces, fence, asker: kind.asker, resource: kind.resource }));
};
