/** Deployment passes end to end: real rows, a fake driver, every outcome as events. */
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { createDatabase, type TestDatabase } from '../support/database.ts';
import { createWorld, type World } from '../support/work-world.ts';

let database: TestDatabase | undefined;
let world: World;

beforeEach(async () => {
  database ??= await createDatabase();
  await database.pool.query('delete from work_item');
  world = await createWorld(database);
});
afterEach(() => world.stopWorkers());

const types = (agentId: string): readonly string[] => world.eventsOf(agentId).map(({ type }) => type);

describe('a deployment', () => {
  it('is prepared, selected, activated and completed', async () => {
    const agent = await world.createAgent();
    const { revisionId, key } = await world.deploy(agent);
    world.startWorker();
    expect(await world.untilFinished(key)).toEqual({ state: 'succeeded', code: 'REVISION_ACTIVATED', attempts: 1 });
    expect(types(agent.agentId)).toEqual(['AgentCreated', 'AgentRevisionAdmitted', 'AgentRevisionSelected', 'DeploymentActivated']);
    expect((await world.agentOf(agent.agentId)).activeRevisionId).toBe(revisionId);
    expect(world.driver.calls).toEqual([`bindAgent ${agent.agentId}`, `prepareRevision ${revisionId}`, `activateRevision ${revisionId}`]);
    expect(world.faults).toEqual([]);
  });
});
