/** WebSockets to Agent hosts: who gets one, what passes, and when it has to end. (agent-lifecycle 9.2) */
import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import { connect, type AddressInfo } from 'node:net';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { createNativeAdminProxy } from '../../src/http/native-admin/proxy.ts';
import { createTransport } from '../../src/http/transport.ts';
import { unavailable } from '../../src/kernel/errors.ts';
import { agentHost, hashOf } from '../../src/native-admin/domains.ts';
import type { Admitted } from '../../src/native-admin/service.ts';
import { createLogger } from '../../src/telemetry/logger.ts';
import { nativeAdminRows } from '../authorization/rows.ts';
import { exchange } from '../support/raw-http.ts';
import { startTlsGateway, type TlsGateway } from '../support/tls-gateway.ts';
import { until } from '../support/until.ts';
import { useCases as use, type AgentPlace } from '../support/use-cases.ts';
import { openSocket, type OpenPage } from './browser.ts';
import { manualTimers } from './timers.ts';
import { consolePage, domain, startNativeAdminWorld, type NativeAdminWorld } from './world.ts';

const timers = manualTimers();
let world: NativeAdminWorld;
let gateway: TlsGateway;

beforeAll(async () => {
  gateway = await startTlsGateway();
  world = await startNativeAdminWorld({ seams: { timers } });
});
afterEach(() => gateway.reset());
afterAll(async () => {
  await world?.close();
  await gateway?.close();
});

const settings = { domain, consoleOrigin: consolePage, cookieDomain: 'occ.example.com' };
type Place = AgentPlace & { readonly revisionId: string };
type Person = Awaited<ReturnType<NativeAdminWorld['person']>>;

/** A serving Agent, and somebody who may administer it. */
const served = async (of = world): Promise<{ readonly place: Place; readonly host: string; readonly person: Person }> => {
  const place = await of.serving();
  of.endpoints.set(place.agentId, gateway.endpoint);
  return { place, host: agentHost(settings, hashOf(of.operator.installationId, place)).host, person: await of.person(place, 'agent:administer') };
};
const opened = (host: string, headers: Readonly<Record<string, string>>, protocols: readonly string[] = [], of = world): Promise<OpenPage> =>
  openSocket(of.application.origin, host, '/ws?session=main', { headers: { origin: `https://${host}`, ...headers }, protocols });

interface Recorded {
  readonly action: string;
  readonly outcome: string;
  readonly principalId: string;
  readonly details: Readonly<Record<string, unknown>>;
}
/** The audit of an Agent's WebSockets, oldest first. */
const audit = async ({ agentId }: AgentPlace, of = world): Promise<readonly Recorded[]> => {
  const { rows } = await of.application.database.pool.query<{ metadata: string }>(
    `select metadata from event where metadata::jsonb -> 'audit' -> 'resource' ->> 'id' = $1 and metadata::jsonb -> 'audit' ->> 'action' like '%native_admin.websocket%' order by position`,
    [agentId],
  );
  return rows.map(({ metadata }) => {
    const { actor, audit: record } = JSON.parse(metadata) as { actor: { principalId: string }; audit: { action: string; outcome: string; details: Recorded['details'] } };
    return { action: record.action.replace('openclaw.agents.native_admin.websocket.', ''), outcome: record.outcome, principalId: actor.principalId, details: record.details };
  });
};
const ended = (place: AgentPlace, of = world) => until('the end to be recorded', () => audit(place, of), (records) => records.at(-1)?.action === 'close');
const expectConnection = (records: readonly Recorded[], { place, person }: { readonly place: Place; readonly person: Person }, closeReason: string, denials = 0): void => {
  const { connectionId } = records[0]!.details;
  const of = { outcome: 'success', principalId: person.id };
  expect(connectionId).toMatch(/^[0-9a-f-]{36}$/);
  expect(records).toMatchObject([
    { action: 'connect', ...of, details: { connectionId, revisionId: place.revisionId } },
    ...Array.from({ length: denials }, () => ({ action: 'connect', outcome: 'denied', principalId: person.id })),
    { action: 'close', ...of, details: { connectionId, revisionId: place.revisionId, closeReason } },
  ]);
};

