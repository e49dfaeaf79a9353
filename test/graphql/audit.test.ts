/** What auditors get: one record for each change and each denial, in order, within what they may read, and without a gap. (iam-auth-audit 5, architecture section 10) */
import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { agents } from '../../src/aggregates.ts';
import { until } from '../support/until.ts';
import { prefix } from '../support/write-history.ts';
import { createAgent, createConfiguration, createNamespace, deployAgent } from './fixture.ts';
import { AgentDetailsDocument, AuditRecordsDocument, CreateAgentDocument, HistoryDocument, NodeByIdDocument, type AuditFilter, type AuditRecordsQuery, type HistoryFilter } from './operations.generated.ts';
import { createWorld, type World } from './world.ts';

let world: World;
let namespaceId: string;
let otherNamespaceId: string;
let configurationId: string;
let agent: Awaited<ReturnType<typeof createAgent>>;
let revisionId: string;
let stranger: Awaited<ReturnType<World['addPrincipal']>>;

type AuditRecord = NonNullable<AuditRecordsQuery['auditEvents']>['nodes'][number];

const page = async (variables: { first?: number; after?: string | undefined; filter?: AuditFilter }, key?: string) => {
  const { data, errors } = await world.send(AuditRecordsDocument, variables, key);
  return { ...data.auditEvents, errors } as NonNullable<AuditRecordsQuery['auditEvents']> & { errors: typeof errors };
};
/** All records of a filter, page by page. */
const recordsOf = async (filter: AuditFilter = {}, key?: string, first = 100): Promise<readonly AuditRecord[]> => {
  const records: AuditRecord[] = [];
  for (let after: string | undefined; ; ) {
    const { nodes, pageInfo, errors } = await page({ first, after, filter }, key);
    expect(errors).toBeUndefined();
    records.push(...nodes);
    if (!pageInfo.hasNextPage) return records;
    after = pageInfo.endCursor!;
  }
};
const untilRecorded = (filter: AuditFilter, count: number) => until(`${count} records of ${JSON.stringify(filter)}`, () => recordsOf(filter), (found) => found.length === count);

beforeAll(async () => {
  world = await createWorld();
  ({ namespaceId } = await createNamespace(world, 'main'));
  ({ namespaceId: otherNamespaceId } = await createNamespace(world, 'other'));
  ({ configurationId } = await createConfiguration(world, namespaceId));
  await createConfiguration(world, otherNamespaceId);
  agent = await createAgent(world, namespaceId, configurationId, 'crab');
  ({ revisionId } = await deployAgent(world, agent.id));
  stranger = await world.addPrincipal([]);
  for (const id of [agent.id, agent.agentId]) await world.send(AgentDetailsDocument, { id }, stranger.key);
  await untilRecorded({ outcome: 'denied', actorId: stranger.servicePrincipalId }, 2);
});
afterAll(() => world.close());

