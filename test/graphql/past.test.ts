/** Agents as they were at a position or a time, for who may know. (architecture section 7, failure scenario 39) */
import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { agents } from '../../src/aggregates.ts';
import { workKey } from '../../src/kernel/work.ts';
import type { CommandContext } from '../../src/runtime/streams.ts';
import { until } from '../support/until.ts';
import { createAgent, createConfiguration, createNamespace, deployAgent } from './fixture.ts';
import { AgentThenDocument, HistoryDocument, StopAgentDocument, UpdateAgentDocument, type AgentThenQuery, type HistoryPoint } from './operations.generated.ts';
import { createWorld, type Answer, type World } from './world.ts';

const system: CommandContext = { actor: { principalId: 'system', kind: 'system' }, requestId: null, correlationId: 'test', causationId: null, policyRevision: null };

let world: World;
let namespaceId: string;
let configurationId: string;
let agent: Awaited<ReturnType<typeof createAgent>>;
let reader: Awaited<ReturnType<World['addPrincipal']>>;
/** Each event of the Agent's stream. */
let history: readonly { readonly type: string; readonly position: string; readonly occurredAt: string }[];

type Then = NonNullable<AgentThenQuery['agent']>;
const ask = (at: unknown, key?: string, more: object = {}) => world.send(AgentThenDocument, { id: agent.id, at: at as HistoryPoint, ...more }, key);
const then = async (at: unknown, key?: string): Promise<Then> => {
  const { data, errors } = await ask(at, key);
  expect(errors).toBeUndefined();
  return data.agent!;
};
const refusal = async (answer: ReturnType<typeof ask>) => {
  const { data, errors } = await answer;
  expect(data?.agent ?? null).toBeNull();
  return errors!.map(({ extensions: { code, details } }) => [code, details]);
};

const allOf = async (stream: string) => (await world.send(HistoryDocument, { first: 100, filter: { stream } })).data.eventHistory!.nodes.map(({ type, position, occurredAt }) => ({ type, position, occurredAt: occurredAt as string }));

/** An Agent with a failed deployment, a second one a worker is at, and a stop. */
const live = async (name: string) => {
  const made = await createAgent(world, namespaceId, configurationId, name);
  await world.send(UpdateAgentDocument, { input: { id: made.id, configurationId, executionMode: 'dedicated' } });
  const { revisionId } = await deployAgent(world, made.id);
  const claim = { workKey: workKey.deployment(revisionId), claimToken: 'test' };
  await world.streams.execute(agents, made.agentId, { type: 'FailDeployment', claim, revisionId, code: 'RUNTIME_STARTUP_FAILED' }, system);
  await deployAgent(world, made.id);
  return made;
};

beforeAll(async () => {
  world = await createWorld();
  ({ namespaceId } = await createNamespace(world, 'main'));
  ({ configurationId } = await createConfiguration(world, namespaceId));
  agent = await live('crab');
  await world.send(StopAgentDocument, { input: { id: agent.id } });
  reader = await world.addPrincipal(['agent', 'agent_revision'].map((resourceKind) => ({ action: 'read', resourceKind, namespaceId })));
  history = await until('the whole history', () => allOf(`agent-${agent.agentId}`), (events) => events.at(-1)?.type === 'AgentStopRequested');
});
afterAll(() => world.close());

const shown = ({ executionMode, desiredRuntimeState, draftRevision, revisions, latestDeployment }: Then) => ({
  executionMode,
  desiredRuntimeState,
  draftRevision,
  deployments: revisions!.nodes.map(({ revision, deployment }) => [revision, deployment?.status]),
  latest: latestDeployment?.status,
  error: latestDeployment?.error?.code,
});

