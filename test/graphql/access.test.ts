/** Permissions on the GraphQL edge: each field that crosses to another resource is judged, and lists hide what they may not show. (iam-auth-audit 8.4) */
import { afterAll, beforeAll, expect, it } from 'vitest';
import { deploymentProjection } from '../../projections/deployment.ts';
import { createAgent, createConfiguration, createNamespace, deployAgent, refused } from './fixture.ts';
import {
  AgentDetailsDocument,
  AgentPageDocument,
  CreateAgentDocument,
  DeployAgentDocument,
  DeploymentDetailsDocument,
  HistoryDocument,
  NodeByIdDocument,
  OverviewDocument,
  StopAgentDocument,
} from './operations.generated.ts';
import { createWorld, type World } from './world.ts';

let world: World;
let namespaceId: string;
let configurationId: string;
let agents: readonly Awaited<ReturnType<typeof createAgent>>[];
let revision: Awaited<ReturnType<typeof deployAgent>>;

beforeAll(async () => {
  world = await createWorld();
  ({ namespaceId } = await createNamespace(world, 'main'));
  ({ configurationId } = await createConfiguration(world, namespaceId));
  agents = [await createAgent(world, namespaceId, configurationId, 'one'), await createAgent(world, namespaceId, configurationId, 'two'), await createAgent(world, namespaceId, configurationId, 'three')];
  revision = await deployAgent(world, agents[1]!.id);
});
afterAll(() => world.close());

it('a stranger is refused everywhere, each time with an audited denial, and learns nothing about ids', async () => {
  const { key } = await world.addPrincipal([]);
  const invented = 'agt_00000000-0000-4000-8000-000000000000';
  const messages = new Set<string>();
  for (const id of [agents[0]!.id, agents[0]!.agentId, invented]) {
    const { data, errors } = await world.send(AgentDetailsDocument, { id }, key);
    expect(data).toEqual({ agent: null });
    expect(errors).toHaveLength(1);
    expect(errors![0]!.extensions).toMatchObject({ code: 'FORBIDDEN', status: 403 });
    expect(await world.denialsOf(errors![0]!.extensions.requestId)).toEqual(['openclaw.agents.read']);
    messages.add(errors![0]!.message);
  }
  expect(messages.size).toBe(1);
  for (const id of [revision.id, revision.deployment!.id, revision.revisionId]) {
    const { errors } = id.includes('_') ? await world.send(DeploymentDetailsDocument, { id }, key) : await world.send(NodeByIdDocument, { id }, key);
    expect(errors?.map(({ extensions: { code } }) => code)).toEqual(['FORBIDDEN']);
  }
  const deploy = refused((await world.send(DeployAgentDocument, { input: { id: agents[0]!.id } }, key)).data.deployAgent);
  expect(deploy).toMatchObject({ code: 'FORBIDDEN', status: 403 });
  expect(await world.denialsOf(deploy.requestId)).toEqual(['openclaw.agents.deploy']);
  const stop = refused((await world.send(StopAgentDocument, { input: { id: invented } }, key)).data.stopAgent);
  expect(await world.denialsOf(stop.requestId)).toEqual(['openclaw.agents.stop']);
  const history = await world.send(HistoryDocument, { filter: { namespaceId } }, key);
  expect(history.data.eventHistory).toBeNull();
  const overview = await world.send(OverviewDocument, {}, key);
  expect(overview.data).toEqual({ installation: null, namespaces: { nodes: [], pageInfo: { hasNextPage: false } } });
});

it('a holder of one exact grant sees that one only, in pages without holes', async () => {
  const { key } = await world.addPrincipal([
    { action: 'read', resourceKind: 'namespace', namespaceId },
    { action: 'read', resourceKind: 'agent', namespaceId, resourceId: agents[1]!.agentId },
  ]);
  const { data, errors } = await world.send(AgentPageDocument, { namespace: namespaceId, first: 1 }, key);
  const page = data.namespace!.agents!;
  expect(page.nodes.map(({ name }) => name)).toEqual(['two']);
  expect(page.pageInfo.hasNextPage).toBe(false);
  const [two] = page.nodes;
  expect(two).toMatchObject({ viewerCan: { deploy: false }, configuration: null, revisions: { nodes: [] }, latestDeployment: null });
  expect(errors?.map(({ path, extensions: { code } }) => [path?.join('.'), code])).toEqual([
    ['namespace.agents.nodes.0.configuration', 'FORBIDDEN'],
    ['namespace.agents.nodes.0.latestDeployment', 'FORBIDDEN'],
  ]);
  expect((await world.denialsOf(errors![0]!.extensions.requestId)).toSorted()).toEqual(['openclaw.agent_deployments.read', 'openclaw.configurations.read']);
});

