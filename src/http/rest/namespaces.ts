/** Routes of Namespaces. (rest-contract 3.2) */
import { createNamespaceInput } from '../../namespace/input.ts';
import { listOf, namespace } from './resources.ts';
import { route } from './route.ts';

const tag = 'Namespaces';

export const namespaceRoutes = [
  route({
    method: 'GET',
    path: '/namespaces',
    operationId: 'listNamespaces',
    tag,
    summary: 'List the Namespaces the caller may read',
    permissions: [{ action: 'read', resourceKind: 'namespace', scope: 'each_returned' }],
    status: 200,
    answer: listOf(namespace),
    handle: ({ namespaces }, { caller }) => namespaces.list(caller),
  }),
  route({
    method: 'POST',
    path: '/namespaces',
    operationId: 'createNamespace',
    tag,
    summary: 'Create a Namespace',
    permissions: [
      { action: 'create', resourceKind: 'namespace', scope: 'installation' },
      { action: 'administer', resourceKind: 'installation', scope: 'installation', condition: 'existing_namespace' },
    ],
    body: createNamespaceInput,
    takes: 'Idempotency-Key',
    status: 201,
    answer: namespace,
    handle: ({ namespaces }, { caller, body, idempotencyKey }) => namespaces.create(caller, body, { idempotencyKey }),
  }),
  route({
    method: 'GET',
    path: '/namespaces/:namespaceId',
    operationId: 'getNamespace',
    tag,
    summary: 'Read a Namespace',
    permissions: [{ action: 'read', resourceKind: 'namespace', scope: 'requested' }],
    status: 200,
    answer: namespace,
    handle: ({ namespaces }, { caller, params }) => namespaces.get(caller, params.namespaceId),
  }),
  route({
    method: 'DELETE',
    path: '/namespaces/:namespaceId',
    operationId: 'deleteNamespace',
    tag,
    summary: 'Delete an empty Namespace',
    permissions: [{ action: 'delete', resourceKind: 'namespace', scope: 'requested' }],
    status: 202,
    answer: namespace,
    handle: ({ namespaces }, { caller, params }) => namespaces.delete(caller, params.namespaceId),
  }),
];
