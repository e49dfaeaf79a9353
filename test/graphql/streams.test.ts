/** Subscriptions last as long as the caller may read, and leave nothing behind. (iam-auth-audit 8.4, architecture section 7) */
import { randomUUID } from 'node:crypto';
import { connect, type Socket } from 'node:net';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { print } from 'graphql';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { agents } from '../../src/aggregates.ts';
import { workKey } from '../../src/kernel/work.ts';
import { until } from '../support/until.ts';
import { createAgent, createConfiguration, createNamespace, deployAgent } from './fixture.ts';
import { AgentStatesDocument, AppendedEventsDocument, DeleteAgentDocument, DeploymentStatesDocument, HistoryDocument, StopAgentDocument, UpdateAgentDocument, type HistoryFilter } from './operations.generated.ts';
import { openSubscription, type Subscription } from './subscribing.ts';
import { createWorld, type World } from './world.ts';

let world: World;
let namespaceId: string;
let configurationId: string;

beforeAll(async () => {
  world = await createWorld();
  ({ namespaceId } = await createNamespace(world, 'main'));
  ({ configurationId } = await createConfiguration(world, namespaceId));
});
const open: Subscription<unknown>[] = [];
afterEach(() => open.splice(0).forEach(({ leave }) => leave()));
afterAll(() => world.close());

const subscribe = async <Result, Variables>(document: Parameters<typeof openSubscription<Result, Variables>>[1], variables: Variables, key = world.adminKey) => {
  const subscription = await openSubscription(world.edge.endpoint, document, variables, { 'x-api-key': key });
  open.push(subscription);
  return subscription;
};
const untilSent = (subscription: Subscription<unknown>, count: number) => until(`${count} results`, () => subscription.results.length, (seen) => seen >= count);
const untilEnded = (subscription: Subscription<unknown>) => until('the end', () => subscription.ended, (ended) => ended);
const codes = ({ results }: Subscription<unknown>) => results.flatMap(({ errors = [] }) => errors.map(({ extensions: { code } }) => code));

const deployed = async (name: string) => {
  const { id } = await createAgent(world, namespaceId, configurationId, name);
  return deployAgent(world, id);
};

const reads = (...kinds: readonly string[]) => kinds.map((resourceKind) => ({ action: 'read', resourceKind, namespaceId }));

describe('a subscriber to whom nothing happens', () => {
  const subscriptions: readonly (readonly [string, (key: string) => Promise<Subscription<unknown>>])[] = [
    ['deploymentChanged', async (key) => subscribe(DeploymentStatesDocument, { id: (await deployed(`quiet ${Math.random()}`)).revisionId }, key)],
    ['agentChanged', async (key) => subscribe(AgentStatesDocument, { id: (await createAgent(world, namespaceId, configurationId, `quiet ${Math.random()}`)).agentId }, key)],
    ['historyAppended', async (key) => subscribe(AppendedEventsDocument, { filter: { namespaceId } }, key)],
  ];

  it.each(subscriptions)('of %s is judged at least every 25 s, whatever keeps the connection alive', async (name, begin) => {
    const principal = await world.addPrincipal(reads('agent', 'agent_revision', 'namespace', 'audit'));
    const subscription = await begin(principal.key);
    if (name !== 'historyAppended') await untilSent(subscription, 1);
    await until('a timer', () => world.edge.intervals(), ([ms]) => ms !== undefined && ms <= 25_000);
    for (const index of [0, 1, 3]) await principal.removeGrant(index);
    const { keepAlives } = subscription;
    // One may be judged before: what takes the grant away is an event of the history, and a read model may still move.
    await until('that the connection is kept alive', () => subscription, (now) => now.keepAlives > keepAlives + 1 || now.ended);
    world.edge.tick();
    await untilEnded(subscription);
    expect(codes(subscription)).toEqual(['FORBIDDEN']);
    expect(subscription.results.at(-1)?.errors).toHaveLength(1);
  });

  it.each(subscriptions)('of %s ends with the key', async (_, begin) => {
    const principal = await world.addPrincipal(reads('agent', 'agent_revision', 'namespace', 'audit'));
    const subscription = await begin(principal.key);
    await until('a timer', () => world.edge.intervals(), ({ length }) => length > 0);
    await principal.revokeKey();
    world.edge.tick();
    await untilEnded(subscription);
    // Once for the whole, and before it perhaps for a field of a state that was on its way.
    expect([...new Set(codes(subscription))]).toEqual(['UNAUTHENTICATED']);
    expect(subscription.results.at(-1)?.data ?? null).toBeNull();
  });
});

