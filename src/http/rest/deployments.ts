/** The routes of a deployment: its status and its diagnostics; its id is the id of the version it deploys. (rest-contract 2.7, 2.9) */
import { deployment, diagnostics } from './resources.ts';
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
  route({
    method: 'POST',
    path: '/namespaces/:namespaceId/agents/:agentId/deployments/:deploymentId/diagnostics',
    operationId: 'diagnoseAgentDeployment',
    tag: 'Deployments',
    summary: 'Ask for fresh checks of a version; nothing is stored',
    permissions: [
      { action: 'read', resourceKind: 'agent', scope: 'requested' },
      { action: 'operate', resourceKind: 'agent', scope: 'requested' },
      { action: 'read', resourceKind: 'agent_revision', scope: 'requested' },
    ],
    status: 200,
    answer: diagnostics,
    handle: ({ revisions }, { caller, params: { namespaceId, agentId, deploymentId } }) => revisions.diagnose(caller, { namespaceId, agentId, revisionId: deploymentId }),
  }),
];
