/** The proxy of Agent hosts over real HTTP, to a gateway with TLS. (agent-lifecycle 9.2) */
import { once } from 'node:events';
import { request as requestOf, type IncomingMessage } from 'node:http';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { agents } from '../../src/aggregates.ts';
import { agentHost, hashOf, isAgentDomain } from '../../src/native-admin/domains.ts';
import { rewrittenLocation } from '../../src/http/native-admin/target.ts';
import { systemContext } from '../../src/installation/bootstrap.ts';
import { newId } from '../../src/kernel/ids.ts';
import { exchange } from '../support/raw-http.ts';
import { auditOf, eventsOf } from '../support/request-events.ts';
import { startTlsGateway, type TlsGateway } from '../support/tls-gateway.ts';
import { until } from '../support/until.ts';
import { useCases as use, type AgentPlace } from '../support/use-cases.ts';
import { browse, type Page } from './browser.ts';
import { manualTimers } from './timers.ts';
import { consolePage, domain, sharedCookieName, startNativeAdminWorld, type NativeAdminWorld } from './world.ts';

const timers = manualTimers();
let world: NativeAdminWorld;
let gateway: TlsGateway;
let place: AgentPlace & { readonly revisionId: string };
let host: string;
let cookie: string;

const settings = { domain, consoleOrigin: consolePage, cookieDomain: 'occ.example.com' };
const hostOf = (agent: AgentPlace): string => agentHost(settings, hashOf(world.operator.installationId, agent)).host;

beforeAll(async () => {
  gateway = await startTlsGateway();
  world = await startNativeAdminWorld({ seams: { timers } });
  place = await world.serving();
  world.endpoints.set(place.agentId, gateway.endpoint);
  host = hostOf(place);
  ({ cookie } = await world.person(place, 'agent:administer'));
});
afterEach(() => gateway.reset());
afterAll(async () => {
  await world?.close();
  await gateway?.close();
});

const get = (path: string, more: Parameters<typeof browse>[3] = {}, at = host): Promise<Page> => browse(world.application.origin, at, path, { ...more, headers: { cookie, ...more.headers } });
const post = (origin: string | undefined, body = 'written') => get('/write', { method: 'POST', headers: origin === undefined ? {} : { origin }, body });
const auditOfPage = async ({ headers }: Page) => auditOf(await eventsOf(world.application.database, headers['x-request-id'] as string));

describe('a request of who may administer the Agent', () => {
  it('gets to the gateway, below its base', async () => {
    const page = await get('/chat/a%20b?session=main&x=%2F');
    expect(page).toMatchObject({ status: 200, body: '<title>native</title>' });
    expect(gateway.requests).toMatchObject([{ method: 'GET', url: '/base/chat/a%20b?session=main&x=%2F', body: '' }]);
    expect(page.headers['x-request-id']).toMatch(/^req_/);
    expect(await auditOfPage(page)).toEqual([]);
  });

  it.each(['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'])('keeps its method: %s', async (method) => {
    expect((await get('/', { method, headers: { origin: `https://${host}` } })).status).toBe(200);
    expect(gateway.requests).toMatchObject([{ method, url: '/base/' }]);
  });

  it.each([undefined, 'chunked'])('brings its body along: %s', async (encoding) => {
    const body = 'x'.repeat(200_000);
    const headers = { origin: `https://${host}`, 'content-type': 'text/plain', ...(encoding === undefined ? { 'content-length': String(body.length) } : { 'transfer-encoding': encoding }) };
    expect((await get('/write', { method: 'POST', headers, body })).status).toBe(200);
    expect(gateway.requests[0]?.body).toBe(body);
  });

  const inner = 'POST /base/write HTTP/1.1\r\nhost: gateway\r\ncontent-length: 0\r\n\r\n';
  it.each(['GET', 'HEAD', 'POST', 'DELETE', 'OPTIONS'].flatMap((method) => [
    [method, 'chunked', `transfer-encoding: chunked\r\n\r\n${inner.length.toString(16)}\r\n${inner}\r\n0\r\n\r\n`] as const,
    [method, 'with a length that is named as of the connection', `connection: content-length\r\ncontent-length: ${inner.length}\r\n\r\n${inner}`] as const,
  ]))('keeps its body apart from the next request: %s, %s', async (method, _, rest) => {
    const { status } = await exchange(world.application.origin, `${method} / HTTP/1.1\r\nhost: ${host}\r\norigin: https://${host}\r\ncookie: ${cookie}\r\n${rest}`);
    expect(status).toBe(200);
    await until('the gateway to have been asked', () => gateway.requests, ({ length }) => length > 0);
    expect(gateway.requests).toMatchObject([{ method, body: inner }]);
  });

  it('does not make the session longer', async () => {
    const expiry = async () => (await world.application.database.pool.query<{ expires_at: Date }>('select expires_at from session order by 1')).rows;
    const before = await expiry();
    await get('/');
    expect(await expiry()).toEqual(before);
  });

  it('gets to the version that is selected now', async () => {
    const moving = await world.serving();
    const { cookie: own } = await world.person(moving, 'agent:administer');
    const at = (path: string) => browse(world.application.origin, hostOf(moving), path, { headers: { cookie: own } });
    world.endpoints.set(moving.agentId, gateway.endpoint);
    expect((await at('/')).status).toBe(200);
    world.endpoints.delete(moving.agentId);
    expect(await at('/')).toMatchObject({ status: 409, code: 'RESOURCE_CONFLICT' });
    const next = await startTlsGateway();
    try {
      await world.select(moving, await world.deploy(moving));
      world.endpoints.set(moving.agentId, next.endpoint);
      expect((await at('/')).status).toBe(200);
      expect([gateway.requests.length, next.requests.length]).toEqual([1, 1]);
    } finally {
      await next.close();
    }
    await world.admin(use.stopAgent(moving));
    expect(await at('/')).toMatchObject({ status: 409, code: 'RESOURCE_CONFLICT' });
  });
});