it('a stream opened with a session ends with it', async () => {
  const { agentId } = await createAgent(world, namespaceId, configurationId, 'seen by a person');
  const { cookie, endSession } = await world.addPerson(reads('agent', 'namespace'));
  const subscription = await openSubscription(world.edge.endpoint, AgentStatesDocument, { id: agentId }, { cookie });
  open.push(subscription);
  await untilSent(subscription, 1);
  world.edge.tick();
  await endSession();
  world.edge.tick();
  await untilEnded(subscription);
  expect(subscription.results[0]?.errors).toBeUndefined();
  expect(codes(subscription)).toEqual(['UNAUTHENTICATED']);
});

describe('agentChanged', () => {
  it('sends the current state, then every change, and completes when the Agent is gone', async () => {
    const { id, agentId } = await createAgent(world, namespaceId, configurationId, 'watched');
    const subscription = await subscribe(AgentStatesDocument, { id });
    await untilSent(subscription, 1);
    const states = () => subscription.results.map(({ data }) => data.agentChanged);
    expect(states()).toMatchObject([{ agentId, desiredRuntimeState: 'stopped', status: 'active', namespace: { name: 'main' } }]);
    await deployAgent(world, id);
    await until('that it shall run', () => states().at(-1)?.desiredRuntimeState, (state) => state === 'running');
    await world.send(UpdateAgentDocument, { input: { id, configurationId, executionMode: 'dedicated' } });
    await until('another draft', () => states().at(-1)!.draftRevision > states()[0]!.draftRevision, (is) => is);
    await world.send(StopAgentDocument, { input: { id } });
    await until('that it shall stop', () => states().at(-1)?.desiredRuntimeState, (state) => state === 'stopped');
    await world.send(DeleteAgentDocument, { input: { id } });
    await until('that it is being deleted', () => states().at(-1)?.status, (status) => status === 'deleting');
    const system = { actor: { principalId: 'system', kind: 'system' }, requestId: null, correlationId: 'test', causationId: null, policyRevision: null } as const;
    await world.streams.execute(agents, agentId, { type: 'FinishTeardown', claim: { workKey: workKey.deletion(agentId), claimToken: 'test' } }, system);
    await world.streams.execute(agents, agentId, { type: 'RemoveAgent' }, system);
    await untilEnded(subscription);
    expect(codes(subscription)).toEqual([]);
  });

  it('judges what is nested in each state, and sends the state all the same', async () => {
    const { id } = await createAgent(world, namespaceId, configurationId, 'nested');
    const { key } = await world.addPrincipal(reads('agent'));
    const subscription = await subscribe(AgentStatesDocument, { id }, key);
    await untilSent(subscription, 1);
    expect(subscription.results[0]).toMatchObject({ data: { agentChanged: { status: 'active', namespace: null } }, errors: [{ path: ['agentChanged', 'namespace'], extensions: { code: 'FORBIDDEN' } }] });
  });
});

