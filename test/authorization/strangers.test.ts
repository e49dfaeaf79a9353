/** Whoever was granted nothing is refused everywhere; whoever was granted one thing may do that and nothing else. Both walk the routes and fields themselves, so that no new one is forgotten. */
import type { GraphQLObjectType } from 'graphql';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { schema } from '../../schema/index.ts';
import { routes } from '../../src/http/rest/routes.ts';
import { edges, send, sendGraphql, useCases as use, type Answer, type EdgeName, type UseCase } from '../support/use-cases.ts';
import { asked, existing, invented, sibling, type Targets } from './asked.ts';
import { createFixture, expectDenied, judged, type Actor, type Fixture } from './fixture.ts';

/** What a key may ask for; the routes of people alone have tests of their own. */
const operationIds = routes.filter(({ access }) => access === undefined).map(({ operationId }) => operationId);

let fixture: Fixture;
let stranger: Actor;
beforeAll(async () => {
  fixture = await createFixture();
});
// One for all would come to the limit of denials.
beforeEach(async () => {
  stranger = await fixture.actor(fixture.names, []);
});
afterAll(() => fixture?.close());

const ask = (edge: EdgeName, useCase: UseCase, actor: Actor): Promise<Answer> => send(edge, fixture.application.origin, useCase, actor.key);
/** What a caller is told, without what names the request. */
const told = ({ status, code, message, details, data }: Answer) => ({ status, code, message, details, data });