describe('an Agent at a position', () => {
  const expected = [
    ['AgentCreated', { executionMode: 'embedded', desiredRuntimeState: 'stopped', draftRevision: 0, deployments: [], latest: undefined, error: undefined }],
    ['AgentConfigurationBound', { executionMode: 'embedded', desiredRuntimeState: 'stopped', draftRevision: 1, deployments: [], latest: undefined, error: undefined }],
    ['AgentExecutionModeChanged', { executionMode: 'dedicated', desiredRuntimeState: 'stopped', draftRevision: 2, deployments: [], latest: undefined, error: undefined }],
    ['AgentRevisionAdmitted', { executionMode: 'dedicated', desiredRuntimeState: 'running', draftRevision: 2, deployments: [[1, 'queued']], latest: 'queued', error: undefined }],
    ['DeploymentFailed', { executionMode: 'dedicated', desiredRuntimeState: 'running', draftRevision: 2, deployments: [[1, 'failed']], latest: 'failed', error: 'RUNTIME_STARTUP_FAILED' }],
    ['AgentRevisionAdmitted', { executionMode: 'dedicated', desiredRuntimeState: 'running', draftRevision: 2, deployments: [[1, 'failed'], [2, 'queued']], latest: 'queued', error: undefined }],
    ['AgentStopRequested', { executionMode: 'dedicated', desiredRuntimeState: 'stopped', draftRevision: 2, deployments: [[1, 'failed'], [2, 'queued']], latest: 'queued', error: undefined }],
  ] as const;

  it('is what its events up to there make of it', async () => {
    const seen = [];
    for (const { type, position } of history) seen.push([type, shown(await then({ position }))]);
    expect(seen).toEqual(expected);
  });

  it('is what it was between two of them, by the position of any other event', async () => {
    const [first] = (await then({ position: history.at(-1)!.position })).revisions!.nodes;
    const [snapshot] = await allOf(`revision-${first!.revisionId}`);
    expect(shown(await then({ position: snapshot!.position }))).toEqual(expected[2][1]);
  });

  it('is the Agent of now at the last one, to who may read it', async () => {
    const last = await then({ position: history.at(-1)!.position }, reader.key);
    expect(last).toEqual(await then(undefined, reader.key));
  });

  it('never shows a deployment as running, not even one that is', async () => {
    const doing = await live('busy');
    const { position } = (await until('its deployment', () => allOf(`agent-${doing.agentId}`), (events) => events.filter(({ type }) => type === 'AgentRevisionAdmitted').length === 2)).at(-1)!;
    await until('that a worker is at it', async () => {
      await world.queue.claim();
      return (await world.send(AgentThenDocument, { id: doing.id })).data.agent!.latestDeployment!.status;
    }, (status) => status === 'running');
    expect((await world.send(AgentThenDocument, { id: doing.id, at: { position } })).data.agent!.latestDeployment!.status).toBe('queued');
  });

  it('pages through the revisions of then', async () => {
    const { position } = history.at(-1)!;
    const [one, two] = (await then({ position })).revisions!.nodes;
    const { data } = await ask({ position }, undefined, { after: one!.revisionId });
    expect(data.agent!.revisions!.nodes.map(({ revisionId }) => revisionId)).toEqual([two!.revisionId]);
    const early = history.find(({ type }) => type === 'AgentRevisionAdmitted')!.position;
    expect((await ask({ position: early }, undefined, { after: two!.revisionId })).errors![0]!.extensions).toMatchObject({ code: 'INVALID_REQUEST', details: [{ path: '/after', code: 'INVALID_VALUE' }] });
  });
});

it('an Agent of the past costs the same whatever its revisions, each with its deployment', async () => {
  const costOf = async (first: number) => {
    const edge = await world.openEdge();
    edge.takeStatements();
    edge.takeStoreReads();
    const query = 'query ($id: ID!, $at: HistoryPoint, $first: Int) { agent(id: $id, at: $at) { revisions(first: $first) { nodes { deployment { status } } } } }';
    const response = await fetch(edge.endpoint, {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'x-api-key': reader.key },
      body: JSON.stringify({ query, variables: { id: agent.id, at: { position: history.at(-1)!.position }, first } }),
    });
    const { data } = (await response.json()) as Answer<{ readonly agent: AgentThenQuery['agent'] }>;
    const cost = { statements: edge.takeStatements(), storeReads: edge.takeStoreReads() };
    await edge.close();
    expect(data.agent!.revisions!.nodes.map(({ deployment }) => deployment!.status)).toEqual(['failed', 'queued'].slice(0, first));
    return cost;
  };
  await until('the same cost for 1 and for 2', async () => [await costOf(1), await costOf(2)] as const, ([one, two]) => JSON.stringify(one) === JSON.stringify(two), 10_000);
});

it('an Agent at a time is what everything up to that time makes of it', async () => {
  for (const { occurredAt } of history) {
    const last = history.findLast((event) => event.occurredAt <= occurredAt)!;
    expect(await then({ time: occurredAt })).toEqual(await then({ position: last.position }));
  }
  const early = new Date(Date.parse(history[0]!.occurredAt) - 1).toISOString();
  expect(await refusal(ask({ time: early }))).toEqual([['NOT_FOUND', undefined]]);
});