describe('historyAppended', () => {
  const appended = (subscription: Awaited<ReturnType<typeof begin>>) => subscription.results.map(({ data }) => data.historyAppended.eventId);
  const begin = (variables: { after?: string; filter?: HistoryFilter }, key?: string) => subscribe(AppendedEventsDocument, variables, key);
  const history = async () => (await world.send(HistoryDocument, { first: 100, filter: { namespaceId } })).data.eventHistory!.nodes.map(({ eventId }) => eventId);

  it('sends what comes from now on, in order, each event once', async () => {
    // What is waited for here, is in the history after everything earlier tests left.
    await createAgent(world, namespaceId, configurationId, 'told of before');
    const before = await history();
    const subscription = await begin({ filter: { namespaceId } });
    await until('a timer', () => world.edge.intervals(), ({ length }) => length > 0);
    for (const name of ['one', 'two', 'three']) await createAgent(world, namespaceId, configurationId, `told of ${name}`);
    const expected = (await history()).slice(before.length);
    expect(expected.length).toBeGreaterThan(5);
    await untilSent(subscription, expected.length);
    expect(appended(subscription)).toEqual(expected);
  });

  it('resumes after an event, with more than it looks for at once', async () => {
    await Promise.all(Array.from({ length: 60 }, (_, index) => createAgent(world, namespaceId, configurationId, `many ${index}`)));
    const [first] = await history();
    const subscription = await begin({ after: first!, filter: { namespaceId } });
    await untilSent(subscription, 120);
    expect(new Set(appended(subscription)).size).toBe(subscription.results.length);
    expect(appended(subscription).slice(0, 99)).toEqual((await history()).slice(1));
  });

  it('takes the permission of an auditor and a cursor that is one', async () => {
    const { key } = await world.addPrincipal(reads('agent', 'namespace'));
    const outside = (await world.send(HistoryDocument, { first: 1 })).data.eventHistory!.nodes[0]!.eventId;
    const refused = [await begin({ filter: { namespaceId } }, key), await begin({ after: 'malformed' }), await begin({ after: randomUUID() }), await begin({ after: outside, filter: { namespaceId } })];
    for (const subscription of refused) await untilEnded(subscription);
    expect(refused.map(codes)).toEqual([['FORBIDDEN'], ['INVALID_REQUEST'], ['INVALID_REQUEST'], ['INVALID_REQUEST']]);
    expect(refused.slice(1).map(({ results }) => results[0]?.errors?.[0]?.extensions.details)).toEqual(Array(3).fill([{ path: '/after', code: 'INVALID_VALUE' }]));
  });
});

const nothing = { watches: 0, timers: 0, connections: 0, busy: 0, waiting: 0 };
const atRest = () => until('nothing held', () => world.edge.held(), (held) => JSON.stringify(held) === JSON.stringify(nothing));

/** Opens a raw connection and asks. */
const openRaw = (body: string, key: string, written: (socket: Socket) => void = () => {}): Socket => {
  const { hostname, port } = new URL(world.edge.endpoint);
  const socket = connect(Number(port), hostname);
  socket.write(
    `POST /graphql HTTP/1.1\r\nHost: ${hostname}:${port}\r\nConnection: close\r\nContent-Type: application/json\r\nAccept: text/event-stream\r\nX-API-Key: ${key}\r\nContent-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`,
    () => written(socket),
  );
  return socket;
};

describe('a client that stops reading', () => {
  /** More than the buffers of two sockets take: an event of 60 KB, shown twenty-five times, again and again. */
  const query = `subscription ($filter: HistoryFilter, $after: String) { historyAppended(filter: $filter, after: $after) { ${Array.from({ length: 25 }, (_, index) => `d${index}: data`).join(' ')} } }`;

  const stalled = async (): Promise<void> => {
    const { id, agentId } = await createAgent(world, namespaceId, configurationId, 'large');
    const filter = { namespaceId, stream: `agent-${agentId}`, types: ['AgentCreated', 'AgentPluginsReplaced'] };
    const plugins = { notes: { enabled: true, driverPolicy: { note: 'x'.repeat(60_000) } } };
    for (let count = 0; count < 40; count++) await world.send(UpdateAgentDocument, { input: { id, configurationId, plugins } });
    const events = await until('every event', async () => (await world.send(HistoryDocument, { first: 100, filter })).data.eventHistory!.nodes, ({ length }) => length === 41);
    socket = openRaw(JSON.stringify({ query, variables: { filter, after: events[0]!.eventId } }), principal.key).on('error', () => {});
    socket.once('data', () => socket!.pause());
    let last = -1;
    let same = 0;
    await until('that nothing more is sent', () => world.edge.unsent(), (unsent) => {
      same = unsent > 0 && unsent === last ? same + 1 : 0;
      last = unsent;
      return same >= 10;
    });
  };
  let socket: Socket | undefined;
  let principal: Awaited<ReturnType<World['addPrincipal']>>;
  afterEach(() => void socket?.destroy());
  beforeAll(async () => {
    principal = await world.addPrincipal(reads('audit'));
  });

  it('is held little for, is judged all the same, and is disconnected once its grant has ended', async () => {
    await atRest();
    await stalled();
    expect(world.edge.unsent()).toBeLessThan(8 * 2 ** 20);
    world.edge.tick();
    world.edge.tick();
    expect(await world.edge.held()).toMatchObject({ watches: 1, timers: 1 });
    await principal.removeGrant(0);
    await until('that it is disconnected', async () => (world.edge.tick(), world.edge.held()), (held) => JSON.stringify(held) === JSON.stringify(nothing));
  });
});

