/** The history of one Agent and of one Namespace, as auditors see it and as who may only read the Agent. (architecture sections 7 and 10) */
import { afterAll, beforeAll, expect, it } from 'vitest';
import { until } from '../support/until.ts';
import { createAgent, createConfiguration, createNamespace, deployAgent } from './fixture.ts';
import { AgentDetailsDocument, DeleteAgentDocument, HistoriesOfDocument, HistoryDocument, StopAgentDocument } from './operations.generated.ts';
import { createWorld, type World } from './world.ts';

let world: World;
let namespaceId: string;
let otherNamespaceId: string;
let agent: Awaited<ReturnType<typeof createAgent>>;
let operator: Awaited<ReturnType<World['addPrincipal']>>;
let stranger: Awaited<ReturnType<World['addPrincipal']>>;

const ask = (key?: string) => world.send(HistoriesOfDocument, { id: agent.id, namespaceId, first: 100 }, key);
const codesOf = ({ errors = [] }: Awaited<ReturnType<typeof ask>>) => errors.map(({ path, extensions: { code } }) => [path?.join('.'), code]);

beforeAll(async () => {
  world = await createWorld();
  ({ namespaceId } = await createNamespace(world, 'main'));
  ({ namespaceId: otherNamespaceId } = await createNamespace(world, 'other'));
  const { configurationId } = await createConfiguration(world, namespaceId);
  agent = await createAgent(world, namespaceId, configurationId, 'crab');
  await createAgent(world, namespaceId, configurationId, 'another crab');
  await deployAgent(world, agent.id);
  operator = await world.addPrincipal([
    { action: 'operate', resourceKind: 'agent', namespaceId },
    ...['agent', 'agent_revision', 'namespace'].map((resourceKind) => ({ action: 'read', resourceKind, namespaceId })),
  ]);
  await world.send(StopAgentDocument, { input: { id: agent.id } }, operator.key);
  stranger = await world.addPrincipal([]);
  await world.send(AgentDetailsDocument, { id: agent.agentId, namespaceId }, stranger.key);
  // The same id below a Namespace it is not in: no part of the Agent's history.
  await world.send(AgentDetailsDocument, { id: agent.agentId, namespaceId: otherNamespaceId }, stranger.key);
  await until('both denials', async () => (await world.send(HistoryDocument, { first: 100, filter: { types: ['AuthorizationDenied'] } })).data.eventHistory!.nodes.length, (count) => count >= 2);
});
afterAll(() => world.close());

it('an auditor of the Namespace sees everything that concerns it, and each event as the history has it', async () => {
  const { key } = await world.addPrincipal([{ action: 'read', resourceKind: 'audit', namespaceId }, ...['agent', 'namespace'].map((resourceKind) => ({ action: 'read', resourceKind }))]);
  const { data, errors } = await ask(key);
  expect(errors).toBeUndefined();
  const events = data.agent!.history!.nodes;
  expect(events.map(({ type }) => type)).toEqual(['ResourceAdmitted', 'ServicePrincipalCreated', 'AgentCreated', 'AgentRevisionSnapshotted', 'AgentRevisionAdmitted', 'AgentStopRequested', 'AuthorizationDenied']);
  expect(events.at(-1)).toMatchObject({ actor: { principalId: stranger.servicePrincipalId }, audit: { action: 'openclaw.agents.read', outcome: 'denied', details: { identityId: stranger.servicePrincipalId } } });
  const everything = (await world.send(HistoryDocument, { first: 100, filter: { namespaceId } })).data.eventHistory!.nodes;
  expect(data.namespace!.history!.nodes.map(({ eventId }) => eventId)).toEqual(everything.map(({ eventId }) => eventId));
  expect(JSON.stringify(data)).not.toContain(otherNamespaceId);
});

it('who may read the Agent sees its own stream, with the ids of other actors and without their evidence', async () => {
  const answer = await ask(operator.key);
  expect(codesOf(answer)).toEqual([['namespace.history', 'FORBIDDEN']]);
  expect(answer.data.namespace).toEqual({ history: null });
  const events = answer.data.agent!.history!.nodes;
  expect(events.map(({ stream, type }) => [stream, type])).toEqual(['AgentCreated', 'AgentRevisionAdmitted', 'AgentStopRequested'].map((type) => [`agent-${agent.agentId}`, type]));
  for (const event of events.slice(0, 2)) {
    expect(event).toMatchObject({ actor: { principalId: expect.stringMatching(/^spn_/) as unknown, kind: 'service_principal', serviceKeyId: null }, requestId: null, correlationId: null, policyRevision: null, audit: null, data: { agentId: agent.agentId } });
  }
  expect(events[2]).toMatchObject({
    actor: { principalId: operator.servicePrincipalId, serviceKeyId: expect.stringMatching(/^key_/) as unknown },
    requestId: expect.stringMatching(/^req_/) as unknown,
    audit: { action: 'openclaw.agents.stop', outcome: 'success' },
  });
});