describe('nobody else gets in', () => {
  const refused = async (page: Promise<Page>, status: number, code: string): Promise<Page> => {
    const found = await page;
    expect({ status: found.status, code: found.code }).toEqual({ status, code });
    expect(gateway.requests).toEqual([]);
    return found;
  };
  const denial = (principalId: string) => [
    { kind: 'authorization_denial', outcome: 'denied', action: 'openclaw.agents.native_admin.request', authorization: { principalId, action: 'administer', resource: { kind: 'agent', id: place.agentId } } },
  ];

  it('without a session, with the cookie of another name, or with two', async () => {
    const token = cookie.split('=')[1]!;
    for (const sent of [undefined, `openclaw_occ.session_token=${token}`, `openclaw_occ_shared.session_token=${token}`, `${cookie}; ${cookie}`, `${sharedCookieName}=junk`])
      await refused(browse(world.application.origin, host, '/', { headers: sent === undefined ? {} : { cookie: sent } }), 401, 'UNAUTHENTICATED');
  });

  it('who may read and operate the Agent', async () => {
    const { id, cookie: own } = await world.person(place, 'agent:read', 'agent:operate');
    expect(await auditOfPage(await refused(get('/', { headers: { cookie: own } }), 403, 'FORBIDDEN'))).toMatchObject(denial(id));
  });

  it('a service key, whatever it may do', async () => {
    const page = await refused(browse(world.application.origin, host, '/', { headers: { 'x-api-key': world.application.key } }), 403, 'FORBIDDEN');
    expect(await auditOfPage(page)).toMatchObject([{ kind: 'authorization_denial', action: 'openclaw.agents.native_admin.request', outcome: 'denied' }]);
  });

  it('who has lost the grant, from the next request on', async () => {
    const person = await world.person(place, 'agent:administer');
    expect((await get('/', { headers: { cookie: person.cookie } })).status).toBe(200);
    gateway.reset();
    await person.revoke('agent:administer');
    await refused(get('/', { headers: { cookie: person.cookie } }), 403, 'FORBIDDEN');
  });

  it.each([
    ['a hash that no Agent has', () => `agent-${'0'.repeat(40)}.${domain}`],
    ['the domain itself', () => domain],
    ['another label', () => `console.${domain}`],
    ['a label too many', () => `a.${host}`],
    ['the dot of the root', () => `${host}.`],
  ])('at %s, for any path of ours', async (_, at) => {
    for (const path of ['/', '/installation', '/graphql', '/healthz', '/readyz', '/metrics', '/openapi.json', '/api/auth/session', '/api/auth/providers']) await refused(get(path, {}, at()), 404, 'NOT_FOUND');
  });

  it('at the host of an Agent that is gone', async () => {
    const gone = await world.serving();
    world.endpoints.set(gone.agentId, gateway.endpoint);
    const { cookie: own } = await world.person(gone, 'agent:administer');
    const at = hostOf(gone);
    expect((await get('/', { headers: { cookie: own } }, at)).status).toBe(200);
    gateway.reset();
    const loaded = await world.operator.streams.load(agents, gone.agentId);
    await world.operator.streams.append(agents, loaded, [{ type: 'AgentRemoved', data: { agentId: gone.agentId, namespaceId: gone.namespaceId } }], systemContext(world.operator.installationId));
    await refused(get('/', { headers: { cookie: own } }, at), 404, 'NOT_FOUND');
  });

  it('an Agent host serves no route of ours, whoever asks', async () => {
    for (const path of ['/namespaces', '/graphql', '/healthz', '/openapi.json', '/api/auth/session']) expect((await get(path)).body).toBe('<title>native</title>');
    expect(gateway.requests.map(({ url }) => url)).toEqual(['/base/namespaces', '/base/graphql', '/base/healthz', '/base/openapi.json', '/base/api/auth/session']);
    gateway.reset();
    const unsigned = await browse(world.application.origin, host, '/healthz');
    expect([unsigned.status, gateway.requests]).toEqual([401, []]);
  });

  it.each([
    ['a target that names the Agent host', () => `GET http://${host}/healthz HTTP/1.1\r\nhost: ${new URL(consolePage).host}\r\n`],
    ['a target that names ours', () => `GET ${consolePage}/healthz HTTP/1.1\r\nhost: ${host}\r\n`],
    ['a second Host after that of the Agent', () => `GET /healthz HTTP/1.1\r\nhost: ${host}\r\nhost: ${new URL(consolePage).host}\r\n`],
    ['a second Host', () => `GET /healthz HTTP/1.1\r\nhost: ${new URL(consolePage).host}\r\nhost: ${host}\r\n`],
    ['a Host with a user', () => `GET /healthz HTTP/1.1\r\nhost: a@${host}\r\n`],
  ])('%s gets no answer of ours', async (_, text) => {
    const answer = await exchange(world.application.origin, `${text()}cookie: ${cookie}\r\n\r\n`);
    expect([400, 404]).toContain(answer.status);
    expect(answer.body).toContain('"error"');
    expect(gateway.requests).toEqual([]);
  });

  it('forwarding headers need a trusted proxy here too', async () => {
    await refused(get('/', { headers: { 'x-forwarded-for': '10.0.0.1' } }), 403, 'FORBIDDEN');
  });

  it.each([undefined, 'null', consolePage, `http://agent-0.${domain}`, `https://agent-${'0'.repeat(40)}.${domain}`, `https://${domain}`])('a write from the origin %s', async (origin) => {
    await refused(post(origin), 403, 'FORBIDDEN');
  });

  it.each(['same-site', 'cross-site'])('a script or a picture of a page elsewhere: %s', async (site) => {
    for (const mode of ['cors', 'no-cors', 'websocket', undefined]) await refused(get('/', { headers: { 'sec-fetch-site': site, ...(mode !== undefined && { 'sec-fetch-mode': mode }) } }), 403, 'FORBIDDEN');
    expect((await get('/', { headers: { 'sec-fetch-site': site, 'sec-fetch-mode': 'navigate' } })).status).toBe(200);
  });

  it.each(['TRACE', 'PROPFIND'])('the method %s', async (method) => {
    await refused(get('/', { method, headers: { origin: `https://${host}` } }), 405, 'METHOD_NOT_ALLOWED');
  });

  it.each([{ 'service-worker': 'script' }, { 'sec-fetch-dest': 'serviceworker' }])('the script of a service worker: %j', async (headers) => {
    await refused(get('/sw.js', { headers }), 403, 'FORBIDDEN');
  });

  it.each(['//evil.example/', '/a//b', '/a/../b', '/a/./b', '/%2e%2e/b', '/a%2fb', '/a%5cb', '/a\\b', '/a%00', '/a%0d%0aset-cookie:a', '/a%zz', '/a"b', `/${'a'.repeat(4_096)}`, '*', '/#a'])('the path %s', async (path) => {
    const answer = await exchange(world.application.origin, `GET ${path} HTTP/1.1\r\nhost: ${host}\r\ncookie: ${cookie}\r\n\r\n`);
    expect([answer.status, gateway.requests]).toEqual([400, []]);
  });

  it('a longest path still passes', async () => {
    expect((await get(`/${'a'.repeat(4_095)}`)).status).toBe(200);
  });
});