describe('auditEvents', () => {
  it('gives one record for a command, however many events it left', async () => {
    const { data } = await world.send(CreateAgentDocument, { input: { namespaceId, configurationId, name: 'counted' } });
    expect(data.createAgent.__typename).toBe('CreateAgentPayload');
    const created = (await untilRecorded({ namespaceId, action: 'openclaw.agents.create' }, 2)).at(-1)!;
    expect(created).toMatchObject({
      stream: expect.stringMatching(/^agent-agt_/) as unknown,
      type: 'AgentCreated',
      unreadable: false,
      actor: { kind: 'service_principal', serviceKeyId: expect.stringMatching(/^key_/) as unknown },
      namespaceId,
      kind: 'mutation',
      outcome: 'success',
      resource: { kind: 'agent', namespaceId },
      authorization: { action: 'create', resource: { kind: 'agent', id: namespaceId } },
    });
    const history = await world.send(HistoryDocument, { first: 100, filter: { namespaceId } });
    const events = history.data.eventHistory!.nodes.filter(({ requestId }) => requestId === created.requestId);
    expect(events.length).toBeGreaterThan(1);
    expect((await recordsOf({ namespaceId })).filter(({ requestId }) => requestId === created.requestId)).toHaveLength(1);
  });

  it('gives denials with the permission that was refused', async () => {
    const denials = await recordsOf({ outcome: 'denied', actorId: stranger.servicePrincipalId });
    expect(denials).toHaveLength(2);
    expect(denials[0]).toMatchObject({
      type: 'AuthorizationDenied',
      kind: 'authorization_denial',
      action: 'openclaw.agents.read',
      resource: { kind: 'agent', id: agent.agentId },
      reasonCode: 'AUTHORIZATION_DENIED',
      authorization: { principalId: stranger.servicePrincipalId, action: 'read', resource: { kind: 'agent', id: agent.agentId } },
      details: { decisionReason: 'No explicit grant in scope' },
    });
  });

  it('is in order, newest last, in pages that neither repeat nor leave out', async () => {
    const all = await recordsOf();
    expect(all.map(({ position }) => position)).toEqual(all.map(({ position }) => position).toSorted());
    expect((await recordsOf({}, undefined, 3)).map(({ eventId }) => eventId)).toEqual(all.map(({ eventId }) => eventId));
    expect(new Set(all.map(({ eventId }) => eventId)).size).toBe(all.length);
  });

  it('finds by actor, action, resource, outcome and time, alone and together', async () => {
    const all = await recordsOf();
    const middle = all[Math.floor(all.length / 2)]!.occurredAt!;
    const cases: readonly (readonly [AuditFilter, (record: AuditRecord) => boolean])[] = [
      [{ namespaceId }, (record) => record.namespaceId === namespaceId],
      [{ actorId: stranger.servicePrincipalId }, ({ actor }) => actor?.principalId === stranger.servicePrincipalId],
      [{ action: 'openclaw.agents.deploy' }, ({ action }) => action === 'openclaw.agents.deploy'],
      [{ resourceId: agent.agentId }, ({ resource }) => resource?.id === agent.agentId],
      [{ resourceId: agent.id }, ({ resource }) => resource?.id === agent.agentId],
      [{ resourceId: revisionId, outcome: 'success' }, ({ resource, outcome }) => resource?.id === revisionId && outcome === 'success'],
      [{ outcome: 'denied' }, ({ outcome }) => outcome === 'denied'],
      [{ since: middle }, ({ occurredAt }) => occurredAt! >= middle],
      [{ until: middle }, ({ occurredAt }) => occurredAt! < middle],
      [{ namespaceId, actorId: stranger.servicePrincipalId, action: 'openclaw.agents.read', resourceId: agent.agentId, outcome: 'denied', since: all[0]!.occurredAt!, until: '2999-01-01T00:00:00.000Z' }, ({ actor }) => actor?.principalId === stranger.servicePrincipalId],
    ];
    for (const [filter, holds] of cases) {
      const expected = all.filter(holds).map(({ eventId }) => eventId);
      expect(expected.length, JSON.stringify(filter)).toBeGreaterThan(0);
      expect((await recordsOf(filter, undefined, 2)).map(({ eventId }) => eventId), JSON.stringify(filter)).toEqual(expected);
    }
  });

  it('shows an auditor of one Namespace that one only, and counts nothing else', async () => {
    const { key } = await world.addPrincipal([{ action: 'read', resourceKind: 'audit', namespaceId }]);
    const own = await recordsOf({ namespaceId }, key, 2);
    expect(own.length).toBeGreaterThan(3);
    expect(new Set(own.map((record) => record.namespaceId))).toEqual(new Set([namespaceId]));
    const foreign = (await recordsOf({ namespaceId: otherNamespaceId }))[0]!;
    expect((await page({ after: foreign.eventId, filter: { namespaceId } }, key)).errors!.map(({ extensions: { code } }) => code)).toEqual(['INVALID_REQUEST']);
    for (const filter of [{}, { namespaceId: otherNamespaceId }]) {
      const { data, errors } = await world.send(AuditRecordsDocument, { filter }, key);
      expect(data.auditEvents).toBeNull();
      expect(errors!.map(({ extensions: { code } }) => code)).toEqual(['FORBIDDEN']);
      expect(await world.denialsOf(errors![0]!.extensions.requestId)).toEqual(['openclaw.audit.read']);
    }
  });

  it('shows an auditor of the Installation everything, and nobody with other rights anything', async () => {
    const { key } = await world.addPrincipal([{ action: 'read', resourceKind: 'audit' }]);
    const places = async () => new Set((await recordsOf({}, key)).map((record) => record.namespaceId));
    await until('records of both Namespaces and of the Installation', places, (seen) => [null, namespaceId, otherNamespaceId].every((place) => seen.has(place)));
    const { key: reader } = await world.addPrincipal(['installation', 'namespace', 'agent', 'agent_revision', 'configuration'].map((resourceKind) => ({ action: 'read', resourceKind })));
    expect((await world.send(AuditRecordsDocument, {}, reader)).data.auditEvents).toBeNull();
  });
});

