/** Failure scenarios 1 and 2: creators, users and deleters of one thing, each stopped between its two appends. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { iam } from '../../src/aggregates.ts';
import { defaultNamespace, demand, stepsIn, type AgentAnswer, type Steps } from '../end-to-end/steps.ts';
import { eventsOf, expectUnbrokenChains, storedEvents } from '../end-to-end/stored-history.ts';
import { startTestApplication, type TestApplication } from '../support/app.ts';
import { sent } from '../support/sent.ts';
import { until } from '../support/until.ts';
import { openReplica, type Replica } from './replica.ts';

// A holder that shows no effect is given two seconds before it is fenced off.

let app: TestApplication;
let slow: Replica;
let other: Replica;
let namespaceId: string;
let steps: Steps;

beforeAll(async () => {
  app = await startTestApplication();
  slow = await openReplica(app);
  other = await openReplica(app, 'other');
  namespaceId = await defaultNamespace(app.client);
  steps = stepsIn(app.client, namespaceId);
});
afterAll(async () => {
  await slow.close();
  await other.close();
  await app.close();
});

const typesOf = async (stream: string) => (await eventsOf(app.database.pool, stream)).map(({ type }) => type);
const agentsNamed = async (name: string) => (await demand<AgentAnswer[]>(app.client, 200, 'GET', `${steps.at}/agents`)).filter((agent) => agent.name === name);
/** What another replica creates comes to this one's lists when its projector has passed it. */
const untilListed = (name: string) => until(`an Agent named ${name}`, () => agentsNamed(name), ({ length }) => length > 0);

/** The id under which the slow replica has registered a resource that has no event of its own yet. */
const registered = async (kind: string, name?: string): Promise<string> => {
  const admissions = (await storedEvents(app.database.pool)).filter(({ type }) => type === 'ResourceAdmitted').map(({ data }) => JSON.parse(data) as { kind: string; id: string; name?: string });
  return admissions.findLast((admitted) => admitted.kind === kind && (name === undefined || admitted.name === name))!.id;
};

const deleteConfiguration = async (id: string) => {
  const { status, error } = await app.client.rest('DELETE', `${steps.at}/configurations/${id}`);
  return { status, ...(error !== undefined && { code: error.code }) };
};

describe('scenario 1: a name has one holder', () => {
  it('scenario 1: a creator that stopped between its register entry and its Agent is fenced off, and its late append fails', async () => {
    const { id: configurationId } = await steps.configure();
    const held = slow.holdNext('AgentCreated');
    const late = slow.services.agents.create(slow.caller(), namespaceId, sent({ name: 'triage', configurationId }));
    const lost = expect(late).rejects.toMatchObject({ code: 'RESOURCE_CONFLICT' });
    await held.reached;
    const loserId = await registered('agent', 'triage');

    const winner = await steps.createAgent('triage', configurationId);
    held.release();
    await lost;
    expect((await agentsNamed('triage')).map(({ id }) => id)).toEqual([winner.id]);
    expect(await typesOf(`agent-${loserId}`)).toEqual(['AgentCreationAbandoned']);
    expect((await app.client.rest('GET', steps.agentPath(loserId))).status).toBe(404);

    // What the loser leaves takes nothing from the winner: its name is free only when it goes itself.
    expect((await app.client.rest('POST', `${steps.at}/agents`, { name: 'triage', configurationId })).status).toBe(409);
    await steps.remove(winner.id);
    await steps.gone(winner.id);
    await expectUnbrokenChains(app.database.pool);
  });

  it('scenario 1: a creator that is only slow keeps its name', async () => {
    const { id: configurationId } = await steps.configure();
    const held = slow.holdNext('AgentCreated');
    const created = slow.services.agents.create(slow.caller(), namespaceId, sent({ name: 'slow', configurationId }));
    await held.reached;
    const second = app.client.rest('POST', `${steps.at}/agents`, { name: 'slow', configurationId });
    held.release();
    expect((await created).name).toBe('slow');
    expect(await second).toMatchObject({ status: 409, error: { code: 'RESOURCE_CONFLICT' } });
    expect(await untilListed('slow')).toHaveLength(1);
  });

  it('scenario 1: a creation with an idempotency key that was fenced off comes back under an id no fence concerns', async () => {
    const { id: configurationId } = await steps.configure();
    const create = (replica: Replica, options = {}) => replica.services.agents.create(replica.caller(), namespaceId, sent({ name: 'keyed', configurationId }), options);
    const late = slow.holdNext('AgentCreated');
    const created = create(slow, { idempotencyKey: 'a key of the late creator' });
    await late.reached;
    const fenced = other.holdNext('ServicePrincipalRemoved');
    const lost = expect(create(other)).rejects.toMatchObject({ code: 'RESOURCE_CONFLICT' });
    await fenced.reached;
    late.release();
    const { id, servicePrincipalId } = await created;
    fenced.release();
    await lost;
    expect(await untilListed('keyed')).toMatchObject([{ id }]);
    expect((await app.client.rest('POST', `${steps.at}/agents`, { name: 'keyed', configurationId })).status).toBe(409);
    expect((await slow.streams.load(iam, '')).state.principalOfAgent.get(id)).toBe(servicePrincipalId);
    expect(await create(other, { idempotencyKey: 'a key of the late creator' })).toMatchObject({ id });
  });

  it('scenario 1: a Namespace whose creator stopped between its name and its first event loses the name for good', async () => {
    const held = slow.holdNext('NamespaceCreated');
    const lost = expect(slow.services.namespaces.create(slow.caller(), sent({ name: 'contested' }))).rejects.toMatchObject({ code: 'RESOURCE_CONFLICT' });
    await held.reached;
    expect((await app.client.rest('POST', '/namespaces', { name: 'contested' })).status).toBe(201);
    held.release();
    await lost;
    const namespaces = await demand<{ name: string }[]>(app.client, 200, 'GET', '/namespaces');
    expect(namespaces.filter(({ name }) => name === 'contested')).toHaveLength(1);
  });
});

