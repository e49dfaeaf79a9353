/** The route of a deployment's status; its id is the id of the version it deploys. (rest-contract 2.7) */
import { deployment } from './resources.ts';
import { route } from './route.ts';

export const deploymentRoutes = [
  route({
    method: 'GET',
    path: '/namespaces/:namespaceId/agents/:agentId/deployments/:deploymentId',
    operationId: 'getAgentDeployment',
    tag: 'Deployments',
    summary: 'Read how a deployment stands',
    permissions: [{ action: 'read', resourceKind: 'agent_revision', scope: 'requested' }],
    status: 200,
    answer: deployment,
    handle: ({ revisions }, { caller, params: { namespaceId, agentId, deploymentId } }) => revisions.deployment(caller, { namespaceId, agentId, revisionId: deploymentId }),
  }),
];
