/** What queries and commands answer: results and refusals, ids of both kinds, connections, history. */
import type { TypedDocumentNode } from '@graphql-typed-document-node/core';
import { parse } from 'graphql';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { newId } from '../../src/kernel/ids.ts';
import { createAgent, createConfiguration, createNamespace, deployAgent, harnessAuth, refused, succeeded, values } from './fixture.ts';
import {
  AgentDetailsDocument,
  AgentPageDocument,
  ConfigurationDetailsDocument,
  CreateAgentDocument,
  CreateConfigurationDocument,
  CreateNamespaceDocument,
  DeleteAgentDocument,
  DeleteConfigurationDocument,
  DeleteNamespaceDocument,
  DeployAgentDocument,
  DeploymentDetailsDocument,
  HistoryDocument,
  NodeByIdDocument,
  NodesByIdDocument,
  OverviewDocument,
  RevisionDetailsDocument,
  StopAgentDocument,
  UpdateAgentDocument,
  UpdateConfigurationDocument,
} from './operations.generated.ts';
import { createWorld, installationId, type World } from './world.ts';

let world: World;
let namespace: Awaited<ReturnType<typeof createNamespace>>;
let configuration: Awaited<ReturnType<typeof createConfiguration>>;
let agent: Awaited<ReturnType<typeof createAgent>>;
let revision: Awaited<ReturnType<typeof deployAgent>>;

beforeAll(async () => {
  world = await createWorld();
  namespace = await createNamespace(world, 'main');
  configuration = await createConfiguration(world, namespace.namespaceId);
  agent = await createAgent(world, namespace.namespaceId, configuration.configurationId, 'crab');
  revision = await deployAgent(world, agent.agentId);
});
afterAll(() => world.close());