describe('what is no point of the history', () => {
  const cases: readonly (readonly [string, unknown, unknown])[] = [
    ['a position that is none', { position: 'yesterday' }, [{ path: '/at/position', code: 'INVALID_FORMAT' }]],
    ['text that no store keeps', { position: '\0' }, [{ path: '/at/position', code: 'INVALID_FORMAT' }]],
    ['a position beyond the end', { position: '00000000000099999999' }, [{ path: '/at/position', code: 'INVALID_VALUE' }]],
    ['a position of another store', { position: '00000000000000000012/00000000000000000012' }, [{ path: '/at/position', code: 'INVALID_VALUE' }]],
    ['a time that is none', { time: 'yesterday' }, [{ path: '/at/time', code: 'INVALID_FORMAT' }]],
    ['a day that is none', { time: '2026-13-01T00:00:00.000Z' }, [{ path: '/at/time', code: 'INVALID_FORMAT' }]],
    ['a time that has not come', { time: '2999-01-01T00:00:00.000Z' }, [{ path: '/at/time', code: 'INVALID_VALUE' }]],
    ['nothing', {}, undefined],
    ['both', { position: '00000000000000000001', time: '2026-01-01T00:00:00.000Z' }, undefined],
    ['null', { position: null }, undefined],
  ];
  it.each(cases)('%s is refused, where it is', async (_, at, details) => expect(await refusal(ask(at))).toEqual([['INVALID_REQUEST', details]]));

  it('and where the Agent was not there yet, there is none', async () => {
    const [created] = await allOf(`namespace-${namespaceId}`);
    expect(await refusal(ask({ position: created!.position }))).toEqual([['NOT_FOUND', undefined]]);
  });
});

describe('an Agent of the past is shown', () => {
  const at = () => ({ position: history[0]!.position });

  it('to nobody who may not read it now, whether it is there or not', async () => {
    const { key } = await world.addPrincipal([{ action: 'operate', resourceKind: 'agent', namespaceId }]);
    const invented = Buffer.from(`Agent:${namespaceId}/agt_${randomUUID()}`).toString('base64');
    for (const id of [agent.id, invented]) expect(await refusal(world.send(AgentThenDocument, { id, at: at() }, key))).toEqual([['FORBIDDEN', undefined]]);
    expect(await refusal(world.send(AgentThenDocument, { id: invented, at: at() }, reader.key))).toEqual([['NOT_FOUND', undefined]]);
  });

  it('without the revisions the caller may not read', async () => {
    const { key } = await world.addPrincipal([{ action: 'read', resourceKind: 'agent', namespaceId }]);
    const { data, errors } = await ask({ position: history.at(-1)!.position }, key);
    expect(data.agent).toMatchObject({ revisions: { nodes: [] }, latestDeployment: null });
    expect(errors!.map(({ path, extensions: { code } }) => [path!.join('.'), code])).toEqual([['agent.latestDeployment', 'FORBIDDEN']]);
  });

  it('to auditors only, once it is removed', async () => {
    const gone = await live('gone');
    const then = (await until('its history', () => allOf(`agent-${gone.agentId}`), ({ length }) => length >= 6)).at(-1)!;
    await world.streams.execute(agents, gone.agentId, { type: 'RequestDeletion', actorId: 'prn_1', initiatorPermitted: true, accessBindingIds: [], restrictionIds: [] }, system);
    await world.streams.execute(agents, gone.agentId, { type: 'FinishTeardown', claim: { workKey: workKey.deletion(gone.agentId), claimToken: 'test' } }, system);
    await world.streams.execute(agents, gone.agentId, { type: 'RemoveAgent' }, system);
    const look = (key: string) => world.send(AgentThenDocument, { id: gone.id, at: { position: then.position } }, key);
    expect(await refusal(look(reader.key))).toEqual([['FORBIDDEN', undefined]]);
    const auditor = await world.addPrincipal([{ action: 'read', resourceKind: 'audit', namespaceId }, { action: 'read', resourceKind: 'agent_revision', namespaceId }]);
    const { data, errors } = await look(auditor.key);
    expect(errors).toBeUndefined();
    expect(data.agent).toMatchObject({ name: 'gone', status: 'active', revisions: { nodes: [{ revision: 1, deployment: { status: 'failed' } }, { revision: 2, deployment: { status: 'queued' } }] } });
    const last = (await until('its removal', () => allOf(`agent-${gone.agentId}`), (events) => events.at(-1)!.type === 'AgentRemoved')).at(-1)!;
    expect(await refusal(world.send(AgentThenDocument, { id: gone.id, at: { position: last.position } }, auditor.key))).toEqual([['NOT_FOUND', undefined]]);
  });
});
