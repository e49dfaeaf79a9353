/** Failure scenario 18 over both edges: what cannot be read is left out, told, and stops nothing that ends an Agent. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { agents, configurations } from '../../src/aggregates.ts';
import type { AgentEvent } from '../../src/agent/messages.ts';
import type { ConfigurationEvent } from '../../src/configuration/messages.ts';
import { systemContext } from '../../src/installation/bootstrap.ts';
import { defaultNamespace, demand, stepsIn, type AgentAnswer, type Steps } from '../end-to-end/steps.ts';
import { startTestApplication, type TestApplication } from '../support/app.ts';
import { openOperator, permissionOf, type TestOperator } from '../support/principals.ts';
import { until } from '../support/until.ts';

let app: TestApplication;
let operator: TestOperator;
let namespaceId: string;
let steps: Steps;

beforeAll(async () => {
  app = await startTestApplication();
  operator = await openOperator(app);
  namespaceId = await defaultNamespace(app.client);
  steps = stepsIn(app.client, namespaceId);
});
afterAll(async () => {
  await operator.close();
  await app.close();
});

/** What a build of another time may have written: the settings fit no shape of this one. */
const spoilAgent = (agentId: string) => {
  const data = { agentId, namespaceId, settings: { harnessAuth: { method: 'retired' } } };
  return operator.streams.execute(agents, agentId, () => [{ type: 'AgentHarnessAuthBound', data } as unknown as AgentEvent], systemContext(operator.installationId));
};
const spoilConfiguration = (configurationId: string) => {
  const data = { configurationId, namespaceId, generation: 2, settings: { values: 'retired' } };
  return operator.streams.execute(configurations, configurationId, () => [{ type: 'ConfigurationReplaced', data } as unknown as ConfigurationEvent], systemContext(operator.installationId));
};
const untilTold = (path: string) => until(`the read error of ${path}`, () => app.client.rest('GET', path), ({ data }) => 'configurationReadError' in data);

describe('scenario 18: unreadable settings', () => {
  it('of an Agent are left out of reads on both edges, refuse its draft and deployment, and let it be stopped and deleted', async () => {
    const { id: configurationId } = await steps.configure();
    const { id } = await steps.createAgent('unreadable', configurationId);
    const sibling = await steps.createAgent('readable', configurationId);
    await spoilAgent(id);
    const path = steps.agentPath(id);

    const { data } = await untilTold(path);
    expect(data).toMatchObject({ id, name: 'unreadable', configurationReadError: { code: 'SAVED_CONFIGURATION_UNREADABLE', field: 'harnessAuth' } });
    for (const member of ['harnessAuth', 'plugins', 'pluginApprovers']) expect(data).not.toHaveProperty(member);
    const listed = await demand<AgentAnswer[]>(app.client, 200, 'GET', `${steps.at}/agents`);
    expect(listed.find((agent) => agent.id === sibling.id)).toMatchObject({ harnessAuth: sibling.harnessAuth });
    const { data: shown } = await app.client.graphql<{ agent: object }>(
      `query ($id: ID!, $namespaceId: ID!) { agent(id: $id, namespaceId: $namespaceId) { name harnessAuth plugins credentialSources { sourceId } configurationReadError { code field } } }`,
      { id, namespaceId },
    );
    expect(shown.agent).toEqual({ name: 'unreadable', harnessAuth: null, plugins: null, credentialSources: null, configurationReadError: { code: 'SAVED_CONFIGURATION_UNREADABLE', field: 'harnessAuth' } });

    for (const [method, at, body] of [['PATCH', path, { configurationId }], ['POST', `${path}/deploy`, undefined]] as const)
      expect(await app.client.rest(method, at, body)).toMatchObject({ status: 409, error: { code: 'RESOURCE_CONFLICT' } });
    await demand(app.client, 202, 'POST', `${path}/stop`);
    await demand(app.client, 202, 'DELETE', path);
    await steps.gone(id);
  });

  it('of a Configuration are told only to callers who may read it, and a whole new document heals it', async () => {
    const { id: configurationId } = await steps.configure();
    const { id } = await steps.createAgent('of the unreadable', configurationId);
    await spoilConfiguration(configurationId);
    const path = `${steps.at}/configurations/${configurationId}`;
    expect((await untilTold(path)).data).toMatchObject({ generation: 2, configurationReadError: { field: 'configuration' } });

    const stranger = await operator.principal();
    await stranger.grant([permissionOf('agent:deploy')]);
    expect((await stranger.client.rest('POST', `${steps.agentPath(id)}/deploy`)).status).toBe(403);
    await stranger.grant([permissionOf('configuration:read')]);
    expect(await stranger.client.rest('POST', `${steps.agentPath(id)}/deploy`)).toMatchObject({ status: 409, error: { code: 'RESOURCE_CONFLICT' } });

    await demand(app.client, 200, 'PATCH', path, { values: {}, secretBindings: {} });
    await demand(app.client, 202, 'POST', `${steps.agentPath(id)}/deploy`);
  });
});
