/** Every route end to end over real HTTP: its call, its status, its envelope and its headers; and the paths and methods that are none. (rest-contract 1.2, 1.7, 1.11, 2.1) */
import { describe, expect, it } from 'vitest';
import { routes } from '../../src/http/rest/routes.ts';
import { parse } from '../../src/kernel/parse.ts';
import { exchange, type RawAnswer } from '../support/raw-http.ts';
import { accessBindingView, agentView, configurationView, deploymentView, diagnosticsView, installationView, namespaceView, nativeAdminView, revisionView, roleView, serviceKeyView } from './views.ts';
import { agentId, configurationId, errorOf, namespaceId, person, revisionId, startEdge, type Edge, type RequestParts } from './edge.ts';

const namespace = `/namespaces/${namespaceId}`;
const configuration = `${namespace}/configurations/${configurationId}`;
const agent = `${namespace}/agents/${agentId}`;
const agentPlace = { namespaceId, agentId };
const configurationPlace = { namespaceId, configurationId };
const revisionPlace = { ...agentPlace, revisionId };
const idempotencyKey = 'a-key-of-16-char';
const newAgent = { name: 'Mara', configurationId };
const iam = `${namespace}/iam`;
const newRole = { permissions: [{ action: 'read', resourceKind: 'agent' }] };
const newBinding = { subjectKind: 'identity', subjectId: 'spn_1', roleId: 'role_1', resourceKind: 'agent', resourceId: agentId };
const newKey = { servicePrincipalId: 'spn_1', name: 'ci' };
const document = { kind: 'agent', values: {} } as const;

const json = (body: object, headers: Record<string, string> = {}) => ({ body: JSON.stringify(body), headers });

interface Row {
  readonly operationId: string;
  readonly request: RequestParts;
  /** Absent where the route answers by itself. */
  readonly call?: string;
  readonly arguments: readonly unknown[];
  readonly view: unknown;
  readonly status: number;
  readonly etag?: string;
  readonly cookie?: string;
}

const credentials = { email: 'a@b', password: 'twelve chars' };
const cookieName = 'openclaw_occ.session_token';
const accountView = { id: 'usr_1', email: 'a@b', name: 'A', principalId: 'prn_1' };
const version = { expectedVersion: 1 };
const control = (operationId: string, method: string, path: string, verb: string): Row => ({
  operationId,
  request: { method, path, ...(method === 'GET' ? { headers: person } : json(version, person)) },
  call: 'accounts.control',
  arguments: method === 'GET' ? [verb] : [verb, version],
  view: accountView,
  status: 200,
});

