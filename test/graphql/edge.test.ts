/** GraphQL over HTTP: who is let in before a document is looked at, what is taken, and what is shown of failures. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createWorld, type World } from './world.ts';

let world: World;
let production: World;

beforeAll(async () => {
  [world, production] = await Promise.all([createWorld(), createWorld({ mode: 'production' })]);
});
afterAll(() => Promise.all([world.close(), production.close()]));

const post = (body: unknown, headers: Record<string, string> = {}, at: World = world) =>
  fetch(at.edge.endpoint, {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'x-api-key': at.adminKey, ...headers },
    body: typeof body === 'string' ? body : JSON.stringify(body),
  });

interface Problem {
  readonly message: string;
  readonly extensions: { readonly code: string; readonly status: number; readonly requestId: string };
}

const problemOf = async (response: Response): Promise<Problem['extensions']> => {
  const { errors } = (await response.json()) as { errors: readonly Problem[] };
  expect(errors).toHaveLength(1);
  return errors[0]!.extensions;
};

const introspection = { query: '{ __schema { queryType { name } } }' };

describe('a request', () => {
  it('needs a caller before its document is parsed', async () => {
    for (const body of [introspection, { query: '{ not a document' }, 'no json']) {
      const response = await post(body, { 'x-api-key': 'exk.unknown' });
      expect(response.status).toBe(401);
      expect(await problemOf(response)).toMatchObject({ code: 'UNAUTHENTICATED', status: 401, requestId: response.headers.get('x-request-id') });
    }
    const withBearer = await post(introspection, { authorization: 'Bearer x' });
    expect(withBearer.status).toBe(401);
    expect(await (await post(introspection)).json()).toEqual({ data: { __schema: { queryType: { name: 'Query' } } } });
  });

  it('is taken at its path in any case, and whatever follows it', async () => {
    for (const target of ['/GraphQL', '/GRAPHQL?query={x}', '/graphql?operationName=A']) {
      const response = await fetch(new URL(target, world.edge.endpoint), { method: 'POST', headers: { 'content-type': 'application/json', 'x-api-key': world.adminKey }, body: JSON.stringify(introspection) });
      expect(await response.text(), target).toBe('{"data":{"__schema":{"queryType":{"name":"Query"}}}}');
    }
  });

  it('carries the same headers whether it succeeds or fails', async () => {
    const subscription = { query: 'subscription { deploymentChanged(id: "rev_1") { status } }' };
    for (const response of [await post(introspection), await post('{'), await post(subscription, { accept: 'text/event-stream' })]) {
      expect(response.headers.get('cache-control')).toBe('no-store');
      expect(response.headers.get('x-content-type-options')).toBe('nosniff');
      expect(response.headers.get('x-request-id')).toMatch(/^req_/);
    }
  });

  it.each([
    ['a document as its body', 415, 'UNSUPPORTED_MEDIA_TYPE', '{ __typename }', { 'content-type': 'application/graphql' }],
    ['a form', 415, 'UNSUPPORTED_MEDIA_TYPE', 'query={__typename}', { 'content-type': 'application/x-www-form-urlencoded' }],
    ['an answer for its body', 415, 'UNSUPPORTED_MEDIA_TYPE', { query: '{ __typename }' }, { 'content-type': 'application/graphql-response+json' }],
    ['JSON of another kind', 415, 'UNSUPPORTED_MEDIA_TYPE', { query: '{ __typename }' }, { 'content-type': 'application/vnd.api+json' }],
    ['text', 415, 'UNSUPPORTED_MEDIA_TYPE', { query: '{ __typename }' }, { 'content-type': 'text/plain' }],
    ['multipart', 415, 'UNSUPPORTED_MEDIA_TYPE', '--x', { 'content-type': 'multipart/form-data; boundary=x' }],
    ['a batch', 400, 'INVALID_REQUEST', [introspection, introspection], {}],
    ['a member no client sends, as events too', 400, 'INVALID_REQUEST', { ...introspection, ' ': '' }, { accept: 'text/event-stream' }],
    ['variables that are a list', 400, 'INVALID_REQUEST', { ...introspection, variables: [] }, {}],
    ['no JSON', 400, 'INVALID_REQUEST', '{', {}],
    ['no operation', 400, 'INVALID_REQUEST', { variables: {} }, {}],
    ['too much', 413, 'PAYLOAD_TOO_LARGE', `{"query":"${'x'.repeat(1024 * 1024)}"}`, {}],
  ])('with %s is refused', async (_, status, code, body, headers) => {
    const response = await post(body, headers);
    expect(response.status).toBe(status);
    expect((await problemOf(response)).code).toBe(code);
  });

  it.each(['text/html', 'multipart/mixed', 'application/json;charset=latin1', ',', 'application/json'])('that accepts %s is answered in a form there is, once it is done', async (accept) => {
    const response = await post(introspection, { accept });
    expect([response.status, response.headers.get('content-type')]).toEqual([200, 'application/json; charset=utf-8']);
    expect(await response.json()).toHaveProperty('data');
    const stream = await post({ query: 'subscription { deploymentChanged(id: "rev_1") { status } }' }, { accept });
    expect(await stream.text()).toContain('"code":"');
  });

  it('whose body turns out too large on the way is answered', async () => {
    const chunk = new TextEncoder().encode('x'.repeat(64 * 1024));
    let sent = 0;
    const body = new ReadableStream({ pull: (stream) => (sent++ < 20 ? stream.enqueue(chunk) : stream.close()) });
    const response = await fetch(world.edge.endpoint, { method: 'POST', headers: { 'content-type': 'application/json', 'x-api-key': world.adminKey }, body, duplex: 'half' } as RequestInit);
    expect((await problemOf(response)).code).toBe('PAYLOAD_TOO_LARGE');
  });

  it('with a document that does not fit the schema is the caller\'s error', async () => {
    for (const body of [{ query: '{ lobster }' }, { query: '{' }, { query: 'query ($id: ID!) { node(id: $id) { id } }', variables: {} }]) {
      const response = await post(body);
      expect(response.status).toBe(400);
      expect((await problemOf(response)).code).toBe('INVALID_REQUEST');
    }
  });

  const operations = ['{__typename}', 'mutation{createNamespace(input:{name:"by-get"}){__typename}}'];
  const namespaceNames = async (at: World): Promise<string> => JSON.stringify(await (await post({ query: '{ namespaces { nodes { name } } }' }, {}, at)).json());

  it.each(['GET', 'HEAD', 'PUT', 'DELETE', 'OPTIONS'])('by %s runs nothing', async (method) => {
    for (const query of operations) {
      const response = await fetch(`${production.edge.endpoint}?query=${encodeURIComponent(query)}`, { method, headers: { 'x-api-key': production.adminKey } });
      expect(response.status).toBe(405);
      expect(response.headers.get('allow')).toBe('POST');
      if (method !== 'HEAD') expect((await problemOf(response)).code).toBe('METHOD_NOT_ALLOWED');
    }
    expect(await namespaceNames(production)).not.toContain('by-get');
  });

  it('by GET gets the page in development, whatever it asks for', async () => {
    for (const query of operations) {
      const response = await fetch(`${world.edge.endpoint}?query=${encodeURIComponent(query)}`, { headers: { 'x-api-key': world.adminKey, accept: 'application/json' } });
      expect(response.headers.get('content-type')).toBe('text/html; charset=utf-8');
    }
    expect(await namespaceNames(world)).not.toContain('by-get');
  });
});

describe('the GraphiQL page', () => {
  it('is served in development, without a caller, and loads nothing from another host', async () => {
    const response = await fetch(world.edge.endpoint, { headers: { accept: 'text/html' } });
    expect(response.status).toBe(200);
    expect(response.headers.get('content-type')).toBe('text/html; charset=utf-8');
    expect(response.headers.get('content-security-policy')).toContain("default-src 'none'; connect-src 'self'");
    const html = await response.text();
    expect(html).toContain('GraphiQL');
    expect(html).not.toMatch(/unpkg|jsdelivr|cdnjs|esm\.sh|googleapis/);
    const markup = html.replaceAll(/<script>[\s\S]*<\/script>/g, '');
    expect(markup).not.toMatch(/(?:src|href|url|@import)\s*[=(]?\s*["'(]?\s*(?:https?:)?\/\//);
    expect(html).not.toMatch(/<(?:script|link|img|iframe)[^>]+(?:src|href)\s*=\s*["']?(?:https?:)?\/\//);
  });
});

describe('a fault', () => {
  it('is masked, and logged once with its cause', async () => {
    const { services } = world;
    const { get } = services.installation;
    Object.assign(services.installation, { get: () => Promise.reject(new Error('the secret of the sea')) });
    const response = await post({ query: '{ installation { name } }' });
    Object.assign(services.installation, { get });
    const text = await response.text();
    expect(text).not.toContain('secret of the sea');
    const { data, errors } = JSON.parse(text) as { data: unknown; errors: readonly Problem[] };
    expect(data).toEqual({ installation: null });
    expect(errors[0]?.extensions).toMatchObject({ code: 'INTERNAL_ERROR', status: 500, requestId: response.headers.get('x-request-id') });
    expect(world.log.splice(0)).toEqual([expect.objectContaining({ requestId: response.headers.get('x-request-id'), error: expect.objectContaining({ message: 'the secret of the sea' }) as unknown })]);
  });

  it.each([
    ['a number too large', { revision: 2 ** 31 }, 'revision'],
    ['a number that is none', { revision: 'first' }, 'revision'],
    ['a value of no enumeration', { harness: { id: 'openclaw', version: '1', mode: 'sunken' } }, 'harness { mode }'],
    ['a member that is missing', { configurationId: null }, 'configurationId'],
    ['a list that is none', { settings: { credentialSources: 'sunken' } }, 'credentialSources { sourceId }'],
  ])('is %s where a stored one should be: not the caller\'s error', async (_, stored, selection) => {
    const { services } = world;
    const { get } = services.revisions;
    const view = { id: 'rev_1', namespaceId: 'ns_1', agentId: 'agt_1', settings: {}, ...stored };
    Object.assign(services.revisions, { get: () => Promise.resolve(view) });
    const response = await post({ query: `{ agentRevision(id: "rev_00000000-0000-4000-8000-000000000000", namespaceId: "ns_00000000-0000-4000-8000-000000000000", agentId: "agt_00000000-0000-4000-8000-000000000000") { ${selection} } }` });
    Object.assign(services.revisions, { get });
    const text = await response.text();
    expect(text).not.toMatch(/sunken|2147483648|first/);
    const { errors } = JSON.parse(text) as { errors: readonly Problem[] };
    expect(errors.map(({ extensions: { code, status } }) => [code, status])).toEqual([['INTERNAL_ERROR', 500]]);
    expect(world.log.splice(0)).toEqual([expect.objectContaining({ requestId: response.headers.get('x-request-id'), msg: 'Request failed' })]);
  });

  it.each([
    ['query ($id: ID = "ns_1") { namespace(id: $id) { name } }', { id: null }],
    ['query ($id: ID) { nodes(ids: [$id]) { id } }', {}],
    ['query ($input: CreateNamespaceInput!) { __typename }', { input: 1 }],
  ])('is not what a caller left out: %s', async (query, variables) => {
    expect((await problemOf(await post({ query, variables }))).code).toBe('INVALID_REQUEST');
    expect(world.log).toEqual([]);
  });
});

it('nesting that no comparison survives is too deep, not a failure of ours', async () => {
  const list = `${'['.repeat(60_000)}${']'.repeat(60_000)}`;
  const query = 'mutation ($input: CreateAgentInput!) { createAgent(input: $input) { ... on Refusal { code details { code } } } }';
  const input = `{"namespaceId":"ns_00000000-0000-4000-8000-000000000000","name":"a","configurationId":"cfg_00000000-0000-4000-8000-000000000000","plugins":{"a@b":{"enabled":true,"approvers":[${list},${list}]}}}`;
  const response = await post(`{"query":${JSON.stringify(query)},"variables":{"input":${input}}}`);
  expect(await response.json()).toEqual({ data: { createAgent: { code: 'INVALID_REQUEST', details: [{ code: 'TOO_DEEP' }] } } });
});
