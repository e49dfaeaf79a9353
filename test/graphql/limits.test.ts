/** What one operation may ask for: everything beyond is refused before a resolver or the database is asked. (iam-auth-audit 8.4, failure scenario 25) */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { getIntrospectionQuery } from 'graphql';
import { createAgent, createConfiguration, createNamespace } from './fixture.ts';
import { createWorld, type Answer, type World } from './world.ts';

let world: World;
let namespaceId: string;
let agent: Awaited<ReturnType<typeof createAgent>>;

beforeAll(async () => {
  world = await createWorld();
  ({ namespaceId } = await createNamespace(world, 'main'));
  const { configurationId } = await createConfiguration(world, namespaceId);
  agent = await createAgent(world, namespaceId, configurationId, 'crab');
});
afterAll(() => world.close());

const ask = async (body: object | string, key = world.adminKey) => {
  world.edge.takeStatements();
  const response = await fetch(world.edge.endpoint, {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'x-api-key': key },
    body: typeof body === 'string' ? body : JSON.stringify(body),
  });
  const answer = (await response.json()) as Answer<Record<string, never> | null | undefined>;
  return { status: response.status, requestId: response.headers.get('x-request-id')!, ...answer, statements: world.edge.takeStatements()! };
};

const nested = (depth: number): string => `{ agent(id: "${'x'}") ${'{ namespace { agents { nodes '.repeat(depth)}{ name }${'} } }'.repeat(depth)} }`;
const aliased = (count: number): string => `{ ${Array.from({ length: count }, (_, index) => `a${index}: installation { name }`).join(' ')} }`;
const bomb = (levels: number): string => {
  const fragments = Array.from({ length: levels }, (_, index) => `fragment F${index} on Agent { one: namespace { agents { nodes { ...F${index + 1} } } } two: namespace { agents { nodes { ...F${index + 1} } } } }`);
  return `{ agent(id: "agt_x") { ...F0 } } ${fragments.join(' ')} fragment F${levels} on Agent { name }`;
};

const beyond: readonly (readonly [string, object, RegExp])[] = [
  ['a document that is too long', { query: `{ __typename } # ${'x'.repeat(70_000)}` }, /document has 7\d{4} characters; the limit is 65536/],
  ['a document of too many tokens', { query: `{ ${'__typename '.repeat(2_001)} }` }, /2000 tokens/],
  ['a flood of directives', { query: `{ __typename ${'@include(if: true) '.repeat(400)} }` }, /2000 tokens/],
  ['directives that repeat', { query: `{ __typename ${'@include(if: true) '.repeat(200)} }` }, /can only be used once/],
  ['a deeply nested list', { query: `{ nodes(ids: ${'['.repeat(1_900)} }` }, /nested too deep; the limit is 128 brackets/],
  ['fields nested without an end', { query: '{a'.repeat(900) }, /nested too deep; the limit is 128 brackets/],
  ['a list nested where none belongs', { query: `{ nodes(ids: ${'['.repeat(100)}${']'.repeat(100)}) { id } }` }, /ID cannot represent/],
  ['fields too deep in each other', { query: nested(8) }, /nested \d+ levels deep; the limit is 20/],
  ['too many aliases', { query: aliased(31) }, /31 aliases; the limit is 30/],
  ['a bomb of fragments', { query: bomb(5) }, /aliases; the limit is 30|up to \d+ objects; the limit is 20000/],
  ['a bomb of fragments too deep for any number', { query: bomb(60) }, /levels deep; the limit is 20/],
  ['a cycle of fragments', { query: '{ agent(id: "x") { ...A } } fragment A on Agent { namespace { agents { nodes { ...A } } } }' }, /Cannot spread fragment "A" within itself/],
  ['pages within pages', { query: '{ namespaces(first: 100) { nodes { agents(first: 100) { nodes { revisions(first: 100) { nodes { revisionId deployment { status } } } } } } } }' }, /objects; the limit is 20000/],
  ['pages whose sizes are variables', { query: 'query ($n: Int = 100) { namespaces(first: $n) { edges { node { agents(first: $n) { edges { node { viewerCan { read } } } } } } } }', variables: {} }, /objects; the limit is 20000/],
  ['pages whose size is a null, whatever stands for what is not sent', { query: 'query ($n: Int = 1) { namespaces(first: $n) { nodes { agents(first: $n) { nodes { revisions(first: $n) { nodes { agent { revisions(first: $n) { nodes { revisionId } } } } } } } } } }', variables: { n: null } }, /objects; the limit is 20000/],
  ['a subscription beyond them', { query: 'subscription ($id: ID!) { deploymentChanged(id: $id) { agent { namespace { agents(first: 100) { nodes { revisions(first: 100) { nodes { deployment { status } agent { name } } } } } } } } }', variables: { id: 'rev_x' } }, /objects; the limit is 20000/],
];

