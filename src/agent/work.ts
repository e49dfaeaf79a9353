/** Results of one Agent's work: what a pass may append under its claim, and what each result changes. (agent-lifecycle sections 3 and 4) */
import type { Decision } from '../kernel/decider.ts';
import { Refusal } from '../kernel/errors.ts';
import { ClaimEnded, claimEnded, closeWork, decideEvidence, workKey, type Claim, type EvidenceCommand, type WorkState } from '../kernel/work.ts';
import type { Lifecycle } from './lifecycle.ts';
import type { AgentEvent } from './messages.ts';

interface WorkOwner extends Lifecycle {
  readonly agentId: string;
  readonly namespaceId: string;
  readonly work: WorkState;
}

interface UnderClaim {
  readonly claim: Claim;
}

export type WorkCommand =
  | EvidenceCommand
  | (UnderClaim & { readonly type: 'SelectRevision'; readonly revisionId: string; readonly expectedActiveRevisionId: string | null })
  | (UnderClaim & {
      readonly type: 'CompleteDeployment';
      readonly revisionId: string;
      readonly code: 'REVISION_ACTIVATED' | 'REVISION_ALREADY_ACTIVE';
      readonly previousRevisionId: string | null;
      readonly warnings: readonly { readonly code: string; readonly pluginId: string }[];
    })
  | (UnderClaim & { readonly type: 'SupersedeDeployment'; readonly revisionId: string; readonly byRevisionId: string })
  | (UnderClaim & { readonly type: 'StopDeployment'; readonly revisionId: string })
  | (UnderClaim & { readonly type: 'FailDeployment'; readonly revisionId: string; readonly code: string; readonly data?: Readonly<Record<string, unknown>> })
  | (UnderClaim & { readonly type: 'CompleteStop'; readonly operationId: string; readonly revisionId: string | null })
  | (UnderClaim & { readonly type: 'SupersedeStop'; readonly operationId: string })
  | (UnderClaim & { readonly type: 'FailStop'; readonly operationId: string; readonly code: string })
  | (UnderClaim & { readonly type: 'FailTeardown'; readonly code: string })
  | (UnderClaim & { readonly type: 'FinishTeardown' })
  | { readonly type: 'RemoveAgent' };

/** The result no longer holds at the tail; the pass repeats from its beginning and says why. */
export class ResultRefused extends Refusal {
  readonly reason: 'ACTIVE_REVISION_CHANGED' | 'REVISION_STOPPED' | 'STOP_SUPERSEDED';

  constructor(reason: ResultRefused['reason']) {
    super('RESOURCE_CONFLICT', reason);
    this.reason = reason;
  }
}

const otherWork = (): Refusal => new Refusal('RESOURCE_CONFLICT', 'The claim is on other work');

/** The work item a result belongs to; nothing else may be claimed for it. */
const targetOf = (agentId: string, command: Exclude<WorkCommand, EvidenceCommand | { readonly type: 'RemoveAgent' }>): string => {
  switch (command.type) {
    case 'CompleteStop':
    case 'SupersedeStop':
    case 'FailStop':
      return workKey.stop(agentId, command.operationId);
    case 'FailTeardown':
    case 'FinishTeardown':
      return workKey.deletion(agentId);
    default:
      return workKey.deployment(command.revisionId);
  }
};