describe('a cursor, a size and a time that are none', () => {
  const details = async (answer: Promise<{ errors?: readonly { extensions: { code: string; details?: unknown } }[] }>) => (await answer).errors?.map(({ extensions: { code, details } }) => [code, details]);
  const cases: readonly (readonly [{ first?: number; after?: string }, string, string])[] = [
    [{ after: '00000000000000000012' }, '/after', 'INVALID_VALUE'],
    [{ after: `${randomUUID()} or true` }, '/after', 'INVALID_VALUE'],
  ];
  it.each(cases)('%j are refused, where they are', async (variables, path, code) => {
    const refused = [['INVALID_REQUEST', [{ path, code }]]];
    expect(await details(world.send(AuditRecordsDocument, variables))).toEqual(refused);
    expect(await details(world.send(HistoryDocument, variables))).toEqual(refused);
  });

  it('a time in another form is refused', async () => {
    expect(await details(world.send(AuditRecordsDocument, { filter: { since: 'yesterday' } }))).toEqual([['INVALID_REQUEST', [{ path: '/filter/since', code: 'INVALID_FORMAT' }]]]);
  });

  it('a time that is no text is refused before anything is asked', async () => {
    for (const since of [5, { toString: 1 }, ['2026-01-01T00:00:00.000Z']] as unknown as string[])
      expect(await details(world.send(AuditRecordsDocument, { filter: { since } })), JSON.stringify(since)).toEqual([['INVALID_REQUEST', undefined]]);
  });

  it('text that no store keeps is refused, where it is', async () => {
    const globalId = Buffer.from('Agent:ns/\0').toString('base64');
    for (const [filter, path] of [[{ action: '\0' }, '/filter/action'], [{ actorId: '\0' }, '/filter/actorId'], [{ resourceId: globalId }, '/filter/resourceId']] as const)
      expect(await details(world.send(AuditRecordsDocument, { filter })), path).toEqual([['INVALID_REQUEST', [{ path, code: 'INVALID_VALUE' }]]]);
    for (const [filter, path] of [[{ stream: '\0' }, '/filter/stream'], [{ types: ['AgentCreated', '\ud800'] }, '/filter/types/1']] as [HistoryFilter, string][])
      expect(await details(world.send(HistoryDocument, { filter })), path).toEqual([['INVALID_REQUEST', [{ path, code: 'INVALID_VALUE' }]]]);
    expect(await details(world.send(NodeByIdDocument, { id: Buffer.from('HistoryEvent:\0').toString('base64') }))).toEqual([['INVALID_REQUEST', [{ path: '/id', code: 'INVALID_FORMAT' }]]]);
  });

  it('a cursor of no event, or of one outside the filter, is refused', async () => {
    const outside = (await recordsOf({ namespaceId: otherNamespaceId }))[0]!.eventId;
    for (const variables of [{ after: randomUUID() }, { after: outside, filter: { namespaceId } }])
      expect(await details(world.send(AuditRecordsDocument, variables))).toEqual([['INVALID_REQUEST', [{ path: '/after', code: 'INVALID_VALUE' }]]]);
  });
});

