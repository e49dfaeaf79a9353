/** What is told of the native admin UI of an Agent, condition by condition, over both edges. (agent-lifecycle 9.1) */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { agents } from '../../src/aggregates.ts';
import { systemContext } from '../../src/installation/bootstrap.ts';
import { newId } from '../../src/kernel/ids.ts';
import { consoleOrigin } from '../support/sign-in.ts';
import { edges, send, useCases as use, type AgentPlace, type EdgeName } from '../support/use-cases.ts';
import { nativeAdminRows } from '../authorization/rows.ts';
import { domain, startNativeAdminWorld, type NativeAdminWorld } from './world.ts';

const clean = { url: 'wss://gateway.agents.svc/namespaces/n/agents/a', token: 'token' };
let world: NativeAdminWorld;
beforeAll(async () => {
  world = await startNativeAdminWorld();
});
afterAll(() => world?.close());

const ask = async (edge: EdgeName, place: AgentPlace, { application: { origin } } = world, ...more: readonly string[]) => {
  const { cookie } = await world.person(place, 'agent:administer', ...(edge === 'GraphQL' ? ['agent:read'] : []), ...more);
  return send(edge, origin, use.getAgentNativeAdmin(place), { cookie, origin: consoleOrigin });
};
/** What is told, without members that only GraphQL has to say nothing with. */
const told = async (edge: EdgeName, place: AgentPlace): Promise<unknown> => {
  const { code, data } = await ask(edge, place);
  expect(code).toBeNull();
  return Object.fromEntries(Object.entries(data as object).filter(([, value]) => value !== null));
};
const aHost = new RegExp(`^agent-[0-9a-f]{40}\\.${domain.replaceAll('.', '\\.')}$`);
const target = (activeRevisionId: string) => ({ activeRevisionId, host: expect.stringMatching(aHost) as unknown, origin: expect.stringMatching(/^https:\/\/agent-/) as unknown });

describe.each(edges)('over %s', (edge) => {
  it(`${nativeAdminRows[0]}: a running Agent with a private gateway is available, under a host of its own`, async () => {
    const place = await world.serving();
    world.endpoints.set(place.agentId, clean);
    const answer = (await told(edge, place)) as { host: string; origin: string };
    expect(answer).toEqual({ status: 'available', ...target(place.revisionId), url: `https://${answer.host}/` });
    expect(answer.origin).toBe(`https://${answer.host}`);
    const other = await world.serving();
    expect(((await told(edge, other)) as { host: string }).host).not.toBe(answer.host);
  });

  it('one that was never deployed is stopped, and has no target', async () => {
    expect(await told(edge, await world.agent())).toEqual({ status: 'stopped' });
  });

  it('one that shall run and has no version yet is unavailable', async () => {
    const place = await world.agent();
    await world.deploy(place);
    expect(await told(edge, place)).toEqual({ status: 'unavailable' });
  });

  it('one that is being stopped still has its target', async () => {
    const place = await world.serving();
    world.endpoints.set(place.agentId, clean);
    await world.admin(use.stopAgent(place));
    expect(await told(edge, place)).toEqual({ status: 'stopped', ...target(place.revisionId) });
  });

  it('one whose next version stops this one first is unavailable', async () => {
    const place = await world.serving();
    world.endpoints.set(place.agentId, clean);
    const loaded = await world.operator.streams.load(agents, place.agentId);
    const admitted = { agentId: place.agentId, namespaceId: place.namespaceId, revisionId: newId('rev'), number: 2, digest: 'd', configurationId: newId('cfg'), configurationGeneration: 1, compute: { id: 'process', implementation: 'exuvia-gateway' }, exclusive: true };
    await world.operator.streams.append(agents, loaded, [{ type: 'AgentRevisionAdmitted', data: admitted }], systemContext(world.operator.installationId));
    expect(await told(edge, place)).toMatchObject({ status: 'unavailable', activeRevisionId: place.revisionId });
  });

  it('one whose next version runs beside this one first stays available', async () => {
    const place = await world.serving();
    world.endpoints.set(place.agentId, clean);
    await world.deploy(place);
    expect(await told(edge, place)).toMatchObject({ status: 'available', activeRevisionId: place.revisionId });
  });

  it.each([
    ['no gateway', undefined],
    ['a gateway without TLS', 'ws://127.0.0.1:8080'],
    ['HTTPS', 'https://127.0.0.1'],
    ['credentials', 'wss://user:password@127.0.0.1'],
    ['a query', 'wss://127.0.0.1/?a=1'],
    ['an empty query', 'wss://127.0.0.1/?'],
    ['a fragment', 'wss://127.0.0.1/#a'],
    ['a public address', 'wss://93.184.215.14'],
    ['a public address of IPv6', 'wss://[2606:2800:21f:cb07::1]'],
    ['no URL', 'gateway'],
  ])('%s is unsupported', async (_, url) => {
    const place = await world.serving();
    if (url !== undefined) world.endpoints.set(place.agentId, { url, token: 'token' });
    expect(await told(edge, place)).toEqual({ status: 'unsupported', ...target(place.revisionId) });
  });

  it.each([
    ['no UI', { enabled: false }],
    ['a UI for other pages', { allowedOrigins: ['https://elsewhere.example'] }],
    ['a UI that believes the Host header', { dangerouslyAllowHostHeaderOriginFallback: true }],
    ['a UI without devices', { dangerouslyDisableDeviceAuth: true }],
  ])('a native document with %s is unsupported', async (_, controlUi) => {
    const place = await world.serving({ gateway: { controlUi } });
    world.endpoints.set(place.agentId, clean);
    expect(await told(edge, place)).toEqual({ status: 'unsupported', ...target(place.revisionId) });
  });

  it('an Agent that is not there is told to nobody but who may administer everything', async () => {
    const nothing = { namespaceId: world.namespaceId, agentId: newId('agt') };
    expect((await ask(edge, nothing)).code).toBe('NOT_FOUND');
  });
});

it('a version of another Compute driver is unsupported', async () => {
  const place = await world.agent();
  const revisionId = await world.deploy(place);
  await world.select(place, revisionId);
  const elsewhere = await startNativeAdminWorld({ seams: { gateways: () => ({ id: 'kubernetes', implementation: 'cluster', gatewayEndpoint: () => clean }) } });
  try {
    const other = await elsewhere.serving();
    const { cookie } = await elsewhere.person(other, 'agent:administer');
    expect((await send('REST', elsewhere.application.origin, use.getAgentNativeAdmin(other), { cookie })).data).toMatchObject({ status: 'unsupported' });
  } finally {
    await elsewhere.close();
  }
});

it('an Installation that has not enabled it says so, to who may administer the Agent', async () => {
  const off = await startNativeAdminWorld({ env: {} });
  try {
    const place = await off.serving();
    off.endpoints.set(place.agentId, clean);
    const { cookie } = await off.person(place, 'agent:administer');
    expect((await send('REST', off.application.origin, use.getAgentNativeAdmin(place), { cookie })).data).toEqual({ status: 'disabled' });
  } finally {
    await off.close();
  }
});