describe('the subscriptions of one caller', () => {
  const body = () => JSON.stringify({ query: print(AppendedEventsDocument), variables: { filter: { namespaceId } } });
  const openGauge = async () => /^exuvia_graphql_subscriptions (\d+)$/m.exec((await world.edge.metrics.exposition()).text)?.[1];

  it('are a hundred at most; one that is closed makes place for another', async () => {
    await atRest();
    const one = await world.addPrincipal(reads('audit'));
    const other = await world.addPrincipal(reads('audit'));
    const sockets = Array.from({ length: 100 }, () => openRaw(body(), one.key).on('error', () => {}));
    await until('a hundred', openGauge, (count) => count === '100');
    const refused = await subscribe(AppendedEventsDocument, { filter: { namespaceId } }, one.key);
    await untilEnded(refused);
    expect(refused.results[0]?.errors).toEqual([expect.objectContaining({ message: '100 subscriptions of this caller are open; the limit is 100', extensions: expect.objectContaining({ code: 'RATE_LIMITED', status: 429, retryAfterSeconds: 1 }) as unknown })]);
    const elsewhere = openRaw(body(), other.key).on('error', () => {});
    await until('one of another caller', openGauge, (count) => count === '101');
    sockets.pop()!.destroy();
    await until('a place', openGauge, (count) => count === '100');
    sockets.push(openRaw(body(), one.key).on('error', () => {}));
    await until('another one', openGauge, (count) => count === '101');
    for (const socket of [...sockets, elsewhere]) socket.destroy();
    await atRest();
    expect(await openGauge()).toBe('0');
  });
});

describe('clients that vanish without a word', () => {
  /** Opens a raw connection and asks; resolves once the first result, or with `early` the request, is under way. */
  const vanishing = (body: string, early: boolean, key: string): Promise<Socket> =>
    new Promise((resolve, reject) => {
      const socket = openRaw(body, key, () => early && resolve(socket));
      socket.once('error', reject);
      let text = '';
      socket.on('data', (chunk: Buffer) => {
        text += chunk.toString();
        if (text.includes('event: next') || text.includes('200 OK')) resolve(socket);
      });
    });

  /** Each hundred is another caller's: nobody has more. */
  const wave = async (bodies: readonly string[], keys: readonly string[]): Promise<void> => {
    const sockets: Socket[] = [];
    for (const key of keys) sockets.push(...(await Promise.all(Array.from({ length: 100 }, (_, index) => vanishing(bodies[index % bodies.length]!, index % 5 === 0, key)))));
    for (const socket of sockets) socket.on('error', () => {}).destroy();
    await atRest();
  };

  const heapUsed = (): number => {
    setFlagsFromString('--expose_gc');
    (runInNewContext('gc') as () => void)();
    return process.memoryUsage().heapUsed;
  };

  it('leave nothing behind, 1,000 of them', async () => {
    await atRest();
    const { agentId, revisionId } = await deployed('abandoned by many');
    const bodyOf = (document: Parameters<typeof print>[0], variables: object) => JSON.stringify({ query: print(document), variables });
    const bodies = [bodyOf(DeploymentStatesDocument, { id: revisionId }), bodyOf(AgentStatesDocument, { id: agentId }), bodyOf(AppendedEventsDocument, { filter: { namespaceId } })];
    const keys = await Promise.all(Array.from({ length: 10 }, async () => (await world.addPrincipal(reads('agent', 'agent_revision', 'namespace', 'audit'))).key));
    await wave(bodies, keys.slice(0, 1));
    const before = heapUsed();
    await wave(bodies, keys);
    const grownMiB = (heapUsed() - before) / 2 ** 20;
    expect(grownMiB).toBeLessThan(16);
  }, 240_000);
});