describe('an operation beyond the limits is the caller\'s error, and asks the database nothing', () => {
  it.each(beyond)('%s', async (_, body, message) => {
    const { statements } = await ask({ query: '{ __typename }' });
    const refused = await ask(body);
    expect(refused).toMatchObject({ status: 400, statements });
    expect(refused.data).toBeUndefined();
    expect(refused.errors![0]).toMatchObject({ message: expect.stringMatching(message) as unknown, extensions: { code: 'INVALID_REQUEST', status: 400, requestId: refused.requestId } });
  });
});

it('documents that are never sent again are not kept for long', async () => {
  const heapMiB = (): number => {
    setFlagsFromString('--expose_gc');
    (runInNewContext('gc') as () => void)();
    return process.memoryUsage().heapUsed / 2 ** 20;
  };
  const send = (name: number) => ask({ query: `{ ${Array.from({ length: 1_900 }, (_, index) => `f${name}_${index}`).join(' ')} }` });
  await send(0);
  const before = heapMiB();
  for (let name = 1; name <= 120; name++) await send(name);
  expect(heapMiB() - before).toBeLessThan(110);
});

describe('within the limits is', () => {
  it('introspection, for whoever is known', async () => {
    const { key } = await world.addPrincipal([]);
    const { status, errors } = await ask({ query: getIntrospectionQuery({ inputValueDeprecation: true, specifiedByUrl: true, oneOf: true }) }, key);
    expect(errors).toBeUndefined();
    expect(status).toBe(200);
  });

  it('a full page of the Console', async () => {
    const query = `query ($namespace: ID!) { namespace(id: $namespace) { name agents(first: 50) {
      edges { node { name viewerCan { deploy } configuration { generation values } activeRevision { revision }
        revisions(first: 20) { edges { node { revision harness { id } deployment { status error { code } progress { lastAttempt { code } } cleanup { status } } } } }
        latestDeployment { status progress { lastAttempt { code } } } } }
      pageInfo { hasNextPage endCursor } } } }`;
    const { status, errors } = await ask({ query, variables: { namespace: namespaceId } });
    expect(errors).toBeUndefined();
    expect(status).toBe(200);
  });

  it('an input as large as its REST route takes, and none larger', async () => {
    const create = 'mutation ($input: CreateConfigurationInput!) { createConfiguration(input: $input) { ... on Refusal { code message } } }';
    const sized = (size: number) => ask({ query: create, variables: { input: { namespaceId, kind: 'agent', values: { text: 'x'.repeat(size) } } } });
    expect((await sized(65_000)).data).toEqual({ createConfiguration: {} });
    expect((await sized(66_000)).data).toEqual({ createConfiguration: { code: 'PAYLOAD_TOO_LARGE', message: 'The input is limited to 65536 bytes' } });
    const agentOf = (size: number) => ask({ query: 'mutation ($input: CreateAgentInput!) { createAgent(input: $input) { ... on Refusal { code } } }', variables: { input: { namespaceId, name: 'large', configurationId: 'x'.repeat(size) } } });
    expect((await agentOf(458_000)).data).toEqual({ createAgent: { code: 'INVALID_REQUEST' } });
    expect(await agentOf(525_000)).toMatchObject({ status: 413, errors: [{ message: 'The body is limited to 524288 bytes', extensions: { code: 'PAYLOAD_TOO_LARGE' } }] });
  });
});