const rows: readonly Row[] = [
  { operationId: 'getInstallation', request: { path: '/installation' }, call: 'installation.get', arguments: [], view: installationView, status: 200 },
  { operationId: 'listNamespaces', request: { path: '/namespaces' }, call: 'namespaces.list', arguments: [], view: [namespaceView], status: 200 },
  { operationId: 'createNamespace', request: { method: 'POST', path: '/namespaces', ...json({ name: 'a' }, { 'idempotency-key': idempotencyKey }) }, call: 'namespaces.create', arguments: [{ name: 'a' }, { idempotencyKey }], view: namespaceView, status: 201 },
  { operationId: 'getNamespace', request: { path: namespace }, call: 'namespaces.get', arguments: [namespaceId], view: namespaceView, status: 200 },
  { operationId: 'deleteNamespace', request: { method: 'DELETE', path: namespace }, call: 'namespaces.delete', arguments: [namespaceId], view: namespaceView, status: 202 },
  { operationId: 'createConfiguration', request: { method: 'POST', path: `${namespace}/configurations`, ...json(document) }, call: 'configurations.create', arguments: [namespaceId, document, { idempotencyKey: undefined }], view: configurationView, status: 201, etag: '"3"' },
  { operationId: 'getConfiguration', request: { path: configuration }, call: 'configurations.get', arguments: [configurationPlace], view: configurationView, status: 200, etag: '"3"' },
  { operationId: 'updateConfiguration', request: { method: 'PATCH', path: configuration, ...json({ values: {} }, { 'if-match': '"2"' }) }, call: 'configurations.update', arguments: [configurationPlace, { values: {} }, { ifMatch: 2 }], view: configurationView, status: 200, etag: '"3"' },
  { operationId: 'deleteConfiguration', request: { method: 'DELETE', path: configuration }, call: 'configurations.delete', arguments: [configurationPlace], view: undefined, status: 204 },
  { operationId: 'listAgents', request: { path: `${namespace}/agents` }, call: 'agents.list', arguments: [namespaceId], view: [agentView], status: 200 },
  { operationId: 'createAgent', request: { method: 'POST', path: `${namespace}/agents`, ...json(newAgent) }, call: 'agents.create', arguments: [namespaceId, newAgent, { idempotencyKey: undefined }], view: agentView, status: 201, etag: '"4"' },
  { operationId: 'getAgent', request: { path: agent }, call: 'agents.get', arguments: [agentPlace], view: agentView, status: 200, etag: '"4"' },
  { operationId: 'updateAgent', request: { method: 'PATCH', path: agent, ...json({ configurationId }, { 'if-match': '*' }) }, call: 'agents.update', arguments: [agentPlace, { configurationId }, { ifMatch: undefined }], view: agentView, status: 200, etag: '"4"' },
  { operationId: 'deleteAgent', request: { method: 'DELETE', path: agent }, call: 'agents.delete', arguments: [agentPlace], view: { ...agentView, status: 'deleting' }, status: 202, etag: '"4"' },
  { operationId: 'deployAgent', request: { method: 'POST', path: `${agent}/deploy`, headers: { 'content-length': '0' } }, call: 'agents.deploy', arguments: [agentPlace, { idempotencyKey: undefined }], view: revisionView, status: 202 },
  { operationId: 'stopAgent', request: { method: 'POST', path: `${agent}/stop` }, call: 'agents.stop', arguments: [agentPlace], view: agentView, status: 202, etag: '"4"' },
  { operationId: 'getAgentNativeAdmin', request: { path: `${agent}/native-admin` }, call: 'nativeAdmin.availability', arguments: [agentPlace], view: nativeAdminView, status: 200 },
  { operationId: 'listAgentRevisions', request: { path: `${agent}/revisions` }, call: 'revisions.list', arguments: [agentPlace], view: [revisionView], status: 200 },
  { operationId: 'getAgentRevision', request: { path: `${agent}/revisions/${revisionId}` }, call: 'revisions.get', arguments: [revisionPlace], view: revisionView, status: 200 },
  { operationId: 'getAgentDeployment', request: { path: `${agent}/deployments/${revisionId}` }, call: 'revisions.deployment', arguments: [revisionPlace], view: deploymentView, status: 200 },
  { operationId: 'diagnoseAgentDeployment', request: { method: 'POST', path: `${agent}/deployments/${revisionId}/diagnostics`, headers: { 'content-length': '0' } }, call: 'revisions.diagnose', arguments: [revisionPlace], view: diagnosticsView, status: 200 },
  { operationId: 'listRoles', request: { path: `${iam}/roles` }, call: 'iam.listRoles', arguments: [namespaceId], view: [roleView], status: 200 },
  { operationId: 'createRole', request: { method: 'POST', path: `${iam}/roles`, ...json(newRole) }, call: 'iam.createRole', arguments: [namespaceId, newRole], view: roleView, status: 201 },
  { operationId: 'getRole', request: { path: `${iam}/roles/any%20role` }, call: 'iam.getRole', arguments: [{ namespaceId, roleId: 'any role' }], view: roleView, status: 200 },
  { operationId: 'deleteRole', request: { method: 'DELETE', path: `${iam}/roles/role_1` }, call: 'iam.deleteRole', arguments: [{ namespaceId, roleId: 'role_1' }], view: undefined, status: 204 },
  { operationId: 'listAccessBindings', request: { path: `${iam}/access-bindings` }, call: 'iam.listAccessBindings', arguments: [namespaceId], view: [accessBindingView], status: 200 },
  { operationId: 'createAccessBinding', request: { method: 'POST', path: `${iam}/access-bindings`, ...json(newBinding) }, call: 'iam.createAccessBinding', arguments: [namespaceId, newBinding], view: accessBindingView, status: 201 },
  { operationId: 'getAccessBinding', request: { path: `${iam}/access-bindings/bnd_1` }, call: 'iam.getAccessBinding', arguments: [{ namespaceId, bindingId: 'bnd_1' }], view: accessBindingView, status: 200 },
  { operationId: 'deleteAccessBinding', request: { method: 'DELETE', path: `${iam}/access-bindings/bnd_1` }, call: 'iam.deleteAccessBinding', arguments: [{ namespaceId, bindingId: 'bnd_1' }], view: undefined, status: 204 },
  { operationId: 'createServicePrincipal', request: { method: 'POST', path: `${iam}/service-principals`, ...json({}) }, call: 'iam.createServicePrincipal', arguments: [namespaceId], view: { id: 'spn_1', namespaceId }, status: 201 },
  { operationId: 'issueServiceKey', request: { method: 'POST', path: '/api/auth/service-keys', ...json(newKey) }, call: 'serviceKeys.issue', arguments: [newKey], view: serviceKeyView, status: 201 },
  { operationId: 'revokeServiceKey', request: { method: 'DELETE', path: '/api/auth/service-keys/any' }, call: 'serviceKeys.revoke', arguments: ['any'], view: { id: 'any', revoked: true }, status: 200 },
  { operationId: 'signInWithPassword', request: { method: 'POST', path: '/api/auth/sign-in/email', ...json(credentials, { 'x-api-key': '-' }) }, call: 'signIn.signIn', arguments: [credentials], view: { token: 'a', lifetimeMs: 2_000 }, status: 200, cookie: `${cookieName}=a; Max-Age=2; Path=/; HttpOnly; SameSite=Lax; Secure` },
  { operationId: 'getSession', request: { path: '/api/auth/session' }, call: 'signIn.session', arguments: [], view: { sessionKey: 'a', user: { id: 'usr_1', email: 'a@b', name: 'A' } }, status: 200 },
  { operationId: 'signOut', request: { method: 'POST', path: '/api/auth/sign-out', headers: person }, call: 'signIn.signOut', arguments: [], view: undefined, status: 200, cookie: `${cookieName}=; Max-Age=0; Path=/; HttpOnly; SameSite=Lax; Secure` },
  { operationId: 'listSignInProviders', request: { path: '/api/auth/providers' }, arguments: [], view: undefined, status: 200 },
  { operationId: 'createAccount', request: { method: 'POST', path: '/api/auth/accounts', ...json(credentials, person) }, call: 'accounts.create', arguments: [credentials], view: accountView, status: 201 },
  control('getAccount', 'GET', '/api/auth/accounts/usr_1', 'read'),
  control('disableAccount', 'POST', '/api/auth/accounts/usr_1/disable', 'disable'),
  control('enableAccount', 'POST', '/api/auth/accounts/usr_1/enable', 'enable'),
  control('enrolAccount', 'POST', '/api/auth/accounts/usr_1/enrol', 'enrol'),
  control('revokeAccountSessions', 'POST', '/api/auth/accounts/usr_1/revoke', 'revoke'),
  control('detachAccountMethod', 'POST', '/api/auth/accounts/usr_1/methods/m_1/detach', 'detach'),
  control('attachAccountGithub', 'POST', '/api/auth/accounts/usr_1/providers/github', 'attach'),
  control('attachAccountGoogle', 'POST', '/api/auth/accounts/usr_1/providers/google', 'attach'),
  control('attachAccountOidc', 'POST', '/api/auth/accounts/usr_1/providers/oidc', 'attach'),
  control('getRecovery', 'GET', '/api/auth/recovery', 'recovery.read'),
  control('designateRecovery', 'POST', '/api/auth/recovery', 'recovery.designate'),
];