describe('who may administer the Agent', () => {
  it('hears the gateway and is heard, in texts and in bytes', async () => {
    const { host, person, place } = await served();
    const page = await opened(host, { cookie: person.cookie, 'x-occ-identity': 'a' }, ['one', 'two']);
    expect(page.socket.protocol).toBe('two');
    page.socket.send('text');
    expect(await page.next()).toEqual({ data: 'text', binary: false });
    page.socket.send(Buffer.from('bytes'));
    expect(await page.next()).toEqual({ data: 'bytes', binary: true });
    const { url, headers } = gateway.requests[0]!;
    expect(url).toBe('/base/ws?session=main');
    expect(headers).toMatchObject({ host: new URL(gateway.endpoint.url).host, origin: `https://${host}`, authorization: 'Bearer gateway-token' });
    expect(Object.keys(headers).filter((name) => ['cookie', 'x-occ-identity'].includes(name))).toEqual([]);
    page.socket.close(4001, 'enough');
    expect(await page.closed).toBe(4001);
    expectConnection(await ended(place), { place, person }, 'CLIENT_CLOSED');
  });

  it('loses nothing of what the gateway says first, nor of what is much', async () => {
    const { host, person } = await served();
    const much = 'x'.repeat(300_000);
    gateway.opened = (socket) => {
      socket.send('challenge');
      for (let n = 0; n < 20; n++) socket.send(much);
      socket.send('last');
    };
    const page = await opened(host, { cookie: person.cookie });
    expect((await page.next()).data).toBe('challenge');
    for (let n = 0; n < 20; n++) expect((await page.next()).data.length).toBe(much.length);
    expect((await page.next()).data).toBe('last');
    page.socket.close();
    await page.closed;
  });

  it('is told with which code the gateway closed', async () => {
    const { host, person, place } = await served();
    gateway.opened = (socket) => socket.close(4008, 'gone');
    const page = await opened(host, { cookie: person.cookie });
    expect(await page.closed).toBe(4008);
    expectConnection(await ended(place), { place, person }, 'GATEWAY_CLOSED');
  });
});

describe('nobody else gets one', () => {
  const refused = async (host: string, headers: Readonly<Record<string, string>>, status: number): Promise<void> => {
    await expect(openSocket(world.application.origin, host, '/', { headers })).rejects.toThrow(`Unexpected server response: ${status}`);
    expect(gateway.sockets.size).toBe(0);
  };

  it.each([undefined, 'null', consolePage, `https://agent-${'0'.repeat(40)}.${domain}`, `https://${domain}`])('from the origin %s', async (origin) => {
    const { host, person, place } = await served();
    await refused(host, { cookie: person.cookie, ...(origin !== undefined && { origin }) }, 403);
    expect([await audit(place), gateway.requests]).toEqual([[], []]);
  });

  it('without a session', async () => {
    const { host } = await served();
    await refused(host, { origin: `https://${host}` }, 401);
  });

  it('without the grant, or with a key', async () => {
    const { host, place } = await served();
    const stranger = await world.person(place, 'agent:read', 'agent:operate');
    await refused(host, { origin: `https://${host}`, cookie: stranger.cookie }, 403);
    await refused(host, { origin: `https://${host}`, 'x-api-key': world.application.key }, 403);
    expect(await audit(place)).toMatchObject([{ action: 'connect', outcome: 'denied', principalId: stranger.id }, { action: 'connect', outcome: 'denied' }]);
    expect(gateway.requests).toEqual([]);
  });

  it('at the host of no Agent', async () => {
    const { person } = await served();
    const host = `agent-${'0'.repeat(40)}.${domain}`;
    await refused(host, { origin: `https://${host}`, cookie: person.cookie }, 404);
  });

  it.each([
    ['another version of the protocol', { 'sec-websocket-version': '8' }],
    ['no key', { 'sec-websocket-key': 'short' }],
    ['another protocol', { upgrade: 'h2c' }],
    ['a subprotocol that is none', { 'sec-websocket-protocol': 'a, a' }],
  ])('with %s', async (_, odd) => {
    const { host, person } = await served();
    const handshake = { host, cookie: person.cookie, origin: `https://${host}`, connection: 'upgrade', upgrade: 'websocket', 'sec-websocket-version': '13', 'sec-websocket-key': 'dGhlIHNhbXBsZSBub25jZQ==' };
    const lines = Object.entries<string>({ ...handshake, ...odd }).map(([name, value]) => `${name}: ${value}\r\n`);
    expect((await exchange(world.application.origin, `GET / HTTP/1.1\r\n${lines.join('')}\r\n`)).status).toBe(400);
    expect(gateway.requests).toEqual([]);
  });

  it('that the gateway says nothing to', async () => {
    const { host, person } = await served();
    gateway.accepts = 'silent';
    const refusal = refused(host, { origin: `https://${host}`, cookie: person.cookie }, 503);
    await until('the gateway to be asked', () => gateway.requests.length, (count) => count === 1);
    await timers.expire();
    await refusal;
    await until('the gateway to be left', () => gateway.left, (left) => left);
  });

  it('that the gateway does not let in, and nothing is recorded as open', async () => {
    const { host, person, place } = await served();
    gateway.accepts = false;
    await refused(host, { origin: `https://${host}`, cookie: person.cookie }, 503);
    expect([gateway.requests.length, await audit(place)]).toEqual([1, []]);
  });
});

