/** Pages of every connection of the schema: what is no size and no cursor of that list is refused, everywhere alike. (architecture section 7, iam-auth-audit 8.4) */
import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { newId } from '../../src/kernel/ids.ts';
import { answersOf, connections, queryOf, type ConnectionField } from './connections.ts';
import { createAgent, createConfiguration, createNamespace, deployAgent } from './fixture.ts';
import { createWorld, type Answer, type World } from './world.ts';

let world: World;
let namespaceId: string;

const post = async (body: object, key = world.adminKey): Promise<Answer<unknown>> => {
  const response = await fetch(world.edge.endpoint, { method: 'POST', headers: { 'content-type': 'application/json', 'x-api-key': key }, body: JSON.stringify(body) });
  return (await response.json()) as Answer<unknown>;
};

beforeAll(async () => {
  world = await createWorld();
  for (const name of ['main', 'second', 'third']) {
    const namespace = await createNamespace(world, name);
    const { configurationId } = await createConfiguration(world, namespace.namespaceId);
    for (const agent of ['one', 'two', 'three']) {
      const { id } = await createAgent(world, namespace.namespaceId, configurationId, agent);
      await deployAgent(world, id);
      await deployAgent(world, id);
    }
    for (let count = 0; count < 3; count++) {
      const query = `mutation { createRole(input: { namespaceId: "${namespace.namespaceId}", permissions: [{ action: "read", resourceKind: "agent" }] }) { __typename } }`;
      expect((await post({ query })).data).toEqual({ createRole: { __typename: 'CreateRolePayload' } });
    }
    await world.addPrincipal([1, 2, 3].map(() => ({ action: 'read', resourceKind: 'agent', namespaceId: namespace.namespaceId })));
    namespaceId ??= namespace.namespaceId;
  }
});
afterAll(() => world.close());

const ask = async (connection: ConnectionField, page: { readonly first?: number | null; readonly after?: string | null }, key = world.adminKey) => {
  const { data, errors = [] } = await post({ query: queryOf(connection), variables: { parents: 3, namespace: namespaceId, ...page } }, key);
  return { answers: answersOf(connection, data), errors: errors.map(({ extensions: { code, status, details } }) => ({ code, status, details })) };
};

const refusal = (path: string) => ({ code: 'INVALID_REQUEST', status: 400, details: [{ path, code: 'INVALID_VALUE' }] });
const named = (connection: ConnectionField): [string, ConnectionField] => [`${connection.parent}.${connection.field}`, connection];

describe.each(connections.map(named))('%s', (_, connection) => {
  const cursorsOf = async (): Promise<readonly (readonly string[])[]> => (await ask(connection, {})).answers.map((answer) => answer!.edges.map(({ cursor }) => cursor));
  const refused = async (page: { readonly first?: number; readonly after?: string }, path: string) => {
    const { answers, errors } = await ask(connection, page);
    expect(errors).toEqual(answers.map(() => refusal(path)));
    expect(answers.every((answer) => answer === null)).toBe(true);
  };

  it.each([0, -1, 101, 2_147_483_647])('refuses a page of %d', (first) => refused({ first }, '/first'));

  it.each([1, 100, null])('takes a page of %s', async (first) => expect((await ask(connection, { first })).errors).toEqual([]));

  it('refuses what is no cursor, and the cursor of nothing', async () => {
    for (const after of ['', 'malformed', '\0', 'x'.repeat(300), randomUUID(), newId('ns'), newId('agt'), newId('rev'), newId('role'), newId('bnd')]) await refused({ after }, '/after');
  });

  it('refuses the cursors of every other connection that hold another kind of thing', async () => {
    const own = new Set((await cursorsOf()).flat());
    for (const other of connections) {
      const cursor = (await ask(other, {})).answers.flatMap((answer) => answer!.edges)[0]?.cursor;
      if (cursor !== undefined && !own.has(cursor)) await refused({ after: cursor }, '/after');
    }
  });

  it('takes a cursor of its own, and refuses it below another parent', async () => {
    const cursors = await cursorsOf();
    const at = cursors.findIndex((list) => list.length > 1);
    expect(at, 'a parent with two rows').toBeGreaterThanOrEqual(0);
    const [first, second] = cursors[at]!;
    const { answers, errors } = await ask(connection, { first: 1, after: first! });
    expect(answers.map((answer) => answer?.edges.map(({ cursor }) => cursor))).toEqual(cursors.map((_, index) => (index === at ? [second] : undefined)));
    expect(errors).toEqual(cursors.slice(1).map(() => refusal('/after')));
  });
});

it('the cursor of a row that is hidden is like that of none', async () => {
  const agents = connections.find(({ parent, field }) => parent === 'Namespace' && field === 'agents')!;
  const [hidden, shown] = (await ask(agents, {})).answers[0]!.edges.map(({ cursor }) => cursor);
  const { key } = await world.addPrincipal([
    { action: 'read', resourceKind: 'namespace', namespaceId },
    { action: 'read', resourceKind: 'agent', namespaceId, resourceId: shown! },
  ]);
  expect((await ask(agents, {}, key)).answers[0]).toMatchObject({ edges: [{ cursor: shown }], pageInfo: { hasNextPage: false } });
  expect((await ask(agents, { after: hidden! }, key)).errors).toEqual([refusal('/after')]);
  expect((await ask(agents, { after: newId('agt') }, key)).errors).toEqual([refusal('/after')]);
  expect((await ask(agents, { after: shown! }, key)).errors).toEqual([]);
});

it('a Restriction in one Namespace does not let through what another one shows', async () => {
  const agents = connections.find(({ parent, field }) => parent === 'Namespace' && field === 'agents')!;
  const lists = (await ask(agents, {})).answers.map((answer) => answer!.edges.map(({ cursor }) => cursor));
  // A grant on an Agent in whatever Namespace, restricted in its own.
  const { key } = await world.addPrincipal([{ action: 'read', resourceKind: 'namespace' }, { action: 'read', resourceKind: 'agent', resourceId: lists[0]![0]! }]);
  expect((await ask(agents, {}, key)).answers.map((answer) => answer!.edges.length)).toEqual([1, 0, 0]);
  await world.restrict({ action: 'read', resourceKind: 'agent', namespaceId });
  expect((await ask(agents, {}, key)).answers.map((answer) => answer!.edges.length)).toEqual([0, 0, 0]);
});