it('nobody else sees anything, and the denial names what was wanted and what was missing', async () => {
  const answer = await ask(stranger.key);
  expect(answer.data).toEqual({ agent: null, namespace: null });
  const { key: reader } = await world.addPrincipal([{ action: 'read', resourceKind: 'namespace', namespaceId }]);
  const refused = await ask(reader);
  expect(codesOf(refused)).toEqual(expect.arrayContaining([['agent', 'FORBIDDEN'], ['namespace.history', 'FORBIDDEN']]));
  expect((await world.denialsOf(refused.errors![0]!.extensions.requestId)).sort()).toEqual(['openclaw.agents.read', 'openclaw.audit.read']);
});

it('of the revisions, who is no auditor sees what he may read, whatever page he asks for', async () => {
  const { configurationId } = await createConfiguration(world, namespaceId);
  const deployed = await createAgent(world, namespaceId, configurationId, 'crab of two revisions');
  const [first, second] = [await deployAgent(world, deployed.id), await deployAgent(world, deployed.id)];
  const mine = { action: 'read', resourceKind: 'agent', namespaceId, resourceId: deployed.agentId };
  const ofRevision = (place: object) => ({ action: 'read', resourceKind: 'agent_revision', ...place });
  const read = async (key: string, page: object = {}) => {
    const { data, errors } = await world.send(HistoriesOfDocument, { id: deployed.id, namespaceId, first: 100, ...page }, key);
    return { events: data.agent?.history?.nodes.map(({ type, data: told }) => [type, (told as { revisionId?: string }).revisionId]), codes: codesOf({ errors } as never).filter(([path]) => path !== 'namespace') };
  };
  const created = ['AgentCreated', undefined];
  const admitted = ({ revisionId }: typeof first) => ['AgentRevisionAdmitted', revisionId];

  const { key: ofNone } = await world.addPrincipal([mine]);
  expect((await read(ofNone)).events).toEqual([created]);
  const { key: ofOne } = await world.addPrincipal([mine, ofRevision({ namespaceId, resourceId: second.revisionId })]);
  expect((await read(ofOne)).events).toEqual([created, admitted(second)]);
  const { key: ofAll } = await world.addPrincipal([mine, ofRevision({ namespaceId })]);
  expect((await read(ofAll)).events).toEqual([created, admitted(first), admitted(second)]);

  const auditing = await world.send(HistoriesOfDocument, { id: deployed.id, namespaceId, first: 100 });
  const hidden = auditing.data.agent!.history!.nodes.find(({ type, data }) => type === 'AgentRevisionAdmitted' && (data as { revisionId: string }).revisionId === first.revisionId)!;
  expect((await read(ofAll, { first: 1, after: hidden.eventId })).events).toEqual([admitted(second)]);
  expect(await read(ofOne, { first: 1, after: hidden.eventId })).toEqual({ events: undefined, codes: [['agent.history', 'INVALID_REQUEST']] });

  await world.restrict(ofRevision({ namespaceId, resourceId: first.revisionId }));
  expect((await read(ofAll)).events).toEqual([created, admitted(second)]);
});

it('who is no auditor does not learn from a deletion what policy is about the Agent', async () => {
  const { configurationId } = await createConfiguration(world, namespaceId);
  const doomed = await createAgent(world, namespaceId, configurationId, 'doomed crab');
  const { key } = await world.addPrincipal([{ action: 'read', resourceKind: 'agent', namespaceId, resourceId: doomed.agentId }]);
  await world.restrict({ action: 'deploy', resourceKind: 'agent', namespaceId, resourceId: doomed.agentId });
  await world.send(DeleteAgentDocument, { input: { id: doomed.id } });
  const deletion = async (as?: string) => (await world.send(HistoriesOfDocument, { id: doomed.id, namespaceId, first: 100 }, as)).data.agent!.history!.nodes.find(({ type }) => type === 'AgentDeletionRequested')!.data;
  expect(await deletion()).toEqual({ agentId: doomed.agentId, namespaceId, accessBindingIds: [expect.any(String)], restrictionIds: [expect.any(String)] });
  expect(await deletion(key)).toEqual({ agentId: doomed.agentId, namespaceId });
});
