/** `exuvia rebuild` as the operator runs it: a process of its own beside a running server. (failure scenario 17) */
import { afterAll, beforeAll, expect, it } from 'vitest';
import { defaultNamespace, stepsIn, type Steps } from '../end-to-end/steps.ts';
import { startTestApplication, type TestApplication } from '../support/app.ts';
import { runToEnd } from '../support/server.ts';

let application: TestApplication;
let namespaceId: string;
let steps: Steps;
beforeAll(async () => {
  application = await startTestApplication();
  namespaceId = await defaultNamespace(application.client);
  steps = stepsIn(application.client, namespaceId);
});
afterAll(() => application.close());

const run = (...names: string[]) => runToEnd(['rebuild', ...names], { OCC_DATABASE_URL: application.database.url, EXUVIA_DATA_DIR: application.dataDir });

const listed = async (): Promise<readonly string[]> => {
  const query = `query ($id: ID!) { namespace(id: $id) { agents(first: 100) { nodes { name } } } }`;
  const { data } = await application.client.graphql<{ namespace: { agents: { nodes: { name: string }[] } } }>(query, { id: namespaceId });
  return data.namespace.agents.nodes.map(({ name }) => name);
};

it('mends a read model under the running server, which goes on feeding it', async () => {
  const { id: configurationId } = await steps.configure();
  await steps.createAgent('first', configurationId);
  await application.database.pool.query(`update agent_v1 set name = 'damaged'`);
  expect(await listed()).toEqual(['damaged']);
  expect(await run('agent')).toMatchObject({ code: 0, stdout: 'agent is rebuilt\n', stderr: '' });
  await steps.createAgent('second', configurationId);
  expect(await listed()).toEqual(['first', 'second']);
});

it('rebuilds all of them without a name', async () => {
  const { code, stdout } = await run();
  expect({ code, lines: stdout.split('\n') }).toEqual({ code: 0, lines: expect.arrayContaining(['agent is rebuilt', 'history is rebuilt', 'deployment is rebuilt']) as string[] });
  expect(await listed()).toEqual(['first', 'second']);
});

it('refuses a name that no read model has, and rebuilds none', async () => {
  expect(await run('agent', 'agents')).toMatchObject({ code: 1, stdout: '', stderr: expect.stringMatching(/^exuvia: There is no read model "agents"; there are .*agent/) as string });
});
