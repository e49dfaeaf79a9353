/** An Agent that is to be deleted is torn down by one work item, tried again for whoever may; removal ends all its work. (agent-lifecycle 4.4) */
import type { AgentEvent } from '../agent/messages.ts';
import { workKey } from '../kernel/work.ts';
import type { Saga } from '../runtime/saga.ts';

export const retireAgent: Saga<AgentEvent> = {
  stream: 'agent',
  on: {
    AgentDeletionRequested: ({ data: { agentId, namespaceId }, envelope: { actor } }) => [
      { type: 'EnqueueWork', work: { key: workKey.deletion(agentId), lane: agentId, kind: 'deletion', namespaceId, agentId, actor } },
    ],
    AgentDeletionRetried: ({ data, envelope: { actor } }) => [{ type: 'RequeueWork', key: workKey.deletion(data.agentId), actor }],
    AgentDeletionTakenOver: ({ data, envelope: { actor } }) => [{ type: 'RequeueWork', key: workKey.deletion(data.agentId), actor }],
    AgentTeardownFailed: ({ data }) => [{ type: 'CloseWork', key: workKey.deletion(data.agentId), state: 'failed_permanent', code: data.code }],
    AgentRemoved: ({ data: { agentId } }) => [{ type: 'RemoveLaneWork', lane: agentId, keep: workKey.deletion(agentId) }],
  },
};
