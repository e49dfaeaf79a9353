/** Routes of Agents: their draft, their deployment, their stop and their deletion. (rest-contract 2.1) */
import { createAgentInput, updateAgentInput } from '../../agent/input.ts';
import { agent, listOf, nativeAdmin, revision } from './resources.ts';
import { largestBodyLimit, route, type RoutePermission } from './route.ts';

const tag = 'Agents';
const readConfiguration: RoutePermission = { action: 'read', resourceKind: 'configuration', scope: 'request_body' };
const boundSecrets: RoutePermission = { action: 'operate', resourceKind: 'secret', scope: 'request_body', condition: 'bound_secret' };
const boundAccount: RoutePermission = { action: 'read', resourceKind: 'service_account', scope: 'request_body', condition: 'associated_service_account' };
const sources = [boundSecrets, boundAccount, { action: 'operate', resourceKind: 'credential_source', scope: 'request_body' }] as const;

export const agentRoutes = [
  route({
    method: 'GET',
    path: '/namespaces/:namespaceId/agents',
    operationId: 'listAgents',
    tag,
    summary: 'List the Agents the caller may read',
    permissions: [
      { action: 'read', resourceKind: 'namespace', scope: 'namespace' },
      { action: 'read', resourceKind: 'agent', scope: 'each_returned' },
    ],
    status: 200,
    answer: listOf(agent),
    handle: ({ agents }, { caller, params }) => agents.list(caller, params.namespaceId),
  }),
  route({
    method: 'POST',
    path: '/namespaces/:namespaceId/agents',
    operationId: 'createAgent',
    tag,
    summary: 'Create an Agent; nothing is started',
    permissions: [{ action: 'create', resourceKind: 'agent', scope: 'namespace' }, readConfiguration, ...sources],
    body: createAgentInput,
    bodyLimit: largestBodyLimit,
    takes: 'Idempotency-Key',
    status: 201,
    answer: agent,
    handle: ({ agents }, { caller, params, body, idempotencyKey }) => agents.create(caller, params.namespaceId, body, { idempotencyKey }),
  }),
  route({
    method: 'GET',
    path: '/namespaces/:namespaceId/agents/:agentId',
    operationId: 'getAgent',
    tag,
    summary: 'Read an Agent',
    permissions: [{ action: 'read', resourceKind: 'agent', scope: 'requested' }],
    status: 200,
    answer: agent,
    handle: ({ agents }, { caller, params }) => agents.get(caller, params),
  }),
  route({
    method: 'PATCH',
    path: '/namespaces/:namespaceId/agents/:agentId',
    operationId: 'updateAgent',
    tag,
    summary: 'Change the draft of an Agent; no version changes',
    permissions: [{ action: 'update', resourceKind: 'agent', scope: 'requested' }, readConfiguration, ...sources],
    body: updateAgentInput,
    takes: 'If-Match',
    status: 200,
    answer: agent,
    handle: ({ agents }, { caller, params, body, ifMatch }) => agents.update(caller, params, body, { ifMatch }),
  }),
  route({
    method: 'DELETE',
    path: '/namespaces/:namespaceId/agents/:agentId',
    operationId: 'deleteAgent',
    tag,
    summary: 'Delete an Agent and everything that belongs to it',
    permissions: [{ action: 'delete', resourceKind: 'agent', scope: 'requested' }],
    status: 202,
    answer: agent,
    handle: ({ agents }, { caller, params }) => agents.delete(caller, params),
  }),
  route({
    method: 'POST',
    path: '/namespaces/:namespaceId/agents/:agentId/deploy',
    operationId: 'deployAgent',
    tag,
    summary: 'Save the draft as a version and queue its deployment',
    permissions: [
      { action: 'deploy', resourceKind: 'agent', scope: 'requested' },
      { action: 'read', resourceKind: 'configuration', scope: 'namespace' },
      { ...boundSecrets, scope: 'namespace' },
      { ...boundAccount, scope: 'namespace' },
    ],
    takes: 'Idempotency-Key',
    status: 202,
    answer: revision,
    handle: ({ agents }, { caller, params, idempotencyKey }) => agents.deploy(caller, params, { idempotencyKey }),
  }),
  route({
    method: 'POST',
    path: '/namespaces/:namespaceId/agents/:agentId/stop',
    operationId: 'stopAgent',
    tag,
    summary: 'Stop an Agent; its history and state stay',
    permissions: [{ action: 'operate', resourceKind: 'agent', scope: 'requested' }],
    status: 202,
    answer: agent,
    handle: ({ agents }, { caller, params }) => agents.stop(caller, params),
  }),
  route({
    method: 'GET',
    path: '/namespaces/:namespaceId/agents/:agentId/native-admin',
    operationId: 'getAgentNativeAdmin',
    tag,
    summary: 'Whether the native admin UI of an Agent can be opened, and where',
    permissions: [{ action: 'administer', resourceKind: 'agent', scope: 'requested' }],
    status: 200,
    answer: nativeAdmin,
    handle: ({ nativeAdmin: service }, { caller, params }) => service.availability(caller, params),
  }),
];
