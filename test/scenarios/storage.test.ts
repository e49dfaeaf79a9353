/** Failure scenarios 14, 19 and 29: what is stored, how much of it, and in which order it comes back. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { iam } from '../../src/aggregates.ts';
import { newKey } from '../../src/iam/keys.ts';
import { systemContext } from '../../src/installation/bootstrap.ts';
import { createKeyRows } from '../../src/postgres/private-rows.ts';
import { defaultNamespace, stepsIn, type AgentAnswer, type Steps } from '../end-to-end/steps.ts';
import { storedEvents } from '../end-to-end/stored-history.ts';
import { startTestApplication, type TestApplication } from '../support/app.ts';
import { createClient } from '../support/client.ts';
import { openReplica, type Replica } from './replica.ts';

let app: TestApplication;
let replica: Replica;
let namespaceId: string;
let steps: Steps;

beforeAll(async () => {
  app = await startTestApplication();
  replica = await openReplica(app);
  namespaceId = await defaultNamespace(app.client);
  steps = stepsIn(app.client, namespaceId);
});
afterAll(async () => {
  await replica.close();
  await app.close();
});

/** The bytes of an answer's data, as a client that compares text sees them. */
const textOf = async (method: string, path: string, body?: string): Promise<string> => {
  const response = await fetch(app.origin + path, {
    method,
    headers: { 'x-api-key': app.key, ...(body !== undefined && { 'content-type': 'application/json' }) },
    ...(body !== undefined && { body }),
  });
  const text = await response.text();
  expect(response.status, text).toBeLessThan(300);
  return text.slice(0, text.indexOf(',"meta":'));
};

const memberText = (text: string, member: string): string => JSON.stringify((JSON.parse(`${text}}`) as { data: Record<string, unknown> }).data[member]);

describe('scenario 14: the append limit', () => {
  it('scenario 14: a legal request above the append limit is 413 and leaves no event', async () => {
    const { id: configurationId } = await steps.configure();
    // Written in four characters, kept in twenty-one.
    const numbers = Array.from({ length: 80_000 }, () => '1e20').join();
    const plugins = `{"large":{"enabled":false,"driverPolicy":{"numbers":[${numbers}]}}}`;
    const body = `{"name":"large","configurationId":"${configurationId}","plugins":${plugins}}`;
    expect(body.length).toBeLessThan(448 * 1024);
    const before = await storedEvents(app.database.pool);
    const headers = { 'x-api-key': app.key, 'content-type': 'application/json' };
    const response = await fetch(`${app.origin}${steps.at}/agents`, { method: 'POST', headers, body });
    expect({ status: response.status, answer: (await response.json()) as unknown }).toMatchObject({ status: 413, answer: { error: { code: 'PAYLOAD_TOO_LARGE' } } });
    expect((await storedEvents(app.database.pool)).slice(before.length).map(({ type }) => type)).toEqual([]);
    // Nor does it keep the name.
    await steps.createAgent('large', configurationId);
  });
});

describe('scenario 19: a key is its row and its event together', () => {
  const expiresAt = '2999-01-01T00:00:00.000Z';
  const statusWith = async (text: string) => (await createClient(app.origin, text).rest('GET', '/namespaces')).status;
  const issue = (keyId: string, servicePrincipalId: string) =>
    replica.streams.execute(iam, '', { type: 'IssueServiceKey', key: { keyId, servicePrincipalId, name: 'second', expiresAt } }, systemContext('test'));

  it('scenario 19: a row without its event never authenticates', async () => {
    const { servicePrincipalId } = replica.installation.serviceKey;
    const key = newKey();
    await createKeyRows(app.database.pool).insert(key.keyId, servicePrincipalId, key.secretHash);
    expect(await statusWith(key.text)).toBe(401);
    await issue(key.keyId, servicePrincipalId);
    expect(await statusWith(key.text)).toBe(200);
  });

  it('scenario 19: an event without its row never authenticates', async () => {
    const { servicePrincipalId } = replica.installation.serviceKey;
    const key = newKey();
    await issue(key.keyId, servicePrincipalId);
    expect(await statusWith(key.text)).toBe(401);
  });

  it('scenario 19: a revoked key is refused at once, while its row is still there', async () => {
    const { servicePrincipalId } = replica.installation.serviceKey;
    const key = newKey();
    await createKeyRows(app.database.pool).insert(key.keyId, servicePrincipalId, key.secretHash);
    await issue(key.keyId, servicePrincipalId);
    expect(await statusWith(key.text)).toBe(200);
    await replica.streams.execute(iam, '', { type: 'RevokeServiceKey', keyId: key.keyId }, systemContext('test'));
    expect(await statusWith(key.text)).toBe(401);
    expect(await createKeyRows(app.database.pool).secretHash(key.keyId)).toBeDefined();
  });
});