it('viewerCan leaves no denial behind', async () => {
  const { key } = await world.addPrincipal([
    { action: 'read', resourceKind: 'agent', namespaceId },
    { action: 'deploy', resourceKind: 'agent', namespaceId, resourceId: agents[0]!.agentId },
  ]);
  const query = 'query ($id: ID!) { agent(id: $id) { viewerCan { read update deploy operate delete administer } } }';
  const ask = async (id: string) => {
    const response = await fetch(world.edge.endpoint, { method: 'POST', headers: { 'content-type': 'application/json', 'x-api-key': key }, body: JSON.stringify({ query, variables: { id } }) });
    expect(await world.denialsOf(response.headers.get('x-request-id')!)).toEqual([]);
    return ((await response.json()) as { data: { agent: { viewerCan: object } } }).data.agent.viewerCan;
  };
  const none = { read: true, update: false, deploy: false, operate: false, delete: false, administer: false };
  expect(await ask(agents[0]!.agentId)).toEqual({ ...none, deploy: true });
  expect(await ask(agents[1]!.agentId)).toEqual(none);
});

it('every alias is its own decision and its own denial', async () => {
  const { key } = await world.addPrincipal([]);
  const query = `{ a: agent(id: "${agents[0]!.id}") { name } b: agent(id: "${agents[0]!.id}") { name } }`;
  const response = await fetch(world.edge.endpoint, { method: 'POST', headers: { 'content-type': 'application/json', 'x-api-key': key }, body: JSON.stringify({ query }) });
  expect(((await response.json()) as { errors: unknown[] }).errors).toHaveLength(2);
  expect(await world.denialsOf(response.headers.get('x-request-id')!)).toEqual(['openclaw.agents.read', 'openclaw.agents.read']);
});

it('a creator without read gets the Agent it made, but nothing beyond it', async () => {
  const { key } = await world.addPrincipal([
    { action: 'create', resourceKind: 'agent', namespaceId },
    { action: 'read', resourceKind: 'configuration', namespaceId },
  ]);
  const { data, errors } = await world.send(CreateAgentDocument, { input: { namespaceId, configurationId, name: 'made blindly' } }, key);
  expect(errors).toBeUndefined();
  expect(data.createAgent).toMatchObject({ __typename: 'CreateAgentPayload', agent: { name: 'made blindly' } });
});

it('the newest deployment is the newest for who may not read it, too, whether the read models keep up or not', async () => {
  const agent = await createAgent(world, namespaceId, configurationId, 'of two deployments');
  const [first] = [await deployAgent(world, agent.id), await deployAgent(world, agent.id)];
  const { key } = await world.addPrincipal([
    { action: 'read', resourceKind: 'agent', namespaceId },
    { action: 'read', resourceKind: 'agent_revision', namespaceId, resourceId: first.revisionId },
  ]);
  const latest = async () => {
    const { data, errors = [] } = await world.send(AgentDetailsDocument, { id: agent.id }, key);
    const codes = errors.filter(({ path }) => path?.at(-1) === 'latestDeployment').map(({ extensions: { code } }) => code);
    return { deployment: data.agent!.latestDeployment, codes, denials: (await world.denialsOf(errors[0]!.extensions.requestId)).filter((action) => action === 'openclaw.agent_deployments.read') };
  };
  const refusal = { deployment: null, codes: ['FORBIDDEN'], denials: ['openclaw.agent_deployments.read'] };
  expect(await latest()).toEqual(refusal);
  await world.holdBack(deploymentProjection);
  expect(await latest()).toEqual(refusal);
});
