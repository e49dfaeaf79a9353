/** Every admitted revision is driven to its end, and every stop; their closing events end the work. (agent-lifecycle 3 and 4) */
import type { AgentEvent } from '../agent/messages.ts';
import { workKey } from '../kernel/work.ts';
import type { Saga, SagaCommand } from '../runtime/saga.ts';

const close = (key: string, state: 'succeeded' | 'failed_permanent', code: string): readonly SagaCommand[] => [{ type: 'CloseWork', key, state, code }];

export const reconcileAgent: Saga<AgentEvent> = {
  stream: 'agent',
  on: {
    AgentRevisionAdmitted: ({ data: { agentId, namespaceId, revisionId }, envelope: { actor } }) => [
      { type: 'EnqueueWork', work: { key: workKey.deployment(revisionId), lane: agentId, kind: 'deployment', namespaceId, agentId, revisionId, actor } },
    ],
    DeploymentActivated: ({ data }) => close(workKey.deployment(data.revisionId), 'succeeded', data.code),
    DeploymentSuperseded: ({ data }) => close(workKey.deployment(data.revisionId), 'succeeded', 'REVISION_SUPERSEDED'),
    DeploymentStopped: ({ data }) => close(workKey.deployment(data.revisionId), 'succeeded', 'REVISION_STOPPED'),
    DeploymentFailed: ({ data }) => close(workKey.deployment(data.revisionId), 'failed_permanent', data.code),
    AgentStopRequested: ({ data: { agentId, namespaceId, operationId }, envelope: { actor } }) => [
      { type: 'EnqueueWork', work: { key: workKey.stop(agentId, operationId), lane: agentId, kind: 'stop', namespaceId, agentId, operationId, actor } },
    ],
    AgentStopped: ({ data }) => close(workKey.stop(data.agentId, data.operationId), 'succeeded', data.code),
    AgentStopSuperseded: ({ data }) => close(workKey.stop(data.agentId, data.operationId), 'succeeded', 'STOP_SUPERSEDED'),
    AgentStopFailed: ({ data }) => close(workKey.stop(data.agentId, data.operationId), 'failed_permanent', data.code),
    WorkRetryScheduled: ({ data }) => [{ type: 'CountAttempts', key: data.workKey, attempts: data.attempt }],
    // The recovery grants one attempt more, so it does not count as spent.
    WorkClaimExpired: ({ data }) => (data.code === 'LEASE_EXPIRED' ? [{ type: 'CountAttempts', key: data.workKey, attempts: data.attempt }] : []),
  },
};
