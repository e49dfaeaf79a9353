/** Routes of Configurations. (rest-contract 3.3) */
import { createConfigurationInput, updateConfigurationInput } from '../../configuration/input.ts';
import { configuration } from './resources.ts';
import { route, type RoutePermission } from './route.ts';

const tag = 'Configurations';
const boundSecrets: RoutePermission = { action: 'operate', resourceKind: 'secret', scope: 'request_body', condition: 'bound_secret' };

export const configurationRoutes = [
  route({
    method: 'POST',
    path: '/namespaces/:namespaceId/configurations',
    operationId: 'createConfiguration',
    tag,
    summary: 'Create a Configuration',
    permissions: [{ action: 'create', resourceKind: 'configuration', scope: 'namespace' }, boundSecrets],
    body: createConfigurationInput,
    takes: 'Idempotency-Key',
    status: 201,
    answer: configuration,
    handle: ({ configurations }, { caller, params, body, idempotencyKey }) => configurations.create(caller, params.namespaceId, body, { idempotencyKey }),
  }),
  route({
    method: 'GET',
    path: '/namespaces/:namespaceId/configurations/:configurationId',
    operationId: 'getConfiguration',
    tag,
    summary: 'Read a Configuration',
    permissions: [{ action: 'read', resourceKind: 'configuration', scope: 'requested' }],
    status: 200,
    answer: configuration,
    handle: ({ configurations }, { caller, params }) => configurations.get(caller, params),
  }),
  route({
    method: 'PATCH',
    path: '/namespaces/:namespaceId/configurations/:configurationId',
    operationId: 'updateConfiguration',
    tag,
    summary: 'Replace the document of a Configuration',
    permissions: [{ action: 'update', resourceKind: 'configuration', scope: 'requested' }, boundSecrets],
    body: updateConfigurationInput,
    takes: 'If-Match',
    status: 200,
    answer: configuration,
    handle: ({ configurations }, { caller, params, body, ifMatch }) => configurations.update(caller, params, body, { ifMatch }),
  }),
  route({
    method: 'DELETE',
    path: '/namespaces/:namespaceId/configurations/:configurationId',
    operationId: 'deleteConfiguration',
    tag,
    summary: 'Delete a Configuration that nothing refers to',
    permissions: [{ action: 'delete', resourceKind: 'configuration', scope: 'requested' }],
    status: 204,
    handle: ({ configurations }, { caller, params }) => configurations.delete(caller, params),
  }),
];