describe('commands', () => {
  it('answer the resource as decided, and echo the client mutation id', async () => {
    const { data } = await world.send(CreateAgentDocument, {
      input: { namespaceId: namespace.id, configurationId: configuration.id, name: 'by global ids', clientMutationId: 'mine' },
    });
    expect(succeeded(data.createAgent)).toMatchObject({
      clientMutationId: 'mine',
      agent: { name: 'by global ids', namespaceId: namespace.namespaceId, configurationId: configuration.configurationId, executionMode: 'embedded', harnessAuth: null, desiredRuntimeState: 'stopped' },
    });
    expect(revision).toMatchObject({ agentId: agent.agentId, revision: 1, deployment: { deploymentId: revision.revisionId, status: 'queued' } });
  });

  it('refuse bad input as the shared schema does, with details', async () => {
    const { data, errors } = await world.send(CreateAgentDocument, {
      input: { namespaceId: namespace.namespaceId, configurationId: 'cfg_nonsense', name: ' padded', plugins: null, harnessAuth: { method: 'telepathy' } },
    });
    expect(errors).toBeUndefined();
    expect(refused(data.createAgent)).toMatchObject({
      code: 'INVALID_REQUEST',
      status: 400,
      details: expect.arrayContaining([
        { path: '/name', code: 'INVALID_FORMAT' },
        { path: '/configurationId', code: 'INVALID_FORMAT' },
        { path: '/plugins', code: 'INVALID_TYPE' },
        { path: '/harnessAuth', code: 'INVALID_VALUE' },
      ]) as unknown,
    });
    const deep = JSON.parse(`${'{"a":'.repeat(30)}1${'}'.repeat(30)}`) as object;
    const tooDeep = await world.send(CreateConfigurationDocument, { input: { namespaceId: namespace.namespaceId, kind: 'agent', values: deep } });
    expect(refused(tooDeep.data.createConfiguration).details).toEqual([expect.objectContaining({ code: 'TOO_DEEP' })]);
    const shortKey = await world.send(DeployAgentDocument, { input: { id: agent.id, idempotencyKey: 'short' } });
    expect(refused(shortKey.data.deployAgent).details).toEqual([{ path: '/idempotencyKey', code: 'INVALID_VALUE' }]);
  });

  it('refuse what is taken or gone, with the documented code', async () => {
    const taken = await world.send(CreateNamespaceDocument, { input: { name: 'main' } });
    expect(refused(taken.data.createNamespace)).toMatchObject({ code: 'RESOURCE_CONFLICT', status: 409, requestId: expect.stringMatching(/^req_/) as unknown });
    const absent = await world.send(UpdateConfigurationDocument, { input: { id: 'cfg_00000000-0000-4000-8000-000000000000', values: {} } });
    expect(refused(absent.data.updateConfiguration)).toMatchObject({ code: 'NOT_FOUND', status: 404 });
    const used = await world.send(DeleteConfigurationDocument, { input: { id: configuration.configurationId } });
    expect(refused(used.data.deleteConfiguration).code).toBe('RESOURCE_CONFLICT');
    const full = await world.send(DeleteNamespaceDocument, { input: { id: namespace.id } });
    expect(refused(full.data.deleteNamespace).code).toBe('NAMESPACE_NOT_EMPTY');
  });

  it('keep what an update leaves out, and clear what it sets to null', async () => {
    const { agentId } = await createAgent(world, namespace.namespaceId, configuration.configurationId, 'molting');
    const input = { id: agentId, configurationId: configuration.configurationId };
    const kept = succeeded((await world.send(UpdateAgentDocument, { input })).data.updateAgent).agent;
    expect(kept.harnessAuth).toEqual(harnessAuth);
    const cleared = succeeded((await world.send(UpdateAgentDocument, { input: { ...input, harnessAuth: null, ifMatch: kept.draftRevision } })).data.updateAgent).agent;
    expect(cleared.harnessAuth).toBeNull();
    const stale = await world.send(UpdateAgentDocument, { input: { ...input, harnessAuth, ifMatch: kept.draftRevision } });
    expect(refused(stale.data.updateAgent).code).toBe('RESOURCE_CONFLICT');
  });

  it('give the first answer again under the same idempotency key', async () => {
    const input = { namespaceId: namespace.namespaceId, configurationId: configuration.configurationId, name: 'once', idempotencyKey: 'once-and-only-once' };
    const first = succeeded((await world.send(CreateAgentDocument, { input })).data.createAgent).agent;
    expect(succeeded((await world.send(CreateAgentDocument, { input })).data.createAgent).agent.agentId).toBe(first.agentId);
    expect(refused((await world.send(CreateAgentDocument, { input: { ...input, name: 'other' } })).data.createAgent).code).toBe('RESOURCE_CONFLICT');
  });

  it('stop and delete', async () => {
    const { agentId } = await createAgent(world, namespace.namespaceId, configuration.configurationId, 'short-lived');
    expect(succeeded((await world.send(StopAgentDocument, { input: { id: agentId } })).data.stopAgent).agent.desiredRuntimeState).toBe('stopped');
    expect(succeeded((await world.send(DeleteAgentDocument, { input: { id: agentId } })).data.deleteAgent).agent).toEqual({ agentId, status: 'deleting' });
    expect(refused((await world.send(DeployAgentDocument, { input: { id: agentId } })).data.deployAgent).code).toBe('AGENT_DELETING');
  });
});

