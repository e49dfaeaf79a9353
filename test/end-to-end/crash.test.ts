/** Crashes at named points of a deployment, a stop and a delete, and in their recovery: the next start ends the work, with one child or none. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { childrenOf } from '../compute/process-world.ts';
import { newDataDir, readKey, startTestApplication } from '../support/app.ts';
import { createClient, eventually, type Client } from '../support/client.ts';
import { createDatabase, type TestDatabase } from '../support/database.ts';
import { onEachEventStore } from '../support/event-stores.ts';
import { defaultNamespace, stepsIn, type Steps } from './steps.ts';
import { closingsOf, eventsOf, expectUnbrokenChains } from './stored-history.ts';

vi.setConfig({ testTimeout: 180_000 });

/** Short, so that the claim of a dead worker is soon handed on. */
const lease = { OCC_WORKER_LEASE_DURATION_MS: '1000' };

type Walk = (client: Client) => Promise<void>;

/** Only the recovery of what is there already leads to the point. */
const recover: Walk = async () => {};

interface Place {
  readonly steps: Steps;
  readonly agentId: string;
}

/** Makes an Agent and tells where it is. */
const create = async (client: Client): Promise<Place> => {
  const steps = stepsIn(client, await defaultNamespace(client));
  const { id: agentId } = await steps.createAgent('crashing', (await steps.configure()).id);
  return { steps, agentId };
};

onEachEventStore((store) => {
  let dataDir: string;
  let database: TestDatabase;
  beforeEach(async () => {
    dataDir = await newDataDir();
    database = await createDatabase();
  });
  afterEach(async () => {
    for (const { pid } of await children()) process.kill(pid, 'SIGKILL');
    await rm(dataDir, { recursive: true, force: true });
  });

  const children = () => childrenOf(join(dataDir, 'compute'));

  /** Starts a server that dies when its worker reaches the point, and walks on it until it is dead. */
  const crashAt = async (point: string, walk: Walk): Promise<void> => {
    const program = join(import.meta.dirname, '../support/crashing-server.ts');
    const env = { ...process.env, PORT: '0', EXUVIA_DATA_DIR: dataDir, OCC_DATABASE_URL: database.url, EXUVIA_LOG_LEVEL: 'fatal', ...lease, ...store.env };
    const server = spawn(process.execPath, [program, point], { env, stdio: ['ignore', 'pipe', 'inherit'] });
    const died = once(server, 'exit');
    const overdue = AbortSignal.timeout(60_000);
    overdue.addEventListener('abort', () => server.kill('SIGTERM'));
    const walked = once(createInterface(server.stdout), 'line').then(async ([origin]) => walk(createClient(origin as string, await readKey(dataDir))));
    // A recovery may reach the point before the walk is over, or even before the server is ready.
    walked.catch(() => undefined);
    expect(await died, `the end at ${point}`).toEqual([null, 'SIGKILL']);
  };

  const openWork = async (): Promise<number> =>
    (await database.pool.query<{ count: number }>(`select count(*)::integer as count from work_item where state in ('queued', 'claimed')`)).rows[0]!.count;

  /** A normal start on what the crashes left; the Agent is looked at once no work is open any more. */
  const startAgain = async (agentId: string, look: (place: Place) => Promise<void>, closings: readonly string[]): Promise<void> => {
    const app = await startTestApplication({ database, dataDir, env: { ...lease, ...store.env } });
    try {
      await eventually('no work open', openWork, (count) => count === 0);
      await look({ steps: stepsIn(app.client, await defaultNamespace(app.client)), agentId });
      // Every work item was closed by exactly one event.
      expect(Object.values(await closingsOf(store.history(database), agentId))).toEqual(closings.map((type) => [type]));
      await expectUnbrokenChains(store.history(database));
    } finally {
      await app.close();
    }
  };

  it('a deployment that dies when prepared, when selected and when activated ends with the one child it had', async () => {
    let agentId = '';
    await crashAt('deployment:prepared', async (client) => {
      const place = await create(client);
      agentId = place.agentId;
      await place.steps.deploy(agentId);
    });
    const left = await children();
    expect(left.map((child) => child.agentId)).toEqual([agentId]);
    await crashAt('deployment:selected', recover);
    await crashAt('deployment:activated', recover);
    await startAgain(
      agentId,
      async ({ steps }) => {
        const { revisionId } = left[0]!;
        expect(await steps.deployment(agentId, revisionId)).toMatchObject({ status: 'succeeded', error: null });
        expect(await steps.agent(agentId)).toMatchObject({ desiredRuntimeState: 'running', activeRevisionId: revisionId });
        // The child was adopted each time, not started again.
        expect(await children()).toEqual(left);
      },
      ['DeploymentActivated'],
    );
    expect(await children()).toEqual([]);
  });

  it('a stop that dies when all is stopped and when that is written has stopped once', async () => {
    let agentId = '';
    await crashAt('stop:stopped', async (client) => {
      const place = await create(client);
      agentId = place.agentId;
      await place.steps.run(agentId);
      await place.steps.stop(agentId);
    });
    expect(await children()).toEqual([]);
    await crashAt('stop:completed', recover);
    await startAgain(
      agentId,
      async ({ steps }) => {
        const agent = await steps.agent(agentId);
        expect(agent).toMatchObject({ desiredRuntimeState: 'stopped', status: 'active' });
        expect(agent).not.toHaveProperty('activeRevisionId');
        expect(await children()).toEqual([]);
      },
      ['DeploymentActivated', 'AgentStopped'],
    );
  });

  it('a deletion that dies when all is erased, when that is written and when the Agent is removed removes it once and frees its name', async () => {
    let agentId = '';
    await crashAt('deletion:erased', async (client) => {
      const place = await create(client);
      agentId = place.agentId;
      await place.steps.run(agentId);
      await place.steps.remove(agentId);
    });
    expect(await children()).toEqual([]);
    await crashAt('deletion:finished', recover);
    await crashAt('deletion:removed', recover);
    await startAgain(
      agentId,
      async ({ steps }) => {
        await steps.gone(agentId);
        const types = (await eventsOf(store.history(database), `agent-${agentId}`)).map(({ type }) => type);
        expect(types.filter((type) => type === 'AgentRemoved')).toHaveLength(1);
        expect(types.at(-1)).toBe('AgentRemoved');
        expect(await children()).toEqual([]);
        await steps.createAgent('crashing', (await steps.configure()).id);
      },
      ['DeploymentActivated', 'AgentTeardownFinished'],
    );
  });
});