export const decideWork = (agent: WorkOwner, command: WorkCommand): Decision<AgentEvent> => {
  const { agentId, namespaceId } = agent;
  const owner = { agentId, namespaceId };
  switch (command.type) {
    case 'DeferWork':
    case 'ScheduleWorkRetry':
    case 'ExpireWorkClaim':
      return decideEvidence(agent.work, command);
    case 'RemoveAgent':
      return agent.deletion?.finished === true
        ? [{ type: 'AgentRemoved', data: owner }]
        : new Refusal('RESOURCE_CONFLICT', 'The teardown of the Agent is not finished');
    default:
  }
  const ended = claimEnded(agent.work, command.claim);
  if (ended !== undefined) return ended;
  const target = targetOf(agentId, command);
  if (target !== command.claim.workKey) return otherWork();
  if (agent.deletion?.finished === true && target !== workKey.deletion(agentId)) return new ClaimEnded(command.claim);
  switch (command.type) {
    case 'SelectRevision': {
      const { revisionId } = command;
      if (!agent.revisions.some((revision) => revision.revisionId === revisionId)) return otherWork();
      if (agent.desired !== 'running') return new ResultRefused('REVISION_STOPPED');
      if (agent.activeRevisionId === revisionId) return [];
      if (agent.activeRevisionId !== command.expectedActiveRevisionId) return new ResultRefused('ACTIVE_REVISION_CHANGED');
      return [{ type: 'AgentRevisionSelected', data: { ...owner, revisionId, previousRevisionId: agent.activeRevisionId } }];
    }
    case 'CompleteDeployment': {
      const { revisionId, code, previousRevisionId, warnings } = command;
      if (agent.activeRevisionId !== revisionId) return new ResultRefused('ACTIVE_REVISION_CHANGED');
      return [{ type: 'DeploymentActivated', data: { ...owner, revisionId, code, previousRevisionId, warnings: [...warnings] } }];
    }
    case 'SupersedeDeployment':
      return [{ type: 'DeploymentSuperseded', data: { ...owner, revisionId: command.revisionId, byRevisionId: command.byRevisionId } }];
    case 'StopDeployment':
      return [{ type: 'DeploymentStopped', data: { ...owner, revisionId: command.revisionId } }];
    case 'FailDeployment': {
      const { revisionId, code, data } = command;
      return [{ type: 'DeploymentFailed', data: data === undefined ? { ...owner, revisionId, code } : { ...owner, revisionId, code, data } }];
    }
    case 'CompleteStop': {
      const { operationId, revisionId } = command;
      if (agent.desired !== 'stopped') return new ResultRefused('STOP_SUPERSEDED');
      if (agent.activeRevisionId !== revisionId) return new ResultRefused('ACTIVE_REVISION_CHANGED');
      const code = revisionId === null ? 'AGENT_ALREADY_STOPPED' : 'AGENT_STOPPED';
      return [{ type: 'AgentStopped', data: { ...owner, operationId, code, revisionId } }];
    }
    case 'SupersedeStop':
      return [{ type: 'AgentStopSuperseded', data: { ...owner, operationId: command.operationId } }];
    case 'FailStop':
      return [{ type: 'AgentStopFailed', data: { ...owner, operationId: command.operationId, code: command.code } }];
    case 'FailTeardown':
      return agent.deletion?.finished === true ? [] : [{ type: 'AgentTeardownFailed', data: { ...owner, code: command.code } }];
    case 'FinishTeardown':
      if (agent.deletion === null || agent.desired !== 'stopped') return new Refusal('RESOURCE_CONFLICT', 'The Agent is not being deleted');
      if (agent.deletion.finished) return [];
      return [
        { type: 'AgentTeardownFinished', data: { ...owner, revisionIds: agent.revisions.map(({ revisionId }) => revisionId) } },
      ];
  }
};

const closed = <A extends WorkOwner>(agent: A, key: string, code: string): A => ({ ...agent, work: closeWork(agent.work, key, code) });

/** What a result changes: the pointer, the closing of its work item, the state of the deletion. */
export const evolveWorkResults = <A extends WorkOwner>(agent: A, event: AgentEvent): A => {
  switch (event.type) {
    case 'AgentRevisionSelected':
      return { ...agent, activeRevisionId: event.data.revisionId, previousRevisionId: event.data.previousRevisionId };
    case 'DeploymentActivated':
      return closed(agent, workKey.deployment(event.data.revisionId), event.data.code);
    case 'DeploymentSuperseded':
      return closed(agent, workKey.deployment(event.data.revisionId), 'REVISION_SUPERSEDED');
    case 'DeploymentStopped':
      return closed(agent, workKey.deployment(event.data.revisionId), 'REVISION_STOPPED');
    case 'DeploymentFailed':
      return closed(agent, workKey.deployment(event.data.revisionId), event.data.code);
    case 'AgentStopped': {
      const { operationId, code, revisionId } = event.data;
      const activeRevisionId = agent.activeRevisionId === revisionId ? null : agent.activeRevisionId;
      return closed({ ...agent, activeRevisionId }, workKey.stop(agent.agentId, operationId), code);
    }
    case 'AgentStopSuperseded':
      return closed(agent, workKey.stop(agent.agentId, event.data.operationId), 'STOP_SUPERSEDED');
    case 'AgentStopFailed':
      return closed(agent, workKey.stop(agent.agentId, event.data.operationId), event.data.code);
    case 'AgentTeardownFailed': {
      const deletion = agent.deletion === null ? null : { ...agent.deletion, failedCode: event.data.code };
      return closed({ ...agent, deletion }, workKey.deletion(agent.agentId), event.data.code);
    }
    case 'AgentTeardownFinished':
      return { ...agent, deletion: agent.deletion === null ? null : { ...agent.deletion, failedCode: null, finished: true } };
    default:
      return agent;
  }
};