describe('headers', () => {
  it('of credentials, identities, scopes and ways do not get to the gateway', async () => {
    const withheld = {
      'x-auth-token': 'a',
      'x-occ-identity': 'a',
      'x-occ-session-role': 'a',
      'x-openclaw-scopes': 'operator.admin',
      'x-openclaw-agent': 'a',
      'tailscale-user-login': 'a',
      'x-ms-client-principal-name': 'a',
      'x-amzn-oidc-identity': 'a',
      'x-remote-user': 'a',
      'x-client-ip': '10.0.0.1',
      'true-client-ip': '10.0.0.1',
      'x-original-url': '/a',
      'x-http-method-override': 'DELETE',
      via: '1.1 a',
      te: 'trailers',
      referer: `https://${host}/`,
      x_occ_identity: 'a',
      connection: 'close, x-of-one-hop',
      'x-of-one-hop': 'a',
      'keep-alive': 'timeout=5',
      'proxy-connection': 'close',
    };
    const kept = { accept: 'text/html', 'accept-language': 'de', 'user-agent': 'a browser', 'if-none-match': '"1"', 'x-csrf-token': 'a', 'sec-fetch-mode': 'navigate' };
    expect((await get('/', { headers: { ...withheld, ...kept } })).status).toBe(200);
    const { host: named, authorization, connection, ...got } = gateway.requests[0]!.headers;
    expect({ named, authorization, connection }).toEqual({ named: new URL(gateway.endpoint.url).host, authorization: 'Bearer gateway-token', connection: 'close' });
    expect(got).toEqual(kept);
  });

  it('of the gateway are held to the same, and no cookie of it is kept', async () => {
    const withheld = ['set-cookie', 'set-cookie2', 'clear-site-data', 'www-authenticate', 'authorization', 'x-api-key', 'x-forwarded-for', 'x-occ-role', 'x-openclaw-scopes', 'access-control-allow-origin', 'access-control-allow-credentials', 'service-worker-allowed', 'alt-svc', 'refresh', 'proxy-authenticate'];
    gateway.answer = (_, response) => void response.writeHead(200, { ...Object.fromEntries(withheld.map((name) => [name, 'a'])), 'content-type': 'text/html', etag: '"1"', 'cache-control': 'public, max-age=60', 'x-request-id': 'theirs' }).end('a');
    const { status, headers } = await get('/');
    expect(status).toBe(200);
    expect(Object.keys(headers).filter((name) => withheld.includes(name))).toEqual([]);
    expect(headers).toMatchObject({ 'content-type': 'text/html', etag: '"1"', 'cache-control': 'no-store' });
  });

  it.each([
    [undefined, "worker-src 'none'"],
    [["default-src 'self'"], "default-src 'self', worker-src 'none'"],
    [["default-src 'self'; worker-src *", "img-src 'self'"], "default-src 'self'; worker-src *, img-src 'self', worker-src 'none'"],
  ])('a policy of %j ends with no workers', async (policy, expected) => {
    gateway.answer = (_, response) => void response.writeHead(200, (policy ?? []).flatMap((one) => ['content-security-policy', one])).end();
    expect((await get('/')).headers['content-security-policy']).toBe(expected);
  });
});

