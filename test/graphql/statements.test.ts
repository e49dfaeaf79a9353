/** A page of Agents costs the same number of SQL statements whatever its size, authorization on, caches cold. (architecture section 7) */
import { afterAll, beforeAll, expect, it } from 'vitest';
import { createAgent, createConfiguration, createNamespace, deployAgent } from './fixture.ts';
import { AgentPageDocument } from './operations.generated.ts';
import { createWorld, type World } from './world.ts';

let world: World;
let namespaceId: string;

beforeAll(async () => {
  world = await createWorld();
  ({ namespaceId } = await createNamespace(world, 'main'));
  const { configurationId } = await createConfiguration(world, namespaceId);
  const names = Array.from({ length: 50 }, (_, index) => `crab ${index}`);
  const agents = await Promise.all(names.map((name) => createAgent(world, namespaceId, configurationId, name)));
  await Promise.all(agents.map(({ id }) => deployAgent(world, id)));
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

it('is equal for 1, 2 and 50 Agents', async () => {
  const { key } = await world.addPrincipal(['namespace', 'agent', 'agent_revision', 'configuration'].map((resourceKind) => ({ action: 'read', resourceKind, namespaceId })));
  const counts = [await statementsOf(1, key), await statementsOf(2, key), await statementsOf(50, key)];
  expect(new Set(counts).size).toBe(1);
  expect(counts[0]).toBeLessThanOrEqual(9);
});