const requestIdPattern = /^req_[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;

const expectFixedHeaders = ({ headers }: RawAnswer): void => {
  expect(headers.get('cache-control')).toBe('no-store');
  expect(headers.get('content-type')).toBe('application/json; charset=utf-8');
  expect(headers.get('x-content-type-options')).toBe('nosniff');
  expect(headers.get('x-request-id')).toMatch(requestIdPattern);
};

const expectRefusal = (answer: RawAnswer, status: number, code: string): void => {
  expect({ status: answer.status, code: errorOf(answer).code }).toEqual({ status, code });
  expectFixedHeaders(answer);
  expect(Object.keys(JSON.parse(answer.body) as object)).toEqual(['error', 'meta']);
  expect((JSON.parse(answer.body) as { meta: object }).meta).toEqual({ requestId: answer.headers.get('x-request-id') });
};

it('every route is driven below', () => expect(rows.map(({ operationId }) => operationId)).toEqual(routes.map(({ operationId }) => operationId)));

describe('a request that passes every check', () => {
  it.each(rows)('$operationId', async ({ operationId, request, call, arguments: given, view, status, etag, cookie }) => {
    const edge = await startEdge({ answers: call === undefined ? {} : { [call]: view } });
    const answer = await edge.send(request);
    expect(answer.status).toBe(status);
    expectFixedHeaders(answer);
    expect(answer.headers.get('etag')).toBe(etag);
    expect(answer.headers.get('set-cookie')).toBe(cookie);
    const requestId = answer.headers.get('x-request-id');
    expect(edge.calls).toEqual(call === undefined ? [] : [{ method: call, arguments: [expect.objectContaining({ requestId }), ...given] }]);
    if (status === 204) {
      expect(answer.body).toBe('');
      expect(answer.headers.has('content-length')).toBe(false);
      return;
    }
    const body = JSON.parse(answer.body) as { data: unknown; meta: object };
    expect(Object.keys(body)).toEqual(['data', 'meta']);
    expect(body.meta).toEqual({ requestId });
    parse(routes.find((route) => route.operationId === operationId)!.answer!.schema, body.data);
  });

  it('gets a request id of the server, whatever it sends', async () => {
    const edge = await startEdge({ answers: { 'installation.get': installationView } });
    const answer = await edge.send({ headers: { 'x-request-id': 'req_mine', 'request-id': 'req_mine' } });
    expect(answer.headers.get('x-request-id')).toMatch(requestIdPattern);
  });
});

describe('methods and paths', () => {
  let edge: Edge;
  const anonymous = { 'x-api-key': '-', 'x-forwarded-for': '10.0.0.1' };
  const start = async () => {
    edge = await startEdge();
  };

  it.each([
    ['/installation', 'GET'],
    ['/namespaces', 'GET, POST'],
    [namespace, 'GET, DELETE'],
    [`${namespace}/configurations`, 'POST'],
    [configuration, 'GET, PATCH, DELETE'],
    [`${namespace}/agents`, 'GET, POST'],
    [agent, 'GET, PATCH, DELETE'],
    [`${agent}/deploy`, 'POST'],
    [`${agent}/stop`, 'POST'],
    [`${agent}/revisions`, 'GET'],
    [`${agent}/revisions/${revisionId}`, 'GET'],
    [`${agent}/deployments/${revisionId}`, 'GET'],
    [`${agent}/deployments/${revisionId}/diagnostics`, 'POST'],
    [`${iam}/roles`, 'GET, POST'],
    [`${iam}/roles/role_1`, 'GET, DELETE'],
    [`${iam}/access-bindings`, 'GET, POST'],
    [`${iam}/access-bindings/bnd_1`, 'GET, DELETE'],
    [`${iam}/service-principals`, 'POST'],
    ['/namespaces/no-id', 'GET, DELETE'],
  ])('%s answers %s and refuses the rest before anything else', async (path, allow) => {
    await start();
    for (const method of ['OPTIONS', 'PUT', 'PROPFIND', 'TRACE'].concat(['PATCH', 'DELETE', 'POST', 'GET'].filter((known) => !allow.split(', ').includes(known)))) {
      const answer = await edge.send({ method, path: `${path}?x=1`, headers: { ...anonymous, 'content-type': 'text/plain' }, body: '{' });
      expectRefusal(answer, 405, 'METHOD_NOT_ALLOWED');
      expect(answer.headers.get('allow')).toBe(allow);
    }
  });

  it('HEAD is a method like any other', async () => {
    await start();
    const answer = await fetch(`${edge.origin}/installation`, { method: 'HEAD' });
    expect([answer.status, answer.headers.get('allow')]).toEqual([405, 'GET']);
  });

  it.each([
    ['/'],
    ['/nothing'],
    ['/installations'],
    ['/installation/'],
    ['/Installation'],
    ['//installation'],
    ['/namespaces/'],
    [`${namespace}/`],
    [`${namespace}/agents/`],
    [`${agent}/deploy/`],
    [`${agent}/Deploy`],
    [`/namespaces%2f${namespaceId}`],
    [`${namespace}/agents%2f${agentId}`],
    [`${namespace}%5cagents`],
    [`${namespace}/agents/${agentId}%00`],
    [`${namespace}/agents/../agents`],
    [`${namespace}/%2e%2e/namespaces`],
    ['/namespaces/%252e'],
    ['/namespaces/%zz'],
    ['/%'],
    ['*'],
    [`/namespaces/${'n'.repeat(10_000)}`],
    ['/healthz/x'],
    ['/api/auth'],
    ['/api/auth/service'],
  ])('%s is no resource and redirects nowhere', async (path) => {
    await start();
    const answer = await edge.send({ path, headers: anonymous });
    expect([400, 404]).toContain(answer.status);
    expectRefusal(answer, answer.status, answer.status === 404 ? 'NOT_FOUND' : 'INVALID_REQUEST');
    expect(edge.calls).toEqual([]);
  });

  it.each([['/api/auth/sign-in/email', 'GET'], ['/api/auth/session', 'POST'], ['/api/auth/accounts', 'DELETE'], ['/api/auth/sign-out', 'OPTIONS'], [`${agent}/native-admin`, 'POST']])('%s has no table of methods: %s is 404', async (path, method) => {
    await start();
    expectRefusal(await edge.send({ method, path, headers: anonymous }), 404, 'NOT_FOUND');
  });

  it('an unknown path is 404 whatever body it carries', async () => {
    await start();
    expectRefusal(await edge.send({ method: 'POST', path: '/nothing', headers: { ...anonymous, 'content-type': 'text/plain' }, body: '{' }), 404, 'NOT_FOUND');
    expectRefusal(await edge.send({ method: 'POST', path: '/nothing', headers: { ...anonymous, 'content-length': '99999999' } }), 404, 'NOT_FOUND');
  });

  it('malformed percent-encoding is 400', async () => {
    await start();
    expectRefusal(await edge.send({ path: '/namespaces/%zz' }), 400, 'INVALID_REQUEST');
  });
});

describe('bytes that are no request', () => {
  let edge: Edge;

  it.each([
    ['a request line that is none', 'HELLO\r\n\r\n'],
    ['an unknown method', 'BREW /installation HTTP/1.1\r\nhost: localhost\r\n\r\n'],
    ['a content length that is no number', 'POST /namespaces HTTP/1.1\r\nhost: localhost\r\ncontent-length: many\r\n\r\n'],
    ['two content lengths', 'POST /namespaces HTTP/1.1\r\nhost: localhost\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\n'],
    ['headers without end', `GET /installation HTTP/1.1\r\nhost: localhost\r\nx: ${'x'.repeat(20_000)}\r\n\r\n`],
    ['no Host', 'GET /installation HTTP/1.1\r\n\r\n'],
  ])('%s: 400 in the envelope', async (_, bytes) => {
    edge = await startEdge();
    expectRefusal(await exchange(edge.origin, bytes), 400, 'INVALID_REQUEST');
  });

  it('an expectation nobody knows is ignored', async () => {
    edge = await startEdge({ answers: { 'installation.get': installationView } });
    expect((await edge.send({ headers: { expect: 'the-unexpected' } })).status).toBe(200);
  });
});