describe('scenario 29: one fixed member order on every read', () => {
  const scrambled = '{"tools":{"zeta":1,"alpha":{"b":[{"y":1,"x":2}],"a":"ä"}},"agents":{"10":1,"9":2},"gateway":{}}';
  const sorted = '{"tools":{"alpha":{"a":"ä","b":[{"x":2,"y":1}]},"zeta":1},"gateway":{},"agents":{"9":2,"10":1}}';

  it('scenario 29: a document has the same text however it was sent, stored or read', async () => {
    const create = (values: string) => textOf('POST', `${steps.at}/configurations`, `{"kind":"agent","values":${values}}`);
    const [first, second] = [await create(scrambled), await create(sorted)];
    const values = memberText(first, 'values');
    expect(memberText(second, 'values')).toBe(values);
    const { id } = (JSON.parse(`${first}}`) as { data: { id: string } }).data;
    const path = `${steps.at}/configurations/${id}`;
    expect(await textOf('GET', path)).toBe(first);
    expect(memberText(await textOf('PATCH', path, `{"values":${sorted}}`), 'values')).toBe(values);
    const { data } = await app.client.graphql<{ configuration: { values: unknown } }>(
      'query ($namespaceId: ID!, $id: ID!) { configuration(namespaceId: $namespaceId, id: $id) { values } }',
      { namespaceId, id },
    );
    expect(JSON.stringify(data.configuration.values)).toBe(values);
  });

  it('scenario 29: the draft and the revision made from it compare equal as text', async () => {
    const { id: configurationId } = await steps.configure();
    const body = `{"plugins":{"b":{"tools":{"t":{"reviewer":"auto","enabled":true}},"enabled":false},"a":{"enabled":false}},"harnessAuth":{"method":"runtime"},"configurationId":"${configurationId}","name":"ordered"}`;
    const created = await textOf('POST', `${steps.at}/agents`, body);
    const { id } = (JSON.parse(`${created}}`) as { data: AgentAnswer }).data;
    const read = await textOf('GET', steps.agentPath(id));
    expect(read).toBe(created);
    const patch = `{"plugins":{"a":{"enabled":false},"b":{"enabled":false,"tools":{"t":{"enabled":true,"reviewer":"auto"}}}},"configurationId":"${configurationId}"}`;
    expect(memberText(await textOf('PATCH', steps.agentPath(id), patch), 'plugins')).toBe(memberText(read, 'plugins'));
    const revision = await textOf('POST', `${steps.agentPath(id)}/deploy`);
    const { id: revisionId } = (JSON.parse(`${revision}}`) as { data: { id: string } }).data;
    expect(memberText(revision, 'harnessAuth')).toBe(memberText(read, 'harnessAuth'));
    expect(await textOf('GET', `${steps.agentPath(id)}/revisions/${revisionId}`)).toBe(revision);
    expect(await textOf('GET', `${steps.agentPath(id)}/revisions`)).toBe(revision.replace('{"data":', '{"data":[') + ']');
  });
});
