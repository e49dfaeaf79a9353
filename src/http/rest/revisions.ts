/** Routes of AgentRevisions, which are read only. (rest-contract 2.8) */
import { listOf, revision } from './resources.ts';
import { route } from './route.ts';

const tag = 'Agent revisions';

export const revisionRoutes = [
  route({
    method: 'GET',
    path: '/namespaces/:namespaceId/agents/:agentId/revisions',
    operationId: 'listAgentRevisions',
    tag,
    summary: 'List the versions of an Agent the caller may read, oldest first',
    permissions: [
      { action: 'read', resourceKind: 'agent', scope: 'requested' },
      { action: 'read', resourceKind: 'agent_revision', scope: 'each_returned' },
    ],
    status: 200,
    answer: listOf(revision),
    handle: ({ revisions }, { caller, params }) => revisions.list(caller, params),
  }),
  route({
    method: 'GET',
    path: '/namespaces/:namespaceId/agents/:agentId/revisions/:revisionId',
    operationId: 'getAgentRevision',
    tag,
    summary: 'Read one version of an Agent',
    permissions: [{ action: 'read', resourceKind: 'agent_revision', scope: 'requested' }],
    status: 200,
    answer: revision,
    handle: ({ revisions }, { caller, params }) => revisions.get(caller, params),
  }),
];
