/** The main job: an Agent's whole life over both edges of a server process, with a real child of its own, and the history it leaves. */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { TypedDocumentNode } from '@graphql-typed-document-node/core';
import { print } from 'graphql';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { agentFolder, type RuntimeRecord } from '../../src/compute/process/layout.ts';
import { workKey } from '../../src/kernel/work.ts';
import { childrenOf } from '../compute/process-world.ts';
import * as operations from '../graphql/operations.generated.ts';
import { eventually } from '../support/client.ts';
import { onEachEventStore } from '../support/event-stores.ts';
import { startSteered, type SteeredServer } from '../support/steered.ts';
import { defaultNamespace, demand, stepsIn, type AgentAnswer, type ConfigurationAnswer, type RevisionAnswer, type Steps } from './steps.ts';
import { closingsOf, eventsOf, expectUnbrokenChains, metadataOf, storedEvents } from './stored-history.ts';

// Children start in a second on a quiet machine, in several on a busy one.

interface HistoryPage {
  readonly eventHistory: { readonly edges: readonly { readonly node: { readonly eventId: string; readonly stream: string; readonly revision: number; readonly type: string; readonly occurredAt: string; readonly requestId: string | null; readonly causationId: string | null; readonly actor: { readonly principalId: string; readonly kind: string } } }[] };
}

/** The life both edges walk: two deployments, a stop, a deletion that ends with the release of the name. */
const lifeOfAnAgent = [
  'ResourceAdmitted',
  'ServicePrincipalCreated',
  'AgentCreated',
  'AgentRevisionSnapshotted',
  'AgentRevisionAdmitted',
  'AgentRevisionSelected',
  'DeploymentActivated',
  'AgentConfigurationBound',
  'AgentRevisionSnapshotted',
  'AgentRevisionAdmitted',
  'AgentRevisionSelected',
  'DeploymentActivated',
  'AgentStopRequested',
  'AgentStopped',
  'AgentDeletionRequested',
  'AgentTeardownFinished',
  'AgentBindingsRemoved',
  'AgentRemoved',
  'ResourceRemoved',
];

/** Passes that had to wait say so; how often depends on the machine. */
const withoutWaiting = (types: readonly string[]) => types.filter((type) => type !== 'WorkDeferred');

