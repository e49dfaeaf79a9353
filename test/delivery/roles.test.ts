/** Each role a process of its own, on one database: what each opens, and the main job through all three. */
import { readdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, expect, it } from 'vitest';
import { startApplication, type Application } from '../../src/compose.ts';
import { readConfig, type Role } from '../../src/config.ts';
import { createLogger } from '../../src/telemetry/logger.ts';
import { childrenOf } from '../compute/process-world.ts';
import { defaultNamespace, stepsIn } from '../end-to-end/steps.ts';
import { storedEvents } from '../end-to-end/stored-history.ts';
import { newDataDir, readKey } from '../support/app.ts';
import { createClient } from '../support/client.ts';
import { createDatabase } from '../support/database.ts';

const running: Application[] = [];
const folders: string[] = [];
afterEach(async () => {
  await Promise.all(running.splice(0).map((application) => application.close()));
  await Promise.all(folders.splice(0).map((folder) => rm(folder, { recursive: true })));
});

const start = async (url: string, role: Role) => {
  const dataDir = await newDataDir();
  folders.push(dataDir);
  const config = readConfig({ EXUVIA_ROLES: role, PORT: '0', EXUVIA_DATA_DIR: dataDir, OCC_DATABASE_URL: url, EXUVIA_LOG_LEVEL: 'silent' });
  const application = await startApplication(config, createLogger({ level: config.logLevel }));
  running.push(application);
  return { origin: application.origin, dataDir };
};

const filesOf = async (dataDir: string) => (await readdir(dataDir)).filter((name) => !name.startsWith('lock')).sort();

it('worker and projector wait for the Installation that the API makes, and an Agent lives its whole life through the three', async () => {
  const { url, pool } = await createDatabase();
  const [worker, projector] = await Promise.all([start(url, 'worker'), start(url, 'projector')]);
  expect((await storedEvents(pool)).filter(({ type }) => type === 'InstallationBootstrapped')).toEqual([]);
  const api = await start(url, 'api');
  expect([worker.origin, projector.origin]).toEqual([undefined, undefined]);

  const client = createClient(api.origin!, await readKey(api.dataDir));
  const steps = stepsIn(client, await defaultNamespace(client));
  // The API alone knows what the driver can run, and opens nothing of it.
  const { id: unfit } = await steps.createAgent('unfit', (await steps.configure({ gateway: { port: 1 } })).id);
  expect(await client.rest('POST', `${steps.agentPath(unfit)}/deploy`)).toMatchObject({ status: 409, error: { code: 'RESOURCE_CONFLICT' } });

  const { id: configurationId } = await steps.configure();
  const { id } = await steps.createAgent('split', configurationId);
  const { id: revisionId } = await steps.run(id);
  expect(await childrenOf(join(worker.dataDir, 'compute'))).toMatchObject([{ agentId: id, revisionId }]);
  await steps.stop(id);
  await steps.stopped(id);
  await steps.remove(id);
  await steps.gone(id);

  expect(await filesOf(api.dataDir)).toEqual(['admin.json', 'service-key.json']);
  expect(await filesOf(worker.dataDir)).toEqual(['compute', 'heartbeat']);
  expect(await filesOf(projector.dataDir)).toEqual(['heartbeat']);
});
