/** Routes of service keys. (rest-contract 3.10) */
import { issueServiceKeyInput } from '../../iam/input.ts';
import { issuedServiceKey, revokedServiceKey } from './resources.ts';
import { route, type RoutePermission } from './route.ts';

const tag = 'Service keys';
const permissions: readonly RoutePermission[] = [{ action: 'administer', resourceKind: 'installation', scope: 'installation' }];

export const serviceKeyRoutes = [
  route({
    method: 'POST',
    path: '/api/auth/service-keys',
    operationId: 'issueServiceKey',
    tag,
    summary: 'Issue a key of a service principal; its text is in this answer and nowhere else',
    permissions,
    body: issueServiceKeyInput,
    status: 201,
    answer: issuedServiceKey,
    handle: ({ serviceKeys }, { caller, body }) => serviceKeys.issue(caller, body),
  }),
  route({
    method: 'DELETE',
    path: '/api/auth/service-keys/:keyId',
    operationId: 'revokeServiceKey',
    tag,
    summary: 'Revoke a service key',
    permissions,
    status: 200,
    answer: revokedServiceKey,
    handle: ({ serviceKeys }, { caller, params }) => serviceKeys.revoke(caller, params.keyId),
  }),
];