describe('events this build cannot read', () => {
  const metadataOf = (more: object = {}): string =>
    JSON.stringify({
      schema: 1,
      actor: { principalId: 'prn_other', kind: 'principal' },
      requestId: 'req_other',
      correlationId: 'req_other',
      causationId: null,
      occurredAt: '2026-01-01T00:00:00.000Z',
      policyRevision: null,
      previousHash: null,
      audit: { kind: 'mutation', action: 'openclaw.agents.molt', resource: { kind: 'agent', id: 'agt_other', namespaceId }, outcome: 'success' },
      ...more,
    });
  const strangeEvents = () => [
    { type: 'AgentMolted', data: '{}', metadata: metadataOf() },
    { type: 'AgentCreated', data: '{}', metadata: metadataOf({ schema: 99 }) },
    { type: 'AgentRemoved', data: 'no JSON', metadata: metadataOf() },
    { type: 'AgentMolted', data: '{}', metadata: metadataOf({ audit: undefined }) },
    { type: 'AgentMolted', data: '{}', metadata: 'no JSON' },
    { type: 'AgentRemoved', data: JSON.stringify({ agentId: 'agt_strange', namespaceId: 'ns_x' }), metadata: '{"schema":1}' },
  ];

  it('stand in their place, marked, with what of their record can be read; nothing is missing and no page fails', async () => {
    const stream = 'agent-strange';
    const strange = strangeEvents();
    for (const [index, bytes] of strange.entries()) await world.store.append(`${prefix}${stream}`, index - 1, [{ id: randomUUID(), ...bytes }]);
    const { agentId } = await createAgent(world, namespaceId, configurationId, 'after the strange');
    const all = await until('every record', () => recordsOf({}, undefined, 3), (found) => found.at(-1)?.stream === `agent-${agentId}`);
    const rows = all.slice(-6, -1);
    expect(rows.map(({ stream, type, unreadable, action }) => [stream, type, unreadable, action])).toEqual([
      [stream, 'AgentMolted', true, 'openclaw.agents.molt'],
      [stream, 'AgentCreated', true, 'openclaw.agents.molt'],
      [stream, 'AgentRemoved', true, 'openclaw.agents.molt'],
      [stream, 'AgentMolted', true, null],
      [stream, 'AgentRemoved', true, null],
    ]);
    expect(rows.at(-1)).toEqual({
      eventId: expect.any(String) as unknown,
      position: expect.any(String) as unknown,
      stream,
      type: 'AgentRemoved',
      unreadable: true,
      namespaceId,
      ...Object.fromEntries(['occurredAt', 'actor', 'requestId', 'kind', 'action', 'resource', 'outcome', 'reasonCode', 'authorization', 'details'].map((member) => [member, null])),
    });
    expect((await recordsOf({ namespaceId })).filter(({ unreadable }) => unreadable)).toHaveLength(5);

    const { data, errors } = await world.send(HistoryDocument, { first: 100, filter: { stream } });
    expect(errors).toBeUndefined();
    expect(data.eventHistory!.nodes.map(({ revision, unreadable, data }) => [revision, unreadable, data])).toEqual(strange.map((_, index) => [index, true, null]));
  });

  it('of an Agent are told to the auditors of its Namespace, and to nobody else\'s', async () => {
    const { agentId } = await createAgent(world, namespaceId, configurationId, 'will be strange');
    const stream = `agent-${agentId}`;
    // Somebody asked for the Agent in the other Namespace: that denial belongs there, and the Agent does not.
    const query = `{ agent(id: "${agentId}", namespaceId: "${otherNamespaceId}") { name } }`;
    await fetch(world.edge.endpoint, { method: 'POST', headers: { 'content-type': 'application/json', 'x-api-key': stranger.key }, body: JSON.stringify({ query }) });
    const { revision } = await world.streams.load(agents, agentId);
    const strange = ['no JSON', metadataOf({ schema: 99, audit: undefined }), metadataOf({ schema: 1e12 }), metadataOf({ audit: { ...(JSON.parse(metadataOf()) as { audit: object }).audit, outcome: 'sunken' } })];
    for (const [index, metadata] of strange.entries()) await world.store.append(`${prefix}${stream}`, revision + index, [{ id: randomUUID(), type: 'AgentMolted', data: '{}', metadata }]);
    const { key } = await world.addPrincipal([{ action: 'read', resourceKind: 'audit', namespaceId }]);
    const seen = async () => (await recordsOf({ namespaceId }, key)).filter((record) => record.stream === stream && record.unreadable).map((record) => [record.namespaceId, record.type, record.occurredAt === null, record.outcome]);
    await until('the placeholders', seen, ({ length }) => length === 3);
    expect(await seen()).toEqual([[namespaceId, 'AgentMolted', true, null], [namespaceId, 'AgentMolted', true, null], [namespaceId, 'AgentMolted', false, null]]);
    const { data, errors } = await world.send(HistoryDocument, { first: 100, filter: { namespaceId, stream } }, key);
    expect(errors).toBeUndefined();
    const marked = data.eventHistory!.nodes.filter(({ unreadable }) => unreadable);
    expect(marked.map((event) => [event.namespaceId, event.schema])).toEqual([[namespaceId, null], [namespaceId, 99], [namespaceId, null], [namespaceId, 1]]);
    for (const { id } of marked) expect((await world.send(NodeByIdDocument, { id }, key)).data.node).toEqual({ __typename: 'HistoryEvent', id });
    const { key: other } = await world.addPrincipal([{ action: 'read', resourceKind: 'audit', namespaceId: otherNamespaceId }]);
    expect((await recordsOf({ namespaceId: otherNamespaceId }, other)).filter(({ unreadable }) => unreadable)).toEqual([]);
    expect((await world.send(NodeByIdDocument, { id: marked[0]!.id }, other)).errors![0]!.extensions.code).toBe('FORBIDDEN');
  });

  it('cost no statement more than any other', async () => {
    const statements = async (first: number): Promise<number> => {
      world.edge.takeStatements();
      await page({ first });
      return world.edge.takeStatements()!;
    };
    expect(await statements(100)).toBe(await statements(1));
  });

  it('keep their stream parked, so that a build which can read them does', async () => {
    const unread = async () => (await recordsOf()).filter(({ unreadable }) => unreadable).map((record) => [record.eventId, record.namespaceId]);
    const before = await unread();
    await world.retryParked();
    expect(await unread()).toEqual(before);
    expect(before).toHaveLength(8);
  });
});
