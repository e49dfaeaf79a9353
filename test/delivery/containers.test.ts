/** What docker-compose.yml starts, as unprivileged processes on code they cannot write: the main job through them, and how each ends and comes back. */
import { readdir, readFile, stat, utimes } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { childrenOf } from '../compute/process-world.ts';
import { defaultNamespace, demand, stepsIn, type AgentAnswer, type Steps } from '../end-to-end/steps.ts';
import { readKey } from '../support/app.ts';
import { createClient, eventually, type Client } from '../support/client.ts';
import { createDatabase } from '../support/database.ts';
import { startEventstoredb } from '../support/eventstoredb/server.ts';
import { startTcpProxy } from '../support/tcp-proxy.ts';
import { layImage, startService, type Container, type LaidImage } from './containers.ts';

// Each step starts processes, on a machine that may be busy.
vi.setConfig({ testTimeout: 120_000, hookTimeout: 120_000 });

let laid: LaidImage;
beforeAll(async () => {
  laid = await layImage();
});
afterAll(() => laid.remove());

/** The stores of the compose file, and a way to start its other services beside them. */
const openStores = async (kind: 'postgres' | 'eventstoredb') => {
  const opened = new AsyncDisposableStack();
  const proxy = await startTcpProxy((await createDatabase()).url);
  opened.defer(() => proxy.close());
  const bare = new URL(proxy.url);
  const variables = { POSTGRES_PASSWORD: decodeURIComponent(bare.password) || 'unused' };
  bare.password = '';
  const store = kind === 'eventstoredb' ? await startEventstoredb() : undefined;
  if (store !== undefined) opened.defer(() => store.close());
  return {
    start: (name: string, dataDir: string): Container => {
      const given = { EXUVIA_DATA_DIR: dataDir, OCC_DATABASE_URL: bare.href, OCC_EVENTSTORE_URL: store?.url };
      const container = startService(laid, name, { variables, given });
      opened.defer(() => container.kill());
      return container;
    },
    close: () => opened.disposeAsync(),
  };
};
type Stores = Awaited<ReturnType<typeof openStores>>;

const walkIn = async (exuvia: Container): Promise<{ client: Client; steps: Steps }> => {
  const line = await exuvia.ready;
  expect(line).toMatch(/^exuvia ready on http:\/\/0\.0\.0\.0:\d+$/);
  const client = createClient(line.replace('exuvia ready on ', '').replace('0.0.0.0', '127.0.0.1'), await readKey(exuvia.dataDir));
  return { client, steps: stepsIn(client, await defaultNamespace(client)) };
};

const childrenIn = ({ dataDir }: Container) => childrenOf(join(dataDir, 'compute'));

const liveOneLife = async (exuvia: Container, steps: Steps): Promise<void> => {
  const { id: configurationId } = await steps.configure();
  const { id } = await steps.createAgent('contained', configurationId);
  const revision = await steps.run(id);
  expect((await steps.agent(id)).activeRevisionId).toBe(revision.id);
  const children = await childrenIn(exuvia);
  expect(children.map(({ agentId }) => agentId)).toEqual([id]);
  expect(await readFile(`/proc/${children[0]!.pid}/environ`, 'utf8')).not.toMatch(/PGPASSWORD|OCC_/);
  await steps.stop(id);
  await steps.stopped(id);
  expect(await childrenIn(exuvia)).toEqual([]);
  await steps.remove(id);
  await steps.gone(id);
};