onEachEventStore((store) => {
  let app: SteeredServer;
  let namespaceId: string;
  let steps: Steps;

  beforeAll(async () => {
    app = await startSteered(store.env);
    namespaceId = await defaultNamespace(app.client);
    steps = stepsIn(app.client, namespaceId);
  });
  afterAll(() => app.close());

  const compute = () => join(app.dataDir, 'compute');

  /** The one child of an Agent, as the operating system sees it. */
  const childOf = async (agentId: string) => {
    const children = (await childrenOf(compute())).filter((child) => child.agentId === agentId);
    expect(children).toHaveLength(1);
    return children[0]!;
  };

  const noChildOf = async (agentId: string) => expect((await childrenOf(compute())).filter((child) => child.agentId === agentId)).toEqual([]);

  /** What the Agent's gateway itself answers on loopback. */
  const health = async (agentId: string) => {
    const { port } = JSON.parse(await readFile(agentFolder(compute(), { namespaceId, agentId }).runtime, 'utf8')) as RuntimeRecord;
    const response = await fetch(`http://127.0.0.1:${port}/healthz`);
    return { status: response.status, body: (await response.json()) as unknown };
  };

  const send = async <Result, Variables extends object>(document: TypedDocumentNode<Result, Variables>, variables: Variables): Promise<Result> => {
    const { data, errors } = await app.client.graphql<Result>(print(document), variables);
    expect(errors).toBeUndefined();
    return data;
  };

  const historyOf = async (agentId: string) => {
    const { data } = await app.client.graphql<HistoryPage>(
      `query ($filter: HistoryFilter) { eventHistory(first: 100, filter: $filter) { edges { node {
         eventId stream revision type occurredAt requestId causationId actor { principalId kind }
       } } } }`,
      { filter: { namespaceId, agentId } },
    );
    return data.eventHistory.edges.map(({ node }) => node);
  };

  const expectHistory = async (agentId: string) => {
    const history = await eventually('the name released', () => historyOf(agentId), (events) => events.at(-1)?.type === 'ResourceRemoved');
    expect(withoutWaiting(history.map(({ type }) => type))).toEqual(lifeOfAnAgent);
    const administrator = history[0]!.actor;
    expect(administrator.kind).toBe('service_principal');
    const byId = new Map(history.map((event) => [event.eventId, event]));
    for (const event of history) {
      // Every fact has its actor: work is done on behalf of whoever asked for it.
      expect(event.actor).toEqual(administrator);
      // And its cause: a request of a client, or the event that asked for the work.
      if (event.requestId === null) expect(byId.get(event.causationId!)?.type, event.type).toMatch(/^Agent(RevisionAdmitted|StopRequested|DeletionRequested)$/);
    }
    await expectUnbrokenChains(store.history(app.database));
  };

  describe('over REST', () => {
    it('an Agent is created, deployed, replaced, stopped and deleted', async () => {
      const configuration = await steps.configure({ gateway: {} });
      expect(configuration.generation).toBe(1);
      const created = await steps.createAgent('rest', configuration.id);
      expect(created).toMatchObject({ status: 'active', desiredRuntimeState: 'stopped', configurationId: configuration.id });
      expect(await demand<AgentAnswer[]>(app.client, 200, 'GET', `${steps.at}/agents`)).toContainEqual(created);
      const { id } = created;

      const first = await steps.deploy(id);
      expect(first).toMatchObject({ revision: 1, configurationGeneration: 1 });
      // CX-37: the id of the 202 is readable at once.
      expect(['queued', 'running', 'succeeded']).toContain((await steps.deployment(id, first.id)).status);
      expect(await steps.deployed(id, first.id)).toMatchObject({ status: 'succeeded', error: null, progress: null });
      // CX-38: once a terminal status has been seen, the pointer is right.
      expect(await steps.agent(id)).toMatchObject({ desiredRuntimeState: 'running', activeRevisionId: first.id });
      const firstChild = await childOf(id);
      expect(firstChild.revisionId).toBe(first.id);
      expect(await health(id)).toEqual({ status: 200, body: { ok: true, status: 'live' } });

      const revisions = () => demand<RevisionAnswer[]>(app.client, 200, 'GET', `${steps.agentPath(id)}/revisions`);
      const [before] = await revisions();
      await demand(app.client, 200, 'PATCH', `${steps.agentPath(id)}`, { configurationId: configuration.id });
      const saved = await demand<ConfigurationAnswer>(app.client, 200, 'PATCH', `${steps.at}/configurations/${configuration.id}`, { values: { gateway: {}, agents: {} } });
      expect(saved.generation).toBe(2);
      expect(await revisions()).toEqual([before]);
      expect((await childOf(id)).pid).toBe(firstChild.pid);

      const second = await steps.run(id);
      expect(second).toMatchObject({ revision: 2, configurationGeneration: 2 });
      expect((await steps.agent(id)).activeRevisionId).toBe(second.id);
      const secondChild = await childOf(id);
      expect(secondChild.revisionId).toBe(second.id);
      expect(secondChild.pid).not.toBe(firstChild.pid);
      expect((await revisions()).map(({ revision }) => revision)).toEqual([1, 2]);
      expect((await steps.deployment(id, first.id)).status).toBe('succeeded');

      expect(await steps.stop(id)).toMatchObject({ desiredRuntimeState: 'stopped' });
      await steps.stopped(id);
      await noChildOf(id);
      expect(await revisions()).toHaveLength(2);

      expect(await steps.remove(id)).toMatchObject({ status: 'deleting' });
      await steps.gone(id);
      for (const path of ['', '/revisions', `/revisions/${first.id}`, `/deployments/${second.id}`])
        expect((await app.client.rest('GET', steps.agentPath(id) + path)).status, path).toBe(404);
      await expectHistory(id);

      // The name is free again, and the document too once nobody refers to it.
      const successor = await eventually(
        'the name to be free',
        () => app.client.rest<AgentAnswer>('POST', `${steps.at}/agents`, { name: 'rest', configurationId: configuration.id }),
        ({ status }) => status === 201,
      );
      expect(successor.data.id).not.toBe(id);
      expect((await app.client.rest('DELETE', `${steps.at}/configurations/${configuration.id}`)).status).toBe(409);
      await steps.remove(successor.data.id);
      await steps.gone(successor.data.id);
      await eventually(
        'the document to be deletable',
        async () => (await app.client.rest('DELETE', `${steps.at}/configurations/${configuration.id}`)).status,
        (status) => status === 204,
      );
    });
  });

  describe('over GraphQL', () => {
    it('the same life, by mutations and queries', async () => {
      const { createConfiguration } = await send(operations.CreateConfigurationDocument, { input: { namespaceId, kind: 'agent', values: {} } });
      if (createConfiguration.__typename !== 'CreateConfigurationPayload') throw new Error(createConfiguration.message);
      const { configurationId } = createConfiguration.configuration;
      const { createAgent } = await send(operations.CreateAgentDocument, { input: { namespaceId, name: 'graphql', configurationId, harnessAuth: { method: 'runtime' } } });
      expect(createAgent).toMatchObject({ __typename: 'CreateAgentPayload', agent: { status: 'active', desiredRuntimeState: 'stopped' } });
      if (createAgent.__typename !== 'CreateAgentPayload') throw new Error(createAgent.message);
      const { id, agentId } = createAgent.agent;

      interface Life {
        readonly agent: { readonly desiredRuntimeState: string; readonly activeRevisionId: string | null; readonly latestDeployment: { readonly status: string; readonly deploymentId: string } | null } | null;
      }
      const life = async () => {
        const { data } = await app.client.graphql<Life>(
          `query ($namespaceId: ID!, $id: ID!) { agent(namespaceId: $namespaceId, id: $id) {
             desiredRuntimeState activeRevisionId latestDeployment { status deploymentId } } }`,
          { namespaceId, id },
        );
        return data.agent;
      };
      const deploy = async () => {
        const { deployAgent } = await send(operations.DeployAgentDocument, { input: { namespaceId, id } });
        if (deployAgent.__typename !== 'DeployAgentPayload') throw new Error(deployAgent.message);
        const { revisionId } = deployAgent.revision;
        const seen = await eventually(
          `the deployment ${revisionId} at an end`,
          life,
          (agent) => agent?.latestDeployment?.deploymentId === revisionId && ['succeeded', 'failed'].includes(agent.latestDeployment.status),
        );
        expect(seen).toMatchObject({ desiredRuntimeState: 'running', activeRevisionId: revisionId, latestDeployment: { status: 'succeeded' } });
        expect((await childOf(agentId)).revisionId).toBe(revisionId);
        return revisionId;
      };
      const first = await deploy();
      const { updateAgent } = await send(operations.UpdateAgentDocument, { input: { namespaceId, id, configurationId } });
      expect(updateAgent.__typename).toBe('UpdateAgentPayload');
      expect((await life())?.activeRevisionId).toBe(first);
      expect(await deploy()).not.toBe(first);

      const { stopAgent } = await send(operations.StopAgentDocument, { input: { namespaceId, id } });
      expect(stopAgent).toMatchObject({ agent: { desiredRuntimeState: 'stopped' } });
      await eventually('no version selected', life, (agent) => agent?.activeRevisionId === null);
      await noChildOf(agentId);
      const { deleteAgent } = await send(operations.DeleteAgentDocument, { input: { namespaceId, id } });
      expect(deleteAgent).toMatchObject({ agent: { status: 'deleting' } });
      await eventually('the Agent to be gone', life, (agent) => agent === null);
      await expectHistory(agentId);
    });
  });

  describe('what does not go as planned', () => {
    it('a gateway that holds its start ends the deployment at once, and stop and delete work', async () => {
      const { id: configurationId } = await steps.configure({ exuvia: { holdStartup: { code: 'AUTHENTICATION_FAILED' } } });
      const { id } = await steps.createAgent('held', configurationId);
      const { id: revisionId } = await steps.deploy(id);
      expect(await steps.deployed(id, revisionId)).toMatchObject({ status: 'failed', error: { code: 'RUNTIME_AUTHENTICATION_FAILED' }, progress: null });
      expect(await steps.agent(id)).not.toHaveProperty('activeRevisionId');
      await steps.stop(id);
      await eventually('the stop at an end', () => closingsOf(store.history(app.database), id), (closings) => Object.keys(closings).length === 2);
      await noChildOf(id);
      await steps.remove(id);
      await steps.gone(id);
      await noChildOf(id);
    });

    it('a deploy while a stop is under way supersedes it', async () => {
      const { id: configurationId } = await steps.configure();
      const { id } = await steps.createAgent('later-wins', configurationId);
      const { id: first } = await steps.run(id);
      const { reached, release } = await app.holdNext('stop:stopped');
      await steps.stop(id);
      await reached;
      const { id: second } = await steps.deploy(id);
      release();
      expect(await steps.deployed(id, second)).toMatchObject({ status: 'succeeded' });
      expect(await steps.agent(id)).toMatchObject({ desiredRuntimeState: 'running', activeRevisionId: second });
      expect((await childOf(id)).revisionId).toBe(second);
      const closings = await closingsOf(store.history(app.database), id);
      expect(Object.values(closings)).toEqual([['DeploymentActivated'], ['AgentStopSuperseded'], ['DeploymentActivated']]);
      expect(Object.keys(closings)[0]).toBe(workKey.deployment(first));
    });

    it('bad input is refused with its code and leaves no event', async () => {
      const { id: configurationId } = await steps.configure();
      const before = (await storedEvents(store.history(app.database))).length;
      const agents = `${steps.at}/agents`;
      const refusals = [
        [400, 'INVALID_REQUEST', await app.client.rest('POST', agents, { name: '', configurationId })],
        [400, 'INVALID_REQUEST', await app.client.rest('POST', agents, { name: 'a', configurationId, more: true })],
        [400, 'INVALID_REQUEST', await app.client.rest('POST', `${agents}/agt_00000000-0000-4000-8000-000000000000/stop`, {})],
        [404, 'NOT_FOUND', await app.client.rest('POST', agents, { name: 'a', configurationId: 'cfg_00000000-0000-4000-8000-000000000000' })],
        [404, 'NOT_FOUND', await app.client.rest('POST', `${agents}/agt_00000000-0000-4000-8000-000000000000/deploy`)],
        [409, 'CREDENTIAL_GATEWAY_NOT_CONFIGURED', await app.client.rest('POST', agents, { name: 'a', configurationId, credentialSources: [{ sourceId: 'cs_00000000-0000-4000-8000-000000000000' }] })],
        [413, 'PAYLOAD_TOO_LARGE', await app.client.rest('POST', agents, { name: 'a'.repeat(500_000), configurationId })],
        [415, 'UNSUPPORTED_MEDIA_TYPE', await app.client.rest('POST', agents, { name: 'a', configurationId }, { 'content-type': 'text/plain' })],
      ] as const;
      for (const [status, code, answer] of refusals) expect({ status: answer.status, code: answer.error.code }).toEqual({ status, code });
      expect(refusals[0][2].error.details).toContainEqual({ path: '/name', code: 'INVALID_VALUE' });
      expect(refusals[1][2].error.details).toContainEqual({ path: '/more', code: 'UNKNOWN_FIELD' });
      expect(await storedEvents(store.history(app.database))).toHaveLength(before);
    });
  });

  describe('requests that come twice, late or together', () => {
    it('an idempotency key makes one Agent, also in parallel, and refuses another input', async () => {
      const { id: configurationId } = await steps.configure();
      const create = (name: string, key: string) => app.client.rest<AgentAnswer>('POST', `${steps.at}/agents`, { name, configurationId }, { 'idempotency-key': key });
      const first = await create('once', 'a-key-of-sixteen-characters');
      const again = await create('once', 'a-key-of-sixteen-characters');
      expect([first.status, again.status]).toEqual([201, 201]);
      expect(again.data).toEqual(first.data);
      expect(await create('twice', 'a-key-of-sixteen-characters')).toMatchObject({ status: 409, error: { code: 'RESOURCE_CONFLICT' } });

      const creations = [
        ['/namespaces', { name: 'together' }],
        [`${steps.at}/configurations`, { kind: 'agent', values: {} }],
        [`${steps.at}/agents`, { name: 'together', configurationId }],
      ] as const;
      for (const [path, body] of creations) {
        const post = () => app.client.rest('POST', path, body, { 'idempotency-key': 'another-key-of-16-characters' });
        const together = await Promise.all(Array.from({ length: 8 }, post));
        expect(together.map(({ status, error }) => ({ status, error })), path).toEqual(Array.from({ length: 8 }, () => ({ status: 201, error: undefined })));
        expect(new Set(together.map(({ data }) => data['id'])).size).toBe(1);
      }
      const named = (await demand<AgentAnswer[]>(app.client, 200, 'GET', `${steps.at}/agents`)).map(({ name }) => name);
      expect(named.filter((name) => name === 'together')).toHaveLength(1);
      expect(named).not.toContain('twice');
    });

    it('a PATCH on an older state than the saved one is refused', async () => {
      const { id: configurationId } = await steps.configure();
      const { id } = await steps.createAgent('etag', configurationId);
      const path = steps.agentPath(id);
      const etag = (await app.client.rest('GET', path)).headers.get('etag')!;
      const patch = (match: string) => app.client.rest('PATCH', path, { configurationId, executionMode: 'embedded' }, { 'if-match': match });
      const changed = await patch(etag);
      expect(changed.status).toBe(200);
      expect(await patch(etag)).toMatchObject({ status: 409, error: { code: 'RESOURCE_CONFLICT' } });
      expect((await patch(changed.headers.get('etag')!)).status).toBe(200);
    });

    it('of 32 creations of one name exactly one succeeds, and the register names no orphan', async () => {
      const { id: configurationId } = await steps.configure();
      const answers = await Promise.all(Array.from({ length: 32 }, () => app.client.rest('POST', `${steps.at}/agents`, { name: 'wanted', configurationId })));
      const statuses = answers.map(({ status }) => status).sort();
      expect(statuses).toEqual([201, ...Array.from({ length: 31 }, () => 409)]);

      const events = await storedEvents(store.history(app.database));
      const idsOf = (type: string, idOf: (data: Record<string, string>) => string | undefined) =>
        events.filter((event) => event.type === type).flatMap((event) => idOf(JSON.parse(event.data) as Record<string, string>) ?? []);
      const admitted = idsOf('ResourceAdmitted', ({ kind, id }) => (kind === 'agent' ? id : undefined));
      const created = new Set(idsOf('AgentCreated', ({ agentId }) => agentId));
      expect(admitted.filter((id) => !created.has(id))).toEqual([]);
    });

    it('the events of a deployment name its work, its claim and its cause', async () => {
      const { id: configurationId } = await steps.configure();
      const { id } = await steps.createAgent('evidence', configurationId);
      const { id: revisionId } = await steps.run(id);
      const events = await eventsOf(store.history(app.database), `agent-${id}`);
      const admission = events.find(({ type }) => type === 'AgentRevisionAdmitted')!;
      const activation = metadataOf(events.find(({ type }) => type === 'DeploymentActivated')!);
      expect(activation).toMatchObject({ requestId: null, causationId: admission.id, correlationId: workKey.deployment(revisionId), work: { key: workKey.deployment(revisionId) } });
      expect(await closingsOf(store.history(app.database), id)).toEqual({ [workKey.deployment(revisionId)]: ['DeploymentActivated'] });
    });
  });
});
