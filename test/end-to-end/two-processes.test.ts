/** Two server processes over one database and one event store: each reads what the other has just answered, and without a projector a command still answers. */
import { rm } from 'node:fs/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startApplication } from '../../src/compose.ts';
import { readConfig } from '../../src/config.ts';
import { createLogger } from '../../src/telemetry/logger.ts';
import { newDataDir, readKey } from '../support/app.ts';
import { createClient, type Client } from '../support/client.ts';
import { createDatabase, type TestDatabase } from '../support/database.ts';
import { onEachEventStore } from '../support/event-stores.ts';
import { startServer, type Environment } from '../support/server.ts';
import { defaultNamespace, demand, stepsIn, type AgentAnswer, type ConfigurationAnswer, type RevisionAnswer } from './steps.ts';

const apiOnly = { EXUVIA_ROLES: 'api' };
/** A command waits for read models at most one second; the rest is its own work on a busy machine. */
const withinMs = 1_000 + 4_000;

interface Server {
  readonly client: Client;
  stop(): Promise<unknown>;
}

/** Names of a list as a server shows them now. */
const namesOn = async (client: Client, path: string) => (await demand<{ name: string }[]>(client, 200, 'GET', path)).map(({ name }) => name);

onEachEventStore((store) => {
  let database: TestDatabase;
  let firstDir: string;
  let otherDir: string;
  beforeAll(async () => {
    [database, firstDir, otherDir] = await Promise.all([createDatabase(), newDataDir(), newDataDir()]);
  });
  afterAll(() => Promise.all([firstDir, otherDir].map((folder) => rm(folder, { recursive: true }))));

  /** Starts a process on a data folder, with the key of the first one. */
  const start = async (dataDir: string, env: Environment = {}): Promise<Server> => {
    const settings = { PORT: '0', EXUVIA_DATA_DIR: dataDir, OCC_DATABASE_URL: database.url, EXUVIA_LOG_LEVEL: 'fatal', ...store.env, ...env };
    const { origin, stop } = await startServer(settings);
    return { client: createClient(origin, await readKey(firstDir)), stop };
  };

  describe('an all-in-one server and an API beside it', () => {
    let all: Server;
    let api: Server;
    beforeAll(async () => {
      all = await start(firstDir);
      api = await start(otherDir, apiOnly);
    });
    afterAll(() => Promise.all([api.stop(), all.stop()]));

    it('each reads the writes of the other as soon as they are answered', async () => {
      const namespaceId = await defaultNamespace(all.client);
      for (const [one, other] of [[all.client, api.client], [api.client, all.client]] as const) {
        const [here, there] = [stepsIn(one, namespaceId), stepsIn(other, namespaceId)];
        const configuration = await here.configure();
        expect(await demand<ConfigurationAnswer>(other, 200, 'GET', `${there.at}/configurations/${configuration.id}`)).toEqual(configuration);
        const created = await here.createAgent(`seen from ${other.origin}`, configuration.id);
        expect(await there.agent(created.id)).toEqual(created);
        expect(await namesOn(other, `${there.at}/agents`)).toContain(created.name);

        const changed = await demand<AgentAnswer>(one, 200, 'PATCH', here.agentPath(created.id), { configurationId: configuration.id, harnessAuth: null });
        expect(changed.harnessAuth).toBeNull();
        expect(await there.agent(created.id)).toEqual(changed);
        await demand(other, 200, 'PATCH', there.agentPath(created.id), { configurationId: configuration.id, harnessAuth: { method: 'runtime' } });

        const revision = await here.deploy(created.id);
        expect(await demand<RevisionAnswer[]>(other, 200, 'GET', `${there.agentPath(created.id)}/revisions`)).toEqual([revision]);
        expect((await there.deployment(created.id, revision.id)).deploymentId).toBe(revision.id);
        expect(await there.deployed(created.id, revision.id)).toMatchObject({ status: 'succeeded' });
        expect(await here.agent(created.id)).toMatchObject({ activeRevisionId: revision.id });

        await here.stop(created.id);
        expect(await there.agent(created.id)).toMatchObject({ desiredRuntimeState: 'stopped' });
        await there.stopped(created.id);
        await here.remove(created.id);
        const { status, data } = await other.rest<AgentAnswer>('GET', there.agentPath(created.id));
        expect([`200 deleting`, `404 undefined`]).toContain(`${status} ${(data as AgentAnswer | undefined)?.status}`);
        await there.gone(created.id);
        expect((await one.rest('GET', here.agentPath(created.id))).status).toBe(404);
      }
    });

    it('a document deleted on one is gone on the other', async () => {
      const namespaceId = await defaultNamespace(all.client);
      const { id } = await stepsIn(all.client, namespaceId).configure();
      const path = `/namespaces/${namespaceId}/configurations/${id}`;
      await demand(all.client, 204, 'DELETE', path);
      expect((await api.client.rest('GET', path)).status).toBe(404);
    });
  });

  describe('an API without any projector', () => {
    let api: Server;
    beforeAll(async () => {
      api = await start(otherDir, apiOnly);
    });
    afterAll(() => api.stop());

    it('scenario 15: commands answer in time, and reads of one resource and below one Agent fold its stream', async () => {
      const namespaceId = await defaultNamespace(api.client);
      const steps = stepsIn(api.client, namespaceId);
      const configuration = await steps.configure();
      expect(await demand<ConfigurationAnswer>(api.client, 200, 'GET', `${steps.at}/configurations/${configuration.id}`)).toEqual(configuration);

      const startedAt = performance.now();
      const created = await steps.createAgent('unprojected', configuration.id);
      expect(performance.now() - startedAt).toBeLessThan(withinMs);
      expect(await steps.agent(created.id)).toEqual(created);

      const revision = await steps.deploy(created.id);
      expect(await demand<RevisionAnswer[]>(api.client, 200, 'GET', `${steps.agentPath(created.id)}/revisions`)).toEqual([revision]);
      expect(await demand<RevisionAnswer>(api.client, 200, 'GET', `${steps.agentPath(created.id)}/revisions/${revision.id}`)).toEqual(revision);
      expect(await steps.deployment(created.id, revision.id)).toMatchObject({ status: 'queued', progress: { lastAttempt: null } });
      expect(await steps.stop(created.id)).toMatchObject({ desiredRuntimeState: 'stopped' });
      expect(await steps.agent(created.id)).toMatchObject({ desiredRuntimeState: 'stopped' });
    });

    it('an API that starts while the projector is away and behind serves all the same', async () => {
      const late = await start(firstDir, apiOnly);
      try {
        expect((await fetch(`${late.client.origin}/readyz`)).status).toBe(200);
        const steps = stepsIn(late.client, await defaultNamespace(late.client));
        await steps.configure();
      } finally {
        await late.stop();
      }
    });

    it('an API that waits for the first projector of all ends when it is asked to', async () => {
      const { url } = await createDatabase();
      const dataDir = await newDataDir();
      const stopping = new AbortController();
      const config = readConfig({ PORT: '0', EXUVIA_DATA_DIR: dataDir, OCC_DATABASE_URL: url, ...store.env, ...apiOnly });
      const starting = startApplication(config, createLogger({ level: 'silent' }), { stopping: stopping.signal });
      stopping.abort();
      await (await starting).close();
      await rm(dataDir, { recursive: true });
    });
  });
});
