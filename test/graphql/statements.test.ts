/** A page costs the same number of SQL statements and of reads of the event store whatever its size, authorization on, caches cold. (architecture section 7) */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { answersOf, connections, queryOf, singlesOf, type ConnectionField } from './connections.ts';
import { createAgent, createConfiguration, createNamespace, deployAgent } from './fixture.ts';
import { AgentPageDocument } from './operations.generated.ts';
import { agents as agentStreams } from '../../src/aggregates.ts';
import { workKey } from '../../src/kernel/work.ts';
import type { CommandContext } from '../../src/runtime/streams.ts';
import { until } from '../support/until.ts';
import { createWorld, type Answer, type World } from './world.ts';

const system: CommandContext = { actor: { principalId: 'system', kind: 'system' }, requestId: null, correlationId: 'test', causationId: null, policyRevision: null };

let world: World;
let namespaceId: string;

const agentCount = 50;
const parents = 20;

beforeAll(async () => {
  world = await createWorld();
  ({ namespaceId } = await createNamespace(world, 'main'));
  const { configurationId } = await createConfiguration(world, namespaceId);
  const agents = await Promise.all(Array.from({ length: agentCount }, (_, index) => createAgent(world, namespaceId, configurationId, `crab ${index}`)));
  await Promise.all(
    agents.map(async ({ id, agentId }) => {
      const { revisionId } = await deployAgent(world, id);
      await world.streams.execute(agentStreams, agentId, { type: 'SelectRevision', claim: { workKey: workKey.deployment(revisionId), claimToken: 'test' }, revisionId, expectedActiveRevisionId: null }, system);
    }),
  );
  // Every second one stays empty: an empty list may cost no more than a full one.
  await Promise.all(
    Array.from({ length: parents }, async (_, index) => {
      const { namespaceId: other } = await createNamespace(world, `other ${index}`);
      if (index % 2 === 0) return;
      const { configurationId: own } = await createConfiguration(world, other);
      await createAgent(world, other, own, 'lobster');
    }),
  );
});
afterAll(() => world.close());

const statementsOf = async (first: number, key: string): Promise<number> => {
  const edge = await world.openEdge();
  edge.takeStatements();
  const { data, errors } = await world.send(AgentPageDocument, { namespace: namespaceId, first }, key, edge.endpoint);
  const count = edge.takeStatements()!;
  await edge.close();
  expect(errors).toBeUndefined();
  const { nodes } = data.namespace!.agents!;
  expect(nodes).toHaveLength(first);
  for (const { configuration, revisions, latestDeployment } of nodes) {
    expect(configuration?.generation).toBe(1);
    expect(revisions?.nodes.map(({ revision, deployment }) => [revision, deployment?.status])).toEqual([[1, 'queued']]);
    expect(latestDeployment?.status).toBe('queued');
  }
  return count;
};

const reads = (kinds: readonly string[], place: object = { namespaceId }) => kinds.map((resourceKind) => ({ action: 'read', resourceKind, ...place }));

it('is equal for 1, 2 and 50 Agents', async () => {
  const { key } = await world.addPrincipal(reads(['namespace', 'agent', 'agent_revision', 'configuration']));
  const counts = [await statementsOf(1, key), await statementsOf(2, key), await statementsOf(agentCount, key)];
  expect(new Set(counts).size).toBe(1);
  expect(counts[0]).toBeLessThanOrEqual(9);
});

describe('a page of 2 and a page of 20 cost the same', () => {
  const nested = connections.filter(({ parent }) => parent !== 'Query').map((connection): [string, ConnectionField] => [`${connection.parent}.${connection.field}`, connection]);

  const costOf = async (query: string, count: number, headers: Readonly<Record<string, string>>) => {
    const edge = await world.openEdge();
    edge.takeStatements();
    edge.takeStoreReads();
    const response = await fetch(edge.endpoint, {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...headers },
      body: JSON.stringify({ query, variables: { parents: count, namespace: namespaceId, first: 5 } }),
    });
    const { data, errors } = (await response.json()) as Answer<unknown>;
    const cost = { statements: edge.takeStatements(), storeReads: edge.takeStoreReads() };
    await edge.close();
    expect(errors).toBeUndefined();
    return { cost, data };
  };
  const listCost = async (connection: ConnectionField, count: number, key: string) => {
    const { cost, data } = await costOf(queryOf(connection), count, { 'x-api-key': key });
    const answers = answersOf(connection, data);
    expect(answers).toHaveLength(count);
    return { cost, shown: answers.flatMap((answer) => answer!.edges).length };
  };

  /** Both costs, once they are alike: a request that is slow to arrive is authenticated twice, now and then. */
  const alike = <Found extends { readonly cost: object }>(ask: (count: number) => Promise<Found>) =>
    until(
      'the same cost for 2 and for 20',
      async () => [await ask(2), await ask(parents)] as const,
      ([two, twenty]) => JSON.stringify(two.cost) === JSON.stringify(twenty.cost),
      10_000,
    );

  it('for connections there are', () => expect(nested.map(([name]) => name)).toEqual(expect.arrayContaining(['Namespace.agents', 'Namespace.roles', 'Namespace.accessBindings', 'Agent.revisions'])));

  it.each(nested)('%s, to who sees everything', async (_, connection) => {
    const [two] = await alike((count) => listCost(connection, count, world.adminKey));
    expect(two.cost.statements).toBeLessThanOrEqual(7);
  });

  it.each(nested)('%s, to who sees a part', async (_, connection) => {
    const { data } = await world.send(AgentPageDocument, { namespace: namespaceId, first: agentCount });
    const agents = data.namespace!.agents!.nodes.slice(0, parents);
    const { key } = await world.addPrincipal([
      { action: 'administer', resourceKind: 'installation' },
      ...reads(['namespace', 'audit'], {}),
      ...agents.flatMap(({ agentId, revisions }, index) => [
        ...reads(['agent'], { namespaceId, resourceId: agentId }),
        ...(index % 2 === 0 ? reads(['agent_revision'], { namespaceId, resourceId: revisions!.nodes[0]!.revisionId }) : []),
      ]),
    ]);
    const [two, twenty] = await alike((count) => listCost(connection, count, key));
    if (connection.field === 'revisions') expect([two.shown, twenty.shown]).toEqual([1, parents / 2]);
  });

  const places: Readonly<Record<string, (inner: string) => string>> = {
    Agent: (inner) => inner,
    AgentRevision: (inner) => `revisions(first: 1) { nodes { ${inner} } }`,
    Deployment: (inner) => `latestDeployment { ${inner} }`,
  };
  it.each(Object.keys(places).flatMap((parent) => singlesOf(parent).map((field): [string, string] => [parent, field])))('%s.%s', async (parent, field) => {
    const query = `query ($namespace: ID!, $parents: Int) { namespace(id: $namespace) { agents(first: $parents) { nodes { ${places[parent]!(`${field} { __typename }`)} } } } }`;
    const { cookie } = await world.addPerson([...reads(['namespace', 'agent', 'agent_revision', 'configuration']), { action: 'administer', resourceKind: 'agent', namespaceId }]);
    const [two] = await alike((count) => costOf(query, count, { cookie }));
    expect(two.cost.statements).toBeLessThanOrEqual(9);
  });
});