describe('queries', () => {
  it('take raw and global ids, and answer the same', async () => {
    const { data } = await world.send(AgentDetailsDocument, { id: agent.agentId });
    expect(data.agent).toMatchObject({
      id: agent.id,
      name: 'crab',
      activeRevisionId: null,
      activeRevision: null,
      desiredRuntimeState: 'running',
      viewerCan: { read: true, update: true, deploy: true, operate: true, delete: true },
      namespace: { name: 'main' },
      configuration: { configurationId: configuration.configurationId, values },
      revisions: { nodes: [{ revisionId: revision.revisionId, revision: 1 }] },
      latestDeployment: { deploymentId: revision.revisionId, status: 'queued' },
    });
    for (const variables of [{ id: agent.id }, { id: agent.agentId, namespaceId: namespace.namespaceId }, { id: agent.agentId, namespaceId: namespace.id }])
      expect((await world.send(AgentDetailsDocument, variables)).data).toEqual(data);
    const byRaw = await world.send(DeploymentDetailsDocument, { id: revision.revisionId });
    expect(byRaw.data.deployment).toMatchObject({ deploymentId: revision.revisionId, status: 'queued', error: null, warnings: [], progress: { lastAttempt: null }, cleanup: null, revision: { revision: 1 }, agent: { name: 'crab' } });
    expect((await world.send(DeploymentDetailsDocument, { id: byRaw.data.deployment!.id })).data).toEqual(byRaw.data);
    expect((await world.send(RevisionDetailsDocument, { id: revision.id })).data.agentRevision).toMatchObject({ configurationGeneration: 1, agent: { name: 'crab' }, deployment: { deploymentId: revision.revisionId } });
    expect((await world.send(ConfigurationDetailsDocument, { id: configuration.id })).data.configuration).toMatchObject({ generation: 1, values });
  });

  it('find any node by its global id', async () => {
    const deployment = revision.deployment!.id;
    const event = (await world.send(HistoryDocument, { first: 1 })).data.eventHistory!.nodes[0]!;
    const ids = [namespace.id, configuration.id, agent.id, revision.id, deployment, event.id];
    const expected = ['Namespace', 'Configuration', 'Agent', 'AgentRevision', 'Deployment', 'HistoryEvent'].map((__typename, index) => ({ __typename, id: ids[index] }));
    expect((await world.send(NodesByIdDocument, { ids })).data.nodes).toEqual(expected);
    for (const node of expected) expect((await world.send(NodeByIdDocument, { id: node.id! })).data.node).toEqual(node);
  });

  it('answer null and one error for what is refused', async () => {
    const gone = Buffer.from(`Agent:${namespace.namespaceId}/agt_00000000-0000-4000-8000-000000000000`).toString('base64');
    for (const id of [gone, 'agt_00000000-0000-4000-8000-000000000000']) {
      const { data, errors } = await world.send(AgentDetailsDocument, { id });
      expect(data).toEqual({ agent: null });
      expect(errors).toEqual([expect.objectContaining({ path: ['agent'], extensions: { code: 'NOT_FOUND', status: 404, requestId: expect.stringMatching(/^req_/) as unknown } })]);
    }
    const malformed = await world.send(AgentDetailsDocument, { id: 'crab' });
    expect(malformed.errors?.[0]?.extensions).toMatchObject({ code: 'INVALID_REQUEST', status: 400, details: [{ path: '/id', code: 'INVALID_FORMAT' }] });
    const { data, errors } = await world.send(NodesByIdDocument, { ids: [agent.id, gone] });
    expect(data.nodes).toEqual([{ __typename: 'Agent', id: agent.id }, null]);
    expect(errors?.map(({ path, extensions: { code } }) => [path, code])).toEqual([[['nodes', 1], 'NOT_FOUND']]);
  });

  it('page through the revisions of several Agents; a cursor counts below its own Agent only', async () => {
    const { id } = await createAgent(world, namespace.namespaceId, configuration.configurationId, 'often deployed');
    const made: string[] = [];
    for (let count = 0; count < 3; count++) made.push((await deployAgent(world, id)).revisionId);
    const document = parse('query ($ids: [ID!]!, $after: String) { nodes(ids: $ids) { ... on Agent { page: revisions(first: 2, after: $after) { nodes { revisionId } pageInfo { hasNextPage } } all: revisions { nodes { revisionId } } } } }') as TypedDocumentNode<{ nodes: readonly Record<'page' | 'all', { nodes: readonly { revisionId: string }[]; pageInfo?: { hasNextPage: boolean } } | null>[] }, { ids: string[]; after?: string }>;
    const ask = async (after?: string) => (await world.send(document, { ids: [agent.id, id], ...(after !== undefined && { after }) })).data.nodes;
    const revisions = (...ids: string[]) => ids.map((revisionId) => ({ revisionId }));
    expect(await ask()).toEqual([
      { page: { nodes: revisions(revision.revisionId), pageInfo: { hasNextPage: false } }, all: { nodes: revisions(revision.revisionId) } },
      { page: { nodes: revisions(...made.slice(0, 2)), pageInfo: { hasNextPage: true } }, all: { nodes: revisions(...made) } },
    ]);
    expect((await ask(made[1])).map(({ page }) => page?.nodes)).toEqual([undefined, revisions(made[2]!)]);
    expect((await ask(newId('rev'))).map(({ page }) => page?.nodes)).toEqual([undefined, undefined]);
  });

  it('page through connections', async () => {
    const other = await createNamespace(world, 'pages');
    const { configurationId } = await createConfiguration(world, other.namespaceId);
    const names = ['a', 'b', 'c'];
    for (const name of names) await createAgent(world, other.namespaceId, configurationId, name);
    const page = await world.send(AgentPageDocument, { namespace: other.id, first: 2 });
    expect(page.data.namespace?.agents).toMatchObject({ nodes: [{ name: 'a' }, { name: 'b' }], pageInfo: { hasNextPage: true } });
    const all = await world.send(AgentPageDocument, { namespace: other.id, first: 3 });
    expect(all.data.namespace?.agents?.pageInfo.hasNextPage).toBe(false);
    const none = await world.send(AgentPageDocument, { namespace: other.id, first: 0 });
    expect(none.errors?.[0]?.extensions).toMatchObject({ code: 'INVALID_REQUEST', details: [{ path: '/first', code: 'INVALID_VALUE' }] });
    const { data } = await world.send(OverviewDocument, {});
    expect(data.installation).toEqual({ installationId, name: 'Exuvia' });
    expect(data.namespaces?.nodes.map(({ name, status }) => [name, status])).toEqual([['main', 'ready'], ['pages', 'ready']]);
  });
});