describe('the services of the compose file', () => {
  let stores: Stores;
  let exuvia: Container;
  let projector: Container;
  let client: Client;
  let steps: Steps;

  beforeAll(async () => {
    stores = await openStores('eventstoredb');
    exuvia = stores.start('exuvia', await laid.newFolder());
    projector = stores.start('projector', await laid.newFolder());
    ({ client, steps } = await walkIn(exuvia));
  });
  afterAll(() => stores.close());

  it('cannot write their code', async () => {
    const attempt = await exuvia.execute(['node', '-e', `require('node:fs').writeFileSync('src/cli.ts', '')`]);
    expect(attempt).toMatchObject({ code: 1, said: expect.stringContaining('EACCES') as string });
  });

  it('are well by their own health checks, and serve no GraphiQL in production', async () => {
    expect(await projector.ready).toBe('exuvia ready');
    expect(await exuvia.health()).toEqual({ code: 0, said: '' });
    expect(await projector.health()).toEqual({ code: 0, said: '' });
    const page = await fetch(`${client.origin}/graphql`, { headers: { accept: 'text/html' } });
    expect(page.headers.get('content-type')).not.toContain('text/html');
  });

  it('let an Agent live its whole life', () => liveOneLife(exuvia, steps));

  it('open the compute root in the worker alone, and write the first key in the API alone', async () => {
    const filesOf = async ({ dataDir }: Container) => (await readdir(dataDir)).filter((name) => !name.startsWith('lock')).sort();
    expect(await filesOf(projector)).toEqual(['heartbeat']);
    expect(await filesOf(exuvia)).toEqual(['admin.json', 'compute', 'service-key.json']);
    expect((await stat(join(exuvia.dataDir, 'service-key.json'))).mode & 0o777).toBe(0o600);
  });

  it('end with 0 and no child when told to stop; the next start brings the Agent back without a new revision', async () => {
    const { id: configurationId } = await steps.configure();
    const { id } = await steps.createAgent('returning', configurationId);
    const revision = await steps.run(id);
    expect(await exuvia.stop()).toMatchObject({ code: 0 });
    expect(await childrenIn(exuvia)).toEqual([]);

    exuvia = stores.start('exuvia', exuvia.dataDir);
    ({ client, steps } = await walkIn(exuvia));
    await eventually('the Agent to run again', () => childrenIn(exuvia), (children) => children.some(({ revisionId }) => revisionId === revision.id));
    expect((await steps.agent(id)).activeRevisionId).toBe(revision.id);
  });

  it('tell of a projector that was killed, write on without it, and catch up with the next one', async () => {
    await projector.kill();
    const longAgo = new Date(Date.now() - 60_000);
    await utimes(join(projector.dataDir, 'heartbeat'), longAgo, longAgo);
    expect(await projector.health()).toMatchObject({ code: 1, said: expect.stringMatching(/^exuvia: The process on .* was last well 6\d s ago\n$/) as string });

    const { id: configurationId } = await steps.configure();
    const { id } = await steps.createAgent('meanwhile', configurationId);
    projector = stores.start('projector', await laid.newFolder());
    await projector.ready;
    expect(await projector.health()).toMatchObject({ code: 0 });
    const listed = () => demand<AgentAnswer[]>(client, 200, 'GET', `${steps.at}/agents`);
    await eventually('the new Agent in the list', listed, (all) => all.some((agent) => agent.id === id));
  });

  it('drain as a projector, and tell of a server that is gone', async () => {
    expect(await projector.stop()).toMatchObject({ code: 0 });
    expect(await exuvia.stop()).toMatchObject({ code: 0 });
    expect(await childrenIn(exuvia)).toEqual([]);
    expect(await exuvia.health()).toMatchObject({ code: 1, said: expect.stringMatching(/^exuvia: http:\/\/127\.0\.0\.1:\d+\/healthz does not answer: /) as string });
  });
});

describe('the same services without OCC_EVENTSTORE_URL', () => {
  let stores: Stores;
  beforeAll(async () => {
    stores = await openStores('postgres');
  });
  afterAll(() => stores.close());

  it('keep the events in PostgreSQL: an Agent lives its whole life', async () => {
    const exuvia = stores.start('exuvia', await laid.newFolder());
    const projector = stores.start('projector', await laid.newFolder());
    const { steps } = await walkIn(exuvia);
    await liveOneLife(exuvia, steps);
    expect(await exuvia.health()).toEqual({ code: 0, said: '' });
    await projector.ready;
    expect(await projector.health()).toEqual({ code: 0, said: '' });
    expect(await exuvia.stop()).toMatchObject({ code: 0 });
    expect(await projector.stop()).toMatchObject({ code: 0 });
  });
});