describe('a redirect', () => {
  const base = 'wss://gateway.svc:8443/base';
  const requested = new URL('https://gateway.svc:8443/base/a/b?c');
  it.each([
    ['https://gateway.svc:8443/base/d?e#f', 'https://agent/d?e#f'],
    ['http://gateway.svc:8443/base/d', 'https://agent/d'],
    ['//gateway.svc:8443/base/d', 'https://agent/d'],
    ['/base/d', 'https://agent/d'],
    ['/base', 'https://agent/'],
    ['d', 'https://agent/a/d'],
    ['?g', 'https://agent/a/b?g'],
    ['/outside', undefined],
    ['/based', undefined],
    ['../../../d', undefined],
    ['https://elsewhere.example/base/d', 'https://elsewhere.example/base/d'],
  ])('to %s leads to %s', (location, expected) => {
    expect(rewrittenLocation(location, base, requested, 'https://agent')).toBe(expected);
  });

  it('of the gateway to itself leads to the Agent host', async () => {
    gateway.answer = (_, response) => void response.writeHead(302, { location: `${gateway.endpoint.url.replace('wss:', 'https:')}/login` }).end();
    expect(await get('/')).toMatchObject({ status: 302, headers: { location: `https://${host}/login` } });
  });

  it('out of its base is no answer', async () => {
    gateway.answer = (_, response) => void response.writeHead(302, { location: '/of-another-agent' }).end();
    expect(await get('/')).toMatchObject({ status: 503, code: 'DEPENDENCY_UNAVAILABLE' });
  });
});