describe('the event history', () => {
  it('tells every step of an Agent in order, with actor and cause', async () => {
    const { data } = await world.send(HistoryDocument, { first: 100, filter: { agentId: agent.agentId } });
    const events = data.eventHistory!.nodes;
    expect(events.map(({ type }) => type)).toEqual(expect.arrayContaining(['AgentCreated', 'AgentRevisionSnapshotted', 'AgentRevisionAdmitted']));
    const admitted = events.find(({ type }) => type === 'AgentRevisionAdmitted')!;
    expect(admitted).toMatchObject({
      stream: `agent-${agent.agentId}`,
      schema: 1,
      actor: { kind: 'service_principal' },
      audit: { action: 'openclaw.agents.deploy', outcome: 'success', resource: { kind: 'agent_revision', id: revision.revisionId } },
      namespaceId: namespace.namespaceId,
      agentId: agent.agentId,
      data: { revisionId: revision.revisionId, number: 1 },
    });
    expect(admitted.causationId).toBe(events.find(({ type }) => type === 'AgentRevisionSnapshotted')!.eventId);
    expect(events.map(({ position }) => position)).toEqual(events.map(({ position }) => position).toSorted());
  });

  it('resumes after an event and filters by type', async () => {
    const first = await world.send(HistoryDocument, { first: 2 });
    const next = await world.send(HistoryDocument, { first: 1, after: first.data.eventHistory!.pageInfo.endCursor });
    expect(next.data.eventHistory!.nodes[0]!.position > first.data.eventHistory!.nodes[1]!.position).toBe(true);
    const created = await world.send(HistoryDocument, { first: 100, filter: { namespaceId: namespace.id, types: ['NamespaceCreated'] } });
    expect(created.data.eventHistory!.nodes.map(({ type }) => type)).toEqual(['NamespaceCreated']);
  });
});