describe('scenario 2: a Configuration cannot be deleted under a concurrent user of it', () => {
  it('scenario 2: deleted while a creation with it is held up, it stays deleted and the creation fails', async () => {
    const { id: configurationId } = await steps.configure();
    const held = slow.holdNext('AgentCreated');
    const late = slow.services.agents.create(slow.caller(), namespaceId, sent({ name: 'late creation', configurationId }));
    const lost = expect(late).rejects.toMatchObject({ code: 'NOT_FOUND' });
    await held.reached;
    expect(await deleteConfiguration(configurationId)).toEqual({ status: 204 });
    held.release();
    await lost;
    expect(await agentsNamed('late creation')).toEqual([]);
  });

  it('scenario 2: a deletion that is held up has already decided', async () => {
    const { id: configurationId } = await steps.configure();
    const held = slow.holdNext('ConfigurationDeleted');
    const deletion = slow.services.configurations.delete(slow.caller(), { namespaceId, configurationId });
    await held.reached;
    expect(await app.client.rest('POST', `${steps.at}/agents`, { name: 'too late', configurationId })).toMatchObject({ status: 404, error: { code: 'NOT_FOUND' } });
    held.release();
    await deletion;
    expect(await agentsNamed('too late')).toEqual([]);
  });

  it('scenario 2: deleted while a change to it is held up, the change fails and the Agent keeps what it had', async () => {
    const before = await steps.configure();
    const wanted = await steps.configure();
    const { id: agentId } = await steps.createAgent('changing', before.id);
    const held = slow.holdNext('AgentConfigurationBound');
    const late = slow.services.agents.update(slow.caller(), { namespaceId, agentId }, sent({ configurationId: wanted.id }));
    const lost = expect(late).rejects.toMatchObject({ code: 'NOT_FOUND' });
    await held.reached;
    expect(await deleteConfiguration(wanted.id)).toEqual({ status: 204 });
    held.release();
    await lost;
    expect((await steps.agent(agentId)).configurationId).toBe(before.id);
    expect(await typesOf(`agent-${agentId}`)).toEqual(['AgentCreated', 'IntentVoided']);
    expect(await deleteConfiguration(before.id)).toEqual({ status: 409, code: 'RESOURCE_CONFLICT' });
  });

  it('scenario 2: a reference dropped late does not take one that was made again meanwhile', async () => {
    const first = await steps.configure();
    const second = await steps.configure();
    const { id: agentId } = await steps.createAgent('to and fro', first.id);
    const held = slow.holdNext('ReferencesDropped');
    const late = slow.services.agents.update(slow.caller(), { namespaceId, agentId }, sent({ configurationId: second.id }));
    await held.reached;
    await demand(app.client, 200, 'PATCH', steps.agentPath(agentId), { configurationId: first.id });
    held.release();
    await late;
    expect(await deleteConfiguration(first.id)).toEqual({ status: 409, code: 'RESOURCE_CONFLICT' });
    expect(await deleteConfiguration(second.id)).toEqual({ status: 204 });
  });

  it('scenario 2: a deletion that fenced a late change off does not take the reference the change made with its next try', async () => {
    const before = await steps.configure();
    const wanted = await steps.configure();
    const { id: agentId } = await steps.createAgent('trying again', before.id);
    const late = slow.holdNext('AgentConfigurationBound');
    const changed = slow.services.agents.update(slow.caller(), { namespaceId, agentId }, sent({ configurationId: wanted.id }));
    await late.reached;
    const fenced = other.holdNext('ReferencesDropped');
    const refused = expect(other.services.configurations.delete(other.caller(), { namespaceId, configurationId: wanted.id })).rejects.toMatchObject({ code: 'RESOURCE_CONFLICT' });
    await fenced.reached;
    late.release();
    expect(await changed).toMatchObject({ configurationId: wanted.id });
    fenced.release();
    await refused;
  });

  it('scenario 2: when creation and deletion race, exactly one of them succeeds', async () => {
    await Promise.all(
      Array.from({ length: 12 }, async (_, index) => {
        const { id: configurationId } = await steps.configure();
        const create = () => app.client.rest('POST', `${steps.at}/agents`, { name: `racing ${index}`, configurationId });
        const [created, deleted] =
          index % 2 === 0 ? await Promise.all([create(), deleteConfiguration(configurationId)]) : (await Promise.all([deleteConfiguration(configurationId), create()])).toReversed();
        expect([[201, 409], [404, 204]]).toContainEqual([created!.status, deleted!.status]);
      }),
    );
  });
});
