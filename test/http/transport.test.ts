/** By which ways a request may come: proxies, the loopback rule of development, and the origin rule of cookies. (rest-contract 1.1 steps 4 and 5, 1.8; iam-auth-audit 1.5) */
import { describe, expect, it } from 'vitest';
import { createTransport } from '../../src/http/transport.ts';
import { agentId, namespaceId, startEdge, type RequestParts } from './edge.ts';
import { agentView, installationView } from './views.ts';

const answers = { 'installation.get': installationView, 'agents.stop': agentView };
const stop = { method: 'POST', path: `/namespaces/${namespaceId}/agents/${agentId}/stop` };

const statusIn = async (settings: Parameters<typeof startEdge>[0] & object, request: RequestParts): Promise<number> => {
  const answer = await (await startEdge({ answers, ...settings })).send(request);
  if (answer.status === 403) expect(answer.body).toContain('"code":"FORBIDDEN"');
  return answer.status;
};

describe('forwarding headers', () => {
  it.each([['forwarded'], ['x-real-ip'], ['x-forwarded-for'], ['x-forwarded-anything'], ['X-Forwarded-Proto']])('%s needs a trusted proxy', async (name) => {
    const request = { headers: { [name]: '10.0.0.1' } };
    expect(await statusIn({}, request)).toBe(403);
    expect(await statusIn({ settings: { trustedProxies: ['10.0.0.0/8'] } }, request)).toBe(403);
    expect(await statusIn({ settings: { trustedProxies: ['127.0.0.1'] } }, request)).toBe(200);
    expect(await statusIn({ settings: { trustedProxies: ['::1', '127.0.0.0/8'] } }, request)).toBe(200);
  });
});

describe('development', () => {
  const development = { settings: { mode: 'development' as const } };

  it.each([
    ['localhost', 200],
    ['localhost:4000', 200],
    ['127.0.0.1:4000', 200],
    ['[::1]:4000', 200],
    ['LOCALHOST', 200],
    ['agent-1.agents.exuvia.localhost:4000', 200],
    ['evil-localhost', 403],
    ['evil.example', 403],
    ['localhost.evil.example', 403],
    ['127.0.0.1.evil.example', 403],
    ['192.168.0.7:4000', 403],
    ['', 403],
  ])('Host %j: %i', async (host, status) => expect(await statusIn(development, { headers: { host } })).toBe(status));

  it.each([
    ['http://localhost:4000', 200],
    ['https://127.0.0.1', 200],
    ['http://console.exuvia.localhost:4000', 200],
    ['https://console.example', 403],
    ['null', 403],
    ['http://localhost.evil.example', 403],
  ])('Origin %s: %i', async (origin, status) => expect(await statusIn(development, { headers: { origin } })).toBe(status));

  it.each([
    ['127.0.0.1', true],
    ['::1', true],
    ['::ffff:127.0.0.1', true],
    ['172.17.0.1', true],
    ['192.168.0.7', false],
    ['2001:db8::1', false],
    [undefined, false],
  ])('peer %s: %s', (remoteAddress, trusted) => {
    const transport = createTransport({ mode: 'development', trustedOrigins: [], trustedProxies: ['172.17.0.0/16'] });
    const request = { headers: { host: 'localhost' }, method: 'GET', socket: { remoteAddress } } as Parameters<typeof transport.assert>[0];
    if (trusted) transport.assert(request);
    else expect(() => transport.assert(request)).toThrow('this host');
  });
});

describe('the address of a client', () => {
  it.each([
    ['127.0.0.1', '192.0.2.1', '192.0.2.1'],
    ['127.0.0.1', 'spoofed, 192.0.2.9, 192.0.2.1, 10.0.0.7', '192.0.2.1'],
    ['127.0.0.1', 'unknown', undefined],
    ['127.0.0.1', '192.0.2.9, 192.0.2.1:4711, 10.0.0.7', undefined],
    ['127.0.0.1', '10.0.0.8, 10.0.0.7', undefined],
    ['127.0.0.1', undefined, undefined],
    ['192.0.2.5', '192.0.2.1', undefined],
  ])('from %s, forwarded for %j: %s', (remoteAddress, forwarded, address) => {
    const transport = createTransport({ mode: 'production', trustedOrigins: [], trustedProxies: ['127.0.0.1', '10.0.0.0/8'] });
    const request = { headers: { 'x-forwarded-for': forwarded }, socket: { remoteAddress } } as unknown as Parameters<typeof transport.assert>[0];
    expect(transport.clientAddress(request)).toBe(address);
  });
});

describe('cookies', () => {
  const cookie = { cookie: 'openclaw_occ.session_token=x', 'x-api-key': '-' };
  const origin = 'https://console.example';

  it.each([
    ['no origin', {}, 403],
    ['a foreign origin', { origin: 'https://evil.example' }, 403],
    ['an origin that is none', { origin: 'null' }, 403],
    ['the trusted origin', { origin }, 401],
    ['the trusted origin from another site', { origin, 'sec-fetch-site': 'cross-site' }, 403],
    ['the trusted origin from the same origin', { origin, 'sec-fetch-site': 'same-origin' }, 401],
    ['an authorization header, which decides alone', { authorization: 'Basic x' }, 401],
  ])('that would change state, with %s', async (_, headers, status) => expect(await statusIn({}, { ...stop, headers: { ...cookie, ...headers } })).toBe(status));

  it('ask nothing of a key', async () => expect(await statusIn({}, { ...stop, headers: { cookie: 'a=b' } })).toBe(202));

  it('guard every GraphQL operation in the same way, queries too', async () => {
    expect(await statusIn({}, { method: 'POST', path: '/graphql', headers: cookie })).toBe(403);
    expect(await statusIn({}, { method: 'POST', path: '/graphql', headers: { ...cookie, origin: 'https://evil.example' } })).toBe(403);
    expect(await statusIn({}, { method: 'POST', path: '/graphql', headers: { ...cookie, origin } })).toBe(200);
    expect(await statusIn({}, { method: 'POST', path: '/graphql', headers: { 'x-forwarded-for': '10.0.0.1' } })).toBe(403);
    expect(await statusIn({}, { method: 'POST', path: '/graphql' })).toBe(200);
  });

  it('are refused at /graphql as GraphQL clients read it', async () => {
    const edge = await startEdge();
    const { body, headers } = await edge.send({ method: 'POST', path: '/graphql', headers: cookie });
    const extensions = { code: 'FORBIDDEN', status: 403, requestId: headers.get('x-request-id') };
    expect(JSON.parse(body)).toEqual({ errors: [{ message: 'A trusted browser origin is required', extensions }] });
  });
});