describe('a principal without grants', () => {
  it.each(operationIds)('is refused by the route %s, whether what it asks for exists or not', async (operationId) => {
    const route = routes.find((one) => one.operationId === operationId)!;
    const answers = [];
    for (const targets of [existing, invented]) {
      const { useCase, refused } = asked(fixture.names, targets)[operationId] ?? expect.fail(`No request is known for ${route.method} ${route.path}`);
      expect(useCase.rest.method).toBe(route.method);
      expect(useCase.rest.path).toMatch(new RegExp(`^${route.path.replaceAll(/:\w+/g, '[^/]+')}$`));
      const answer = await ask('REST', useCase, stranger);
      if (refused === undefined) expect({ data: answer.data, audit: await fixture.audit(answer) }).toEqual({ data: [], audit: [] });
      else await expectDenied(fixture, answer, useCase.action.REST, judged(fixture.names, stranger.id, refused));
      answers.push(told(answer));
    }
    expect(answers[1]).toEqual(answers[0]);
  });

  const refusal = '{ ... on Refusal { __typename code message status details { path code } } }';

  /** Every root field, by raw ids alone: the caller says nothing about places, but for policy, whose ids are found in one Namespace only. */
  const documents: Readonly<Record<string, readonly [document: string, name?: keyof Targets, typename?: string]>> = {
    agent: ['query($id: ID!) { agent(id: $id) { name } }', 'g'],
    agentRevision: ['query($id: ID!) { agentRevision(id: $id) { revision } }', 'r'],
    auditEvents: ['query($id: ID!) { auditEvents(filter: { namespaceId: $id }) { nodes { type } } }', 'n'],
    configuration: ['query($id: ID!) { configuration(id: $id) { generation } }', 'c'],
    deployment: ['query($id: ID!) { deployment(id: $id) { status } }', 'r'],
    eventHistory: ['query($id: ID!) { eventHistory(filter: { namespaceId: $id }) { nodes { type } } }', 'n'],
    installation: ['{ installation { name } }'],
    namespace: ['query($id: ID!) { namespace(id: $id) { name } }', 'n'],
    namespaces: ['{ namespaces { nodes { name } pageInfo { hasNextPage endCursor } } }'],
    node: ['query($id: ID!) { node(id: $id) { id } }', 'g', 'Agent'],
    nodes: ['query($id: ID!) { nodes(ids: [$id]) { id } }', 'n', 'Namespace'],
    createAgent: ['mutation($id: ID!) { createAgent(input: { namespaceId: $id, name: "a", configurationId: "cfg_00000000-0000-4000-8000-000000000000" }) { ... on Refusal { __typename code message status details { path code } } } }', 'n'],
    createConfiguration: ['mutation($id: ID!) { createConfiguration(input: { namespaceId: $id, kind: agent, values: {} }) { ... on Refusal { __typename code message status details { path code } } } }', 'n'],
    createNamespace: ['mutation { createNamespace(input: { name: "a" }) { ... on Refusal { __typename code message status details { path code } } } }'],
    ...Object.fromEntries(
      (
        [
          ['deleteAgent', 'g', ''],
          ['deleteConfiguration', 'c', ''],
          ['deleteNamespace', 'n', ''],
          ['deployAgent', 'g', ''],
          ['stopAgent', 'g', ''],
          ['updateAgent', 'g', ', configurationId: "cfg_00000000-0000-4000-8000-000000000000"'],
          ['updateConfiguration', 'c', ', values: {}'],
        ] as const
      ).map(([field, name, more]) => [field, [`mutation($id: ID!) { ${field}(input: { id: $id${more} }) { ... on Refusal { __typename code message status details { path code } } } }`, name]]),
    ),
    role: ['query($id: ID!, $namespaceId: ID) { role(id: $id, namespaceId: $namespaceId) { name } }', 'role'],
    accessBinding: ['query($id: ID!, $namespaceId: ID) { accessBinding(id: $id, namespaceId: $namespaceId) { roleId } }', 'binding'],
    createRole: [`mutation($id: ID!) { createRole(input: { namespaceId: $id, permissions: [{ action: "read", resourceKind: "agent" }] }) ${refusal} }`, 'n'],
    createAccessBinding: [`mutation($id: ID!, $namespaceId: ID!) { createAccessBinding(input: { namespaceId: $namespaceId, subjectId: "spn_1", roleId: "role_1", resourceKind: agent, resourceId: $id }) ${refusal} }`, 'g'],
    createServicePrincipal: [`mutation($id: ID!) { createServicePrincipal(input: { namespaceId: $id }) ${refusal} }`, 'n'],
    deleteRole: [`mutation($id: ID!, $namespaceId: ID) { deleteRole(input: { id: $id, namespaceId: $namespaceId }) ${refusal} }`, 'role'],
    deleteAccessBinding: [`mutation($id: ID!, $namespaceId: ID) { deleteAccessBinding(input: { id: $id, namespaceId: $namespaceId }) ${refusal} }`, 'binding'],
    issueServiceKey: [`mutation($id: ID!) { issueServiceKey(input: { servicePrincipalId: $id, name: "a" }) ${refusal} }`, 'principal'],
    revokeServiceKey: [`mutation($id: ID!) { revokeServiceKey(input: { keyId: $id }) ${refusal} }`, 'key'],
    agentChanged: ['subscription($id: ID!) { agentChanged(id: $id) { status } }', 'g'],
    historyAppended: ['subscription($id: ID!) { historyAppended(filter: { namespaceId: $id }) { type } }', 'n'],
    diagnoseAgentDeployment: [`mutation($id: ID!) { diagnoseAgentDeployment(input: { id: $id }) ${refusal} }`, 'r'],
    deploymentChanged: ['subscription($id: ID!) { deploymentChanged(id: $id) { status } }', 'r'],
  };

  const fields = [schema.getQueryType()!, schema.getMutationType()!, schema.getSubscriptionType()!].flatMap((type: GraphQLObjectType) => Object.keys(type.getFields()));

  const askField = async (field: string, targets: Targets): Promise<Answer> => {
    const [document, name, typename] = documents[field] ?? expect.fail(`No document is known for the field ${field}`);
    const { names, application } = fixture;
    const raw = name === undefined ? '' : names[targets[name]]!;
    const key = name === 'g' ? `${names['N1']}/${raw}` : raw;
    const named = name === undefined ? {} : { id: typename === undefined ? raw : Buffer.from(`${typename}:${key}`).toString('base64') };
    const variables = document.includes('$namespaceId') ? { ...named, namespaceId: names[targets.n] } : named;
    if (document.startsWith('subscription')) return subscribe(application.origin, document, variables);
    return sendGraphql(application.origin, { document, variables, at: [field] }, { 'x-api-key': stranger.key });
  };

  const subscribe = async (origin: string, query: string, variables: object): Promise<Answer> => {
    const response = await fetch(`${origin}/graphql`, {
      method: 'POST',
      headers: { 'x-api-key': stranger.key, 'content-type': 'application/json', accept: 'text/event-stream' },
      body: JSON.stringify({ query, variables }),
    });
    const text = await response.text();
    const data = /^data: (\{.*)$/m.exec(text)?.[1] ?? text;
    const { errors } = JSON.parse(data) as { errors: { message: string; extensions: { code: string; status: number } }[] };
    const { message, extensions } = errors[0]!;
    return { ...extensions, message, details: [], requestId: response.headers.get('x-request-id')!, data: null };
  };

  it.each(fields)('is refused by the field %s, whether what it asks for exists or not', async (field) => {
    const answers = [];
    for (const targets of [existing, invented]) {
      const answer = await askField(field, targets);
      const records = await fixture.audit(answer);
      answers.push(told(answer));
      if (field === 'namespaces') {
        expect(answer.data).toEqual({ nodes: [], pageInfo: { hasNextPage: false, endCursor: null } });
        continue;
      }
      expect(told(answer)).toEqual({ status: 403, code: 'FORBIDDEN', message: 'You do not have permission for this operation', details: [], data: null });
      expect(records).toHaveLength(1);
      expect(records[0]).toMatchObject({ kind: 'authorization_denial', outcome: 'denied', authorization: { principalId: stranger.id } });
    }
    expect(answers[1]).toEqual(answers[0]);
  });

  it('is judged once for every alias', async () => {
    const { names, application } = fixture;
    const document = 'query($a: ID!, $b: ID!) { a: agent(id: $a) { name } b: agent(id: $b) { name } c: namespace(id: $a) { name } }';
    const answer = await sendGraphql(application.origin, { document, variables: { a: names['G1'], b: names['G0'] }, at: ['a'] }, { 'x-api-key': stranger.key });
    expect((await fixture.audit(answer)).map(({ authorization }) => authorization?.resource.id).toSorted()).toEqual([names['G1'], names['G0']].toSorted());
  });

  /** Inputs that a check of ours refuses: whether the resource exists must not decide which check comes first. */
  it.each([
    ['updateAgent', 'g', 'configurationId: "cfg_1"', 'INVALID_REQUEST'],
    ['updateAgent', 'g', 'configurationId: "cfg_00000000-0000-4000-8000-000000000000", harnessAuth: { method: "credential_source", sourceId: "cs_1" }', 'FORBIDDEN'],
    ['updateConfiguration', 'c', 'values: []', 'INVALID_REQUEST'],
    ['updateConfiguration', 'c', 'values: { env: { MY_TOKEN: "literal" } }', 'FORBIDDEN'],
    ['deployAgent', 'g', 'idempotencyKey: "short"', 'INVALID_REQUEST'],
  ] as const)('an input of %s that is refused tells nothing of the %s it names: %s', async (field, name, more, code) => {
    const { names, application } = fixture;
    const document = `mutation($id: ID!) { ${field}(input: { id: $id, ${more} }) { ... on Refusal { __typename code message status details { path code } } } }`;
    const answers = [];
    for (const targets of [existing, invented]) answers.push(told(await sendGraphql(application.origin, { document, variables: { id: names[targets[name]]! }, at: [field] }, { 'x-api-key': stranger.key })));
    expect(answers[0]?.code).toBe(code);
    expect(answers[1]).toEqual(answers[0]);
  });

  it('with a Namespace of its own learns nothing of a revision in another one', async () => {
    const { names, application } = fixture;
    const actor = await fixture.actor(names, ['agent_revision:read@N2']);
    const answers = [];
    for (const revision of ['R1', 'XR']) {
      const document = 'query($id: ID!, $namespaceId: ID) { agentRevision(id: $id, namespaceId: $namespaceId) { revision } }';
      answers.push(told(await sendGraphql(application.origin, { document, variables: { id: names[revision]!, namespaceId: names['N2']! }, at: ['agentRevision'] }, { 'x-api-key': actor.key })));
    }
    expect(answers.map((answer) => answer.code)).toEqual(['NOT_FOUND', 'NOT_FOUND']);
  });
});

describe('a principal with one exact grant', () => {
  /** What each grant alone is enough for; a command that needs another one as well is not enough. */
  const enough: readonly (readonly [grant: string, allowed: readonly string[]])[] = [
    ['installation:read', ['getInstallation']],
    ['installation:administer', []],
    ['namespace:create', ['createNamespace']],
    ['namespace:read=N1', ['getNamespace', 'listAgents']],
    ['namespace:delete=N1', ['deleteNamespace']],
    ['configuration:read=C1', ['getConfiguration']],
    ['configuration:update=C1', ['updateConfiguration']],
    ['configuration:delete=C1', ['deleteConfiguration']],
    ['agent:create=G1', []],
    ['agent:read=G1', ['getAgent', 'listAgentRevisions']],
    ['agent:update=G1', []],
    ['agent:deploy=G1', []],
    ['agent:administer=G1', []],
    ['agent:operate=G1', ['stopAgent']],
    ['agent_revision:read=R1', ['getAgentRevision', 'getAgentDeployment']],
    ['agent_revision:read=G1', []],
    ['agent:delete=G1', ['deleteAgent']],
  ];

  it.each(enough)('%s', async (grant, allowed) => {
    const { names } = fixture;
    const actor = await fixture.actor(names, [grant]);
    for (const edge of edges) {
      const reached: string[] = [];
      for (const [operationId, { useCase, refused }] of Object.entries(asked(names, existing))) {
        const answer = await ask(edge, edge === 'GraphQL' && operationId === 'createNamespace' ? use.createNamespace({ name: 'asked again' }) : useCase, actor);
        if (refused === undefined) expect((answer.data as { id: string }[]).map(({ id }) => id)).toEqual(grant === 'namespace:read=N1' ? [names['N1']] : []);
        else if (answer.code !== 'FORBIDDEN') reached.push(operationId);
        else expect(await fixture.audit(answer)).toHaveLength(1);
      }
      expect({ edge, reached }).toEqual({ edge, reached: operationIds.filter((operationId) => allowed.includes(operationId)) });
      for (const operationId of allowed) {
        if (['getInstallation', 'createNamespace'].includes(operationId)) continue;
        expect((await ask(edge, asked(names, sibling)[operationId]!.useCase, actor)).code).toBe('FORBIDDEN');
      }
    }
  });

  const ofPolicy = ['listRoles', 'createRole', 'getRole', 'deleteRole', 'listAccessBindings', 'createAccessBinding', 'getAccessBinding', 'deleteAccessBinding', 'createServicePrincipal', 'issueServiceKey', 'revokeServiceKey'];

  it('every route is among them, or needs more than one, or a person', () => {
    const reachedAlone = enough.flatMap(([, allowed]) => allowed);
    expect(operationIds.filter((operationId) => !reachedAlone.includes(operationId)).toSorted()).toEqual(
      [...['createAgent', 'createConfiguration', 'deployAgent', 'diagnoseAgentDeployment', 'getAgentNativeAdmin', 'listNamespaces', 'updateAgent'], ...ofPolicy].toSorted(),
    );
  });

  it('the history of a Namespace takes audit:read there', async () => {
    const { names, application } = fixture;
    const actor = await fixture.actor(names, ['audit:read@N1']);
    const history = (filter: object) =>
      sendGraphql(application.origin, { document: 'query($filter: HistoryFilter) { eventHistory(filter: $filter, first: 100) { nodes { namespaceId } } }', variables: { filter }, at: ['eventHistory', 'nodes'] }, { 'x-api-key': actor.key });
    const seen = (await history({ namespaceId: names['N1'] })).data as { namespaceId: string }[];
    expect(new Set(seen.map(({ namespaceId }) => namespaceId))).toEqual(new Set([names['N1']]));
    for (const filter of [{}, { namespaceId: names['N2'] }]) expect((await history(filter)).code).toBe('FORBIDDEN');
  });
});

describe('pages', () => {
  const page = (actor: Actor, args: string, namespace: string) =>
    sendGraphql(
      fixture.application.origin,
      { document: `query($id: ID!) { namespace(id: $id) { agents(${args}) { nodes { agentId } pageInfo { hasNextPage endCursor } } } }`, variables: { id: namespace }, at: ['namespace', 'agents'] },
      { 'x-api-key': actor.key },
    );

  it('count and continue with what may be seen only', async () => {
    const { names } = fixture;
    const actor = await fixture.actor(names, ['namespace:read=N1', 'agent:read=G0', 'agent:read=GS']);
    const first = (await page(actor, 'first: 1', names['N1']!)).data as { pageInfo: { endCursor: string } };
    expect(first).toEqual({ nodes: [{ agentId: names['G0'] }], pageInfo: { hasNextPage: true, endCursor: first.pageInfo.endCursor } });
    const second = (await page(actor, `first: 1, after: "${first.pageInfo.endCursor}"`, names['N1']!)).data;
    expect(second).toMatchObject({ nodes: [{ agentId: names['GS'] }], pageInfo: { hasNextPage: false } });
  });

  it.each([
    ['exact grants', ['namespace:read=N1', 'agent:read=G0', 'agent:read=GS'], 'G1'],
    ['a grant in the Namespace', ['namespace:read=N1', 'agent:read@N1'], 'GX'],
  ])('a cursor at a hidden Agent is like one at an Agent that is not: %s', async (_, grants, hidden) => {
    const { names } = fixture;
    const actor = await fixture.actor(names, grants);
    await fixture.fresh();
    const [atHidden, atNothing] = [await page(actor, `after: "${names[hidden]}"`, names['N1']!), await page(actor, `after: "${names['XG']}"`, names['N1']!)];
    expect(told(atHidden)).toEqual(told(atNothing));
  });

  it('a Namespace that a Restriction hides is in no list', async () => {
    const { names, operator } = fixture;
    const actor = await fixture.actor(names, ['namespace:read']);
    const restrictionId = await operator.restrict({ action: 'read', resourceKind: 'namespace' }, { namespaceId: names['N2']! });
    for (const edge of edges) {
      const listed = ((await ask(edge, use.listNamespaces(), actor)).data as { id: string }[]).map(({ id }) => id);
      expect(listed).toContain(names['N1']);
      expect(listed).not.toContain(names['N2']);
    }
    await operator.unrestrict(restrictionId);
  });
});