describe('while it is open, every 25 seconds', () => {
  const open = async () => {
    const found = await served();
    const page = await opened(found.host, { cookie: found.person.cookie });
    return { ...found, page };
  };
  /** Judged once more, and ended for this reason. */
  const expectEnd = async ({ page, ...found }: Awaited<ReturnType<typeof open>>, closeReason: string, denials = 0): Promise<void> => {
    await timers.fire();
    expect([1006, 1008]).toContain(await page.closed);
    expectConnection(await ended(found.place), found, closeReason, denials);
    await until('the gateway to be left', () => gateway.sockets.size, (size) => size === 0);
    expect(timers.running()).toBe(0);
  };

  it('who still may stays', async () => {
    const { page, ...found } = await open();
    await timers.fire();
    await until('the look to be over', () => timers.waiting(), (count) => count === 0);
    page.socket.send('still');
    expect(await page.next()).toEqual({ data: 'still', binary: false });
    expect([...timers.seen.every, ...timers.seen.after]).toEqual([25_000, 10_000, 5_000]);
    page.socket.close();
    await page.closed;
    expectConnection(await ended(found.place), found, 'CLIENT_CLOSED');
    expect(timers.running()).toBe(0);
  });

  it(`${nativeAdminRows[1]}: who has lost administer is out by the next look, which is within 30 seconds, and the denial is recorded`, async () => {
    const found = await open();
    await found.person.revoke('agent:administer');
    await expectEnd(found, 'AUTHORIZATION_DENIED', 1);
  });

  it('whose session has ended is out', async () => {
    const found = await open();
    await world.application.database.pool.query('delete from session where session_key = $1', [found.person.sessionKey]);
    await expectEnd(found, 'SESSION_ENDED');
  });

  it('a stopped Agent has none', async () => {
    const found = await open();
    await world.admin(use.stopAgent(found.place));
    await expectEnd(found, 'AGENT_UNAVAILABLE');
  });

  it('another version ends it', async () => {
    const found = await open();
    await world.select(found.place, await world.deploy(found.place));
    await expectEnd(found, 'REVISION_CHANGED');
  });

  it('another gateway of the same version ends it', async () => {
    const found = await open();
    world.endpoints.set(found.place.agentId, { ...gateway.endpoint, token: 'of another start' });
    await expectEnd(found, 'REVISION_CHANGED');
  });

  it('a look that takes longer than 5 seconds ends it', async () => {
    const found = await open();
    const looking = timers.fire();
    void timers.expire();
    await looking;
    expect([1006, 1008]).toContain(await found.page.closed);
    expectConnection(await ended(found.place), found, 'LEASE_TIMED_OUT');
  });
});

it('the end of the server is the end of it, and is recorded', async () => {
  const ending = await startNativeAdminWorld({ seams: { timers } });
  const { host, person, place } = await served(ending);
  const page = await opened(host, { cookie: person.cookie }, [], ending);
  await ending.application.close();
  expect([1006, 1008]).toContain(await page.closed);
  expectConnection(await audit(place, ending), { place, person }, 'SHUTDOWN');
  expect(gateway.sockets.size).toBe(0);
  await ending.operator.close();
});

it('the end of the server does not wait for a gateway that says nothing', async () => {
  const ending = await startNativeAdminWorld({ seams: { timers } });
  const { host, person, place } = await served(ending);
  gateway.accepts = 'silent';
  const refused = expect(opened(host, { cookie: person.cookie }, [], ending)).rejects.toThrow('503');
  await until('the gateway to be asked', () => gateway.requests.length, (count) => count === 1);
  await ending.application.close();
  await refused;
  await until('the gateway to be left', () => gateway.left, (left) => left);
  expect(await audit(place, ending)).toEqual([]);
  await ending.operator.close();
});

it('a refused client that does not hang up does not hold the server up', async () => {
  const ending = await startNativeAdminWorld({ seams: { timers } });
  const { host } = await served(ending);
  const { hostname, port } = new URL(ending.application.origin);
  const client = connect({ host: hostname, port: Number(port), allowHalfOpen: true });
  client.write(`GET / HTTP/1.1\r\nhost: ${host}\r\norigin: https://${host}\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\n`);
  const [answer] = (await once(client, 'data')) as [Buffer];
  expect(answer.toString()).toMatch(/^HTTP\/1\.1 401 Unauthorized\r\n/);
  await ending.application.close();
  client.destroy();
  await ending.operator.close();
});

it('one that cannot be recorded is not opened', async () => {
  const admitted = { namespaceId: 'ns', agentId: 'agt', revisionId: 'rev', gateway: gateway.endpoint } as Admitted;
  const proxy = createNativeAdminProxy({
    settings,
    service: { admit: async () => admitted, connected: async () => Promise.reject(unavailable('audit')), closed: async () => {} },
    authenticate: async (_, requestId) => ({ actor: { principalId: 'prn_1', kind: 'principal' }, keyNamespaceId: undefined, sessionKey: 's', arrivedAt: 0, requestId }),
    transport: createTransport({ mode: 'production', trustedOrigins: [], trustedProxies: [] }),
    metrics: { answered: () => {} },
    log: createLogger({ level: 'silent' }),
    timers,
  });
  const server: Server = createServer().on('upgrade', (request, socket, head) => void proxy.upgrade(request, socket, head));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const host = `agent-${'a'.repeat(40)}.${domain}`;
  try {
    await expect(openSocket(`http://127.0.0.1:${(server.address() as AddressInfo).port}`, host, '/', { headers: { origin: `https://${host}` } })).rejects.toThrow('503');
    await until('the gateway to be left', () => gateway.sockets.size, (size) => size === 0);
  } finally {
    await proxy.close();
    server.close();
  }
});