describe('at most 20 denials of one operation are recorded', () => {
  const ids = (count: number): string[] => Array.from({ length: count }, () => agent.id);

  it('and then it ends with one error; what came before keeps its own', async () => {
    const { key } = await world.addPrincipal([]);
    const query = 'query ($ids: [ID!]!) { nodes(ids: $ids) { id } }';
    const upTo = await ask({ query, variables: { ids: ids(20) } }, key);
    expect(upTo.errors!.map(({ extensions: { code } }) => code)).toEqual(Array(20).fill('FORBIDDEN'));
    const beyond = await ask({ query, variables: { ids: ids(100) } }, key);
    expect(beyond.errors!.map(({ extensions: { code } }) => code).sort()).toEqual([...Array<string>(20).fill('FORBIDDEN'), 'RATE_LIMITED']);
    expect(beyond.errors!.find(({ extensions: { code } }) => code === 'RATE_LIMITED')).toMatchObject({ message: 'The operation ended after 20 denied permissions', extensions: { status: 429, retryAfterSeconds: 1 } });
    expect(beyond.data).toEqual({ nodes: Array(100).fill(null) });
    for (const { requestId } of [upTo, beyond]) expect(await world.denialsOf(requestId)).toHaveLength(20);
  });

  it('and what follows is not done, not even what the caller may do', async () => {
    const { key } = await world.addPrincipal([
      { action: 'operate', resourceKind: 'agent', namespaceId, resourceId: agent.agentId },
    ]);
    const other = 'agt_00000000-0000-4000-8000-000000000000';
    const stop = (alias: string, id: string) => `${alias}: stopAgent(input: { id: "${id}", namespaceId: "${namespaceId}" }) { ... on Refusal { code } ... on StopAgentPayload { agent { agentId } } }`;
    const denied = Array.from({ length: 21 }, (_, index) => stop(`d${index}`, other));
    const { data, requestId } = await ask({ query: `mutation { ${stop('before', agent.agentId)} ${denied.join(' ')} ${stop('after', agent.agentId)} }` }, key);
    expect(data).toMatchObject({ before: { agent: { agentId: agent.agentId } }, d19: { code: 'FORBIDDEN' }, d20: { code: 'RATE_LIMITED' }, after: { code: 'RATE_LIMITED' } });
    expect(await world.denialsOf(requestId)).toHaveLength(20);
  });
});

it('what became of requests is counted by kind of operation and class of status', async () => {
  const { key } = await world.addPrincipal([]);
  const edge = await world.openEdge();
  const post = async (body: string, as: string) => (await fetch(edge.endpoint, { method: 'POST', headers: { 'content-type': 'application/json', 'x-api-key': as }, body })).text();
  await post('{"query":"{ installation { name } }"}', world.adminKey);
  await post('{"query":"{ installation { name } }"}', key);
  await post('{"query":"{ lobster }"}', key);
  await post('{"query":"{ installation { name } }"}', 'exk.unknown');
  await edge.close();
  const { text } = await edge.metrics.exposition();
  const counts = text.split('\n').filter((line) => line.startsWith('exuvia_graphql_operation_seconds_count'));
  expect(counts.sort()).toEqual([
    'exuvia_graphql_operation_seconds_count{operation="none",outcome="4xx"} 2',
    'exuvia_graphql_operation_seconds_count{operation="query",outcome="2xx"} 1',
    'exuvia_graphql_operation_seconds_count{operation="query",outcome="4xx"} 1',
  ]);
});