describe('what the gateway answers', () => {
  it.each([200, 204, 304, 404, 500, 502])('passes with its status: %i', async (status) => {
    gateway.answer = (_, response) => void response.writeHead(status).end();
    expect((await get('/api/users/u/avatars')).status).toBe(status);
  });

  it('a picture of a user that it could not fetch is none', async () => {
    gateway.answer = (_, response) => void response.writeHead(502, { 'content-type': 'text/plain' }).end('bad gateway');
    expect(await get('/api/users/u%401/avatar?size=1')).toMatchObject({ status: 404, body: '', headers: { 'content-length': '0' } });
    gateway.answer = (_, response) => void response.writeHead(200).end('picture');
    expect(await get('/api/users/u/avatar')).toMatchObject({ status: 200, body: 'picture' });
  });

  it('a write that it breaks off is not sent again', async () => {
    gateway.answer = (_, response) => void response.destroy();
    expect(await post(`https://${host}`)).toMatchObject({ status: 503, code: 'DEPENDENCY_UNAVAILABLE' });
    expect(gateway.requests).toHaveLength(1);
  });

  it('none at all is unavailable after a while', async () => {
    gateway.answer = () => {};
    const page = get('/');
    await until('the gateway to be asked', () => gateway.requests.length, (count) => count === 1);
    await timers.expire();
    expect(await page).toMatchObject({ status: 503, code: 'DEPENDENCY_UNAVAILABLE' });
  });

  it('another protocol that nobody asked for is no answer', async () => {
    gateway.answer = (_, response) => void response.writeHead(101, { connection: 'upgrade', upgrade: 'other' }).end();
    expect(await get('/')).toMatchObject({ status: 503, code: 'DEPENDENCY_UNAVAILABLE' });
    expect(timers.running()).toBe(0);
  });

  it('an answer that breaks off is cut', async () => {
    gateway.answer = (_, response) => {
      response.writeHead(200, { 'content-length': '100' }).write('begun');
      setImmediate(() => response.destroy());
    };
    await expect(get('/')).rejects.toThrow('aborted');
  });

  it.each([
    ['with a certificate nobody vouches for', () => ({ ...gateway.endpoint, certificate: undefined })],
    ['under another name than its certificate says', () => ({ ...gateway.endpoint, url: gateway.endpoint.url.replace('127.0.0.1', '127.0.0.2') })],
    ['that does not listen', () => ({ ...gateway.endpoint, url: 'wss://127.0.0.1:1' })],
  ])('a gateway %s is asked nothing', async (_, endpoint) => {
    const other = await world.serving();
    const { certificate, ...rest } = endpoint();
    world.endpoints.set(other.agentId, { ...rest, ...(certificate !== undefined && { certificate }) });
    const { cookie: own } = await world.person(other, 'agent:administer');
    expect(await get('/', { headers: { cookie: own } }, hostOf(other))).toMatchObject({ status: 503, code: 'DEPENDENCY_UNAVAILABLE' });
    expect(gateway.requests).toEqual([]);
  });

  it('that lasts is cut when whoever asked may no longer see it', async () => {
    const person = await world.person(place, 'agent:administer');
    gateway.answer = (_, response) => void response.writeHead(200, { 'content-type': 'text/event-stream' }).write('data: 1\n\n');
    const { hostname, port } = new URL(world.application.origin);
    const request = requestOf({ hostname, port, path: '/events', headers: { host, cookie: person.cookie }, agent: false });
    const [response] = (await once(request.end(), 'response')) as [IncomingMessage];
    response.resume();
    const cut = new Promise((resolve) => response.once('error', resolve));
    await timers.fire();
    await until('the look to be over', () => timers.waiting(), (count) => count === 0);
    expect(response.destroyed).toBe(false);
    await person.revoke('agent:administer');
    await timers.fire();
    expect(await cut).toMatchObject({ code: 'ECONNRESET' });
    await until('no lease', () => timers.running(), (count) => count === 0);
  });
});

it('a console inside the Agent domain is no Agent', () => {
  const shared = { domain: 'occ.example.com', consoleOrigin: consolePage, cookieDomain: 'occ.example.com' };
  expect(['console.occ.example.com', 'agent-1.occ.example.com', 'occ.example.com', 'evilocc.example.com'].map((name) => isAgentDomain(shared, name))).toEqual([false, true, true, false]);
});

it('the console answers beside the Agent hosts as it always did', async () => {
  const console = new URL(consolePage).host;
  expect((await browse(world.application.origin, console, '/healthz')).status).toBe(200);
  const upgrading = { headers: { connection: 'upgrade', upgrade: 'websocket' } };
  expect(await browse(world.application.origin, console, `/namespaces/${newId('ns')}`, upgrading)).toMatchObject({ status: 401, code: 'UNAUTHENTICATED' });
});
