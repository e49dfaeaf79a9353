/** Which check comes first: every request below breaks several rules, and the answer names the first of them. What follows the shape of the body: ../authorization/check-order.test.ts. (rest-contract 1.1, client-expectations CX-22) */
import { beforeEach, describe, expect, it } from 'vitest';
import type { Route } from '../../src/http/rest/route.ts';
import { routes } from '../../src/http/rest/routes.ts';
import { Refusal } from '../../src/kernel/errors.ts';
import { agentId, configurationId, errorOf, key, namespaceId, person, revisionId, startEdge, type Edge, type RequestParts } from './edge.ts';

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

/** A check of the pipeline: what breaks it on a route, and what it alone answers. */
interface Check {
  readonly name: string;
  /** Undefined where the route has no such check. */
  readonly broken: (route: Route) => Partial<Draft> | undefined;
  readonly answer: object;
}

interface Draft {
  readonly method: string;
  readonly ending: string;
  readonly query: string;
  readonly id: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

const invalid = { status: 400, code: 'INVALID_REQUEST' };
const whenBody = (draft: Partial<Draft>) => ({ body }: Route) => (body === undefined ? undefined : draft);
const isUnsafe = ({ method }: Route) => method !== 'GET';

/** In the order of the contract. */
const checks: readonly Check[] = [
  { name: 'the route', broken: () => ({ ending: '/no/such/route' }), answer: { status: 404, code: 'NOT_FOUND', message: 'There is no such route' } },
  { name: 'the method', broken: ({ path }) => (path.startsWith('/api/auth/') || path.endsWith('/native-admin') ? undefined : { method: 'PUT' }), answer: { status: 405, code: 'METHOD_NOT_ALLOWED' } },
  { name: 'the declared length', broken: ({ bodyLimit = 65_536 }) => ({ headers: { 'content-length': String(bodyLimit + 1) } }), answer: { status: 413, code: 'PAYLOAD_TOO_LARGE' } },
  { name: 'a person where no key is taken', broken: ({ access }) => (access === 'human' ? { headers: { 'x-api-key': key } } : undefined), answer: { status: 401, code: 'UNAUTHENTICATED' } },
  { name: 'the query string', broken: () => ({ query: '?a=1' }), answer: { ...invalid, ...queryString } },
  { name: 'the ids of the path', broken: ({ path }) => (path.includes(':') ? { id: '%00' } : undefined), answer: { ...invalid, details: expect.arrayContaining([{ path: expect.stringMatching(/Id$/) as unknown, code: 'INVALID_FORMAT' }]) as unknown } },
  { name: 'forwarding headers', broken: () => ({ headers: forwarded }), answer: { status: 403, code: 'FORBIDDEN', message: 'Forwarding headers are accepted from trusted proxies only' } },
  {
    name: 'the origin',
    broken: (route) => {
      if (route.origin === 'sign-in') return { headers: { origin: 'https://evil.example' } };
      return route.access !== 'public' && (route.origin === 'exact' || isUnsafe(route)) ? { headers: { ...cookieOnly, origin: '-' } } : undefined;
    },
    answer: { status: 403, code: 'FORBIDDEN', message: 'A trusted browser origin is required' },
  },
  { name: 'the credential', broken: ({ access }) => (access === 'public' ? undefined : { headers: { 'x-api-key': '-', cookie: '-' } }), answer: { status: 401, code: 'UNAUTHENTICATED' } },
  { name: 'the media type', broken: whenBody({ headers: { 'content-type': 'text/plain' }, body: '[]' }), answer: { status: 415, code: 'UNSUPPORTED_MEDIA_TYPE' } },
  { name: 'JSON', broken: whenBody({ body: '{' }), answer: { ...invalid, message: 'The body is not valid JSON' } },
  { name: 'no body', broken: ({ body }) => (body === undefined ? { body: '{}' } : undefined), answer: { ...invalid, message: 'This route takes no body' } },
  { name: 'the schema', broken: whenBody({ body: '[]' }), answer: { ...invalid, details: [{ path: '', code: 'INVALID_TYPE' }] } },
];

const ids: Readonly<Record<string, string>> = { namespaceId, agentId, configurationId, revisionId, deploymentId: revisionId };

/** The request of a route that breaks these checks and no other one before them. */
const breaking = (route: Route, drafts: readonly Partial<Draft>[]): RequestParts => {
  const by = route.access === 'human' ? { 'x-api-key': '-', cookie: person.cookie, origin: person.origin } : {};
  // Later checks first, so that what an earlier one needs stays.
  const { method = route.method, ending = '', query = '', id, body } = drafts.reduceRight<Partial<Draft>>((all, draft) => ({ ...all, ...draft }), {});
  const headers = drafts.reduceRight<Record<string, string>>((all, draft) => ({ ...all, ...draft.headers }), { ...by });
  return { method, path: route.path.replaceAll(/:(\w+)/g, (_, name: string) => id ?? ids[name] ?? 'any') + ending + query, headers, ...(body !== undefined && { body }) };
};

describe('on every route the earlier of two failing checks answers', () => {
  it.each(routes.map((route) => [`${route.method} ${route.path}`, route] as const))('%s', async (_, route) => {
    const edge = await startEdge();
    const applying = checks.flatMap(({ broken, ...check }) => ((draft) => (draft === undefined ? [] : [{ ...check, draft }]))(broken(route)));
    expect(applying.length).toBeGreaterThan(3);
    for (const [index, earlier] of applying.entries()) {
      for (const later of [undefined, ...applying.slice(index + 1)]) {
        const answer = await edge.send(breaking(route, [earlier.draft, ...(later === undefined ? [] : [later.draft])]));
        const both = `${earlier.name} before ${later?.name ?? 'everything else'}`;
        expect({ both, status: answer.status, ...errorOf(answer) }).toMatchObject({ both, ...earlier.answer });
      }
    }
    expect(edge.calls).toEqual([]);
  });
});
