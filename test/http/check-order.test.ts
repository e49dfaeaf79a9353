/** Which check comes first: every request below breaks several rules, and the answer names the first of them. (rest-contract 1.1, client-expectations CX-22) */
import { beforeEach, describe, expect, it } from 'vitest';
import { Refusal } from '../../src/kernel/errors.ts';
import { agentId, configurationId, errorOf, namespaceId, startEdge, type Edge, type RequestParts } from './edge.ts';

const agents = `/namespaces/${namespaceId}/agents`;
const agent = `${agents}/${agentId}`;
const badNamespace = '/namespaces/ns_1/agents';

const queryString = { message: 'This route takes no query string' };
const forwarded = { 'x-forwarded-for': '10.0.0.1' };
const cookieOnly = { 'x-api-key': '-', cookie: 'openclaw_occ.session_token=junk' };
const malformed = (...names: string[]) => ({ details: names.map((name) => ({ path: `/${name}`, code: 'INVALID_FORMAT' })) });

type Row = [what: string, request: RequestParts, status: number, code: string, more?: object];

const rows: readonly Row[] = [
  ['a declared length over the limit beats a query string', { method: 'POST', path: '/namespaces?a=1', headers: { 'content-length': '65537' } }, 413, 'PAYLOAD_TOO_LARGE'],
  ['a declared length over the limit counts on a bodyless route too', { method: 'POST', path: `${agent}/stop`, headers: { 'content-length': '65537' } }, 413, 'PAYLOAD_TOO_LARGE'],
  ['a declared length over the larger limit of Agent creation', { method: 'POST', path: badNamespace, headers: { 'content-length': '458753' } }, 413, 'PAYLOAD_TOO_LARGE'],
  ['a query string beats a malformed id', { path: `${badNamespace}?a=1` }, 400, 'INVALID_REQUEST', queryString],
  ['an empty query string is one', { path: '/installation?' }, 400, 'INVALID_REQUEST', queryString],
  ['a malformed id beats forwarding headers and a missing key', { path: badNamespace, headers: { ...forwarded, 'x-api-key': '-' } }, 400, 'INVALID_REQUEST', malformed('namespaceId')],
  ['every malformed id is named', { path: '/namespaces/ns_1/agents/agt_1' }, 400, 'INVALID_REQUEST', malformed('namespaceId', 'agentId')],
  ['an id in upper case is malformed', { path: agents.toUpperCase().replace('/NAMESPACES/NS', '/namespaces/ns').replace('AGENTS', 'agents').replace('-4000', '-400A') }, 400, 'INVALID_REQUEST', malformed('namespaceId')],
  ['an id of another kind is malformed', { path: `/namespaces/${configurationId}` }, 400, 'INVALID_REQUEST', malformed('namespaceId')],
  ['a deployment id is named as such', { path: `${agent}/deployments/1` }, 400, 'INVALID_REQUEST', malformed('deploymentId')],
  ['an opaque id that is too long is malformed', { path: `/namespaces/${namespaceId}/iam/roles/${'r'.repeat(201)}`, headers: { 'x-api-key': '-' } }, 400, 'INVALID_REQUEST', malformed('roleId')],
  ['forwarding headers beat a missing key', { headers: { ...forwarded, 'x-api-key': '-' } }, 403, 'FORBIDDEN', { message: 'Forwarding headers are accepted from trusted proxies only' }],
  ['a state-changing cookie without an origin beats its own verification', { method: 'POST', path: `${agent}/stop`, headers: cookieOnly }, 403, 'FORBIDDEN', { message: 'A trusted browser origin is required' }],
  ['a cookie never authenticates a read', { headers: cookieOnly }, 401, 'UNAUTHENTICATED'],
  ['a missing key beats a body that is no JSON', { method: 'POST', path: agents, headers: { 'x-api-key': '-' }, body: '{' }, 401, 'UNAUTHENTICATED'],
  ['a missing key beats a body on a bodyless route', { method: 'POST', path: `${agent}/stop`, headers: { 'x-api-key': '-' }, body: '{}' }, 401, 'UNAUTHENTICATED'],
  ['a blank key', { headers: { 'x-api-key': '' } }, 401, 'UNAUTHENTICATED'],
  ['authorization is refused beside a good key', { headers: { authorization: 'Bearer x' } }, 401, 'UNAUTHENTICATED'],
  ['a wrong media type beats a body that is no JSON', { method: 'POST', path: agents, headers: { 'content-type': 'text/plain' }, body: '{' }, 415, 'UNSUPPORTED_MEDIA_TYPE'],
  ['a body that is no JSON', { method: 'POST', path: agents, body: '{' }, 400, 'INVALID_REQUEST', { message: 'The body is not valid JSON' }],
  ['a field the schema does not know beats an unsafe name', { method: 'POST', path: '/namespaces', body: '{"name":"a","constructor":1}' }, 400, 'INVALID_REQUEST', { details: [{ path: '/constructor', code: 'UNKNOWN_FIELD' }] }],
  ['a malformed If-Match', { method: 'PATCH', path: agent, headers: { 'if-match': '4' }, body: '{}' }, 400, 'INVALID_REQUEST', { message: 'If-Match must be the ETag of an earlier answer' }],
  ['a short Idempotency-Key', { method: 'POST', path: `${agent}/deploy`, headers: { 'idempotency-key': 'short' } }, 400, 'INVALID_REQUEST', { message: 'Idempotency-Key must have 16 to 128 characters' }],
];

describe('the first failing check answers', () => {
  let edge: Edge;
  beforeEach(async () => {
    edge = await startEdge();
  });

  it.each(rows)('%s', async (_, request, status, code, more = {}) => {
    const answer = await edge.send(request);
    expect({ status: answer.status, ...errorOf(answer) }).toMatchObject({ status, code, ...more });
    expect(edge.calls).toEqual([]);
  });

  it.each([
    ['a name nested in a document', '{"kind":"agent","values":{"a":{"__proto__":1}}}', [{ path: '/values/a/__proto__', code: 'INVALID_VALUE' }]],
    ['26 levels', `{"kind":"agent","values":${'{"a":'.repeat(25)}1${'}'.repeat(25)}}`, [{ path: '/values' + '/a'.repeat(23), code: 'TOO_DEEP' }]],
  ])('the safety of the whole body comes after its schema: %s', async (_, body, details) => {
    const answer = await edge.send({ method: 'POST', path: `/namespaces/${namespaceId}/configurations`, body });
    expect(answer.status).toBe(400);
    expect(errorOf(answer).details).toEqual(details);
  });

  it('nesting that no comparison survives is too deep, not a failure of ours', async () => {
    const deep = `${'['.repeat(100_000)}${']'.repeat(100_000)}`;
    const answer = await edge.send({ method: 'POST', path: agents, body: `{"name":"a","configurationId":"${configurationId}","credentialSources":[${deep},${deep}]}` });
    expect(answer.status).toBe(400);
    expect(edge.log).toEqual([]);
  });

  it('the services come last', async () => {
    const denying = await startEdge({ answers: { 'agents.stop': new Refusal('FORBIDDEN', 'You do not have permission for this operation') } });
    expect((await denying.send({ method: 'POST', path: `${agent}/stop` })).status).toBe(403);
  });
});
