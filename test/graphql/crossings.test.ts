/**
 * Every field that yields another resource, found by walking the schema: judged as its own reference where it is one
 * resource, filtered before it is paged where it is many, free where it is what a command has just made. A field without
 * a row here fails. (iam-auth-audit 2.5, 8.4)
 */
import { getNamedType, isInterfaceType, isObjectType, type GraphQLNamedType, type GraphQLObjectType } from 'graphql';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { schema } from '../../schema/index.ts';
import { agents, iam } from '../../src/aggregates.ts';
import { newId } from '../../src/kernel/ids.ts';
import { workKey } from '../../src/kernel/work.ts';
import { createAgent, createConfiguration, createNamespace, deployAgent } from './fixture.ts';
import { HistoryDocument } from './operations.generated.ts';
import { createWorld, type Answer, type GrantSpec, type World } from './world.ts';

type Grant = readonly [permission: `${string}:${string}`, resourceId?: string];

/** The names of what the rows ask about; filled before they run. */
const known = { namespace: '', configuration: '', agent: '', agentKey: '', revision: '', event: '', role: '', binding: '', subject: '', otherAgents: ['', ''], doomed: { agent: '', configuration: '', namespace: '' } };
let world: World;

interface Row {
  /** What it takes to come to the field: on the way, or to run the command. */
  readonly reach: () => readonly Grant[];
  readonly document: () => string;
  readonly at: readonly (string | number)[];
  /** The one permission the field itself takes; without one it is the resource a command answers with. */
  readonly takes?: () => Grant;
  /** How the audit names its denial; without it, it is a list that hides what may not be read. */
  readonly denial?: string;
}

const ns = (): Grant => ['namespace:read', known.namespace];
const cfg = (): Grant => ['configuration:read', known.configuration];
const agt = (): Grant => ['agent:read', known.agent];
const adm = (): Grant => ['installation:administer'];
const rev = (): Grant => ['agent_revision:read', known.revision];
const agentField = (selection: string) => () => `{ agent(id: "${known.agentKey}") { ${selection} } }`;
const revisionField = (selection: string) => () => `{ agentRevision(id: "${known.revision}", namespaceId: "${known.namespace}", agentId: "${known.agent}") { ${selection} } }`;
const deploymentField = (selection: string) => () => `{ deployment(id: "${known.revision}", namespaceId: "${known.namespace}", agentId: "${known.agent}") { ${selection} } }`;
const globalId = (type: string, ...ids: readonly string[]) => Buffer.from(`${type}:${ids.join('/')}`).toString('base64');
/** A command whose answer is asked for, and a crossing inside it, which is judged. */
const command = (name: string, input: () => object, payload: string, field: string, crossing = 'namespace') => () => {
  const text = Object.entries(input()).map(([member, value]) => `${member}: ${JSON.stringify(value)}`).join(', ');
  return `mutation { ${name}(input: { ${text} }) { ... on ${payload} { ${field} { __typename ${crossing === '' ? '' : `${crossing} { __typename }`} } } ... on Refusal { code message } } }`;
};
const inNamespace = () => ({ namespaceId: known.namespace });

const rows: Readonly<Record<string, Row>> = {
  'Agent.namespace': { reach: () => [agt()], document: agentField('namespace { name }'), at: ['agent', 'namespace'], takes: ns, denial: 'openclaw.namespaces.read' },
  'Agent.configuration': { reach: () => [agt()], document: agentField('configuration { generation }'), at: ['agent', 'configuration'], takes: cfg, denial: 'openclaw.configurations.read' },
  'Agent.activeRevision': { reach: () => [agt()], document: agentField('activeRevision { revision }'), at: ['agent', 'activeRevision'], takes: rev, denial: 'openclaw.agent_revisions.read' },
  'Agent.latestDeployment': { reach: () => [agt()], document: agentField('latestDeployment { status }'), at: ['agent', 'latestDeployment'], takes: rev, denial: 'openclaw.agent_deployments.read' },
  'Agent.revisions': { reach: () => [agt()], document: agentField('revisions { nodes { revisionId } edges { cursor } pageInfo { hasNextPage hasPreviousPage startCursor endCursor } }'), at: ['agent', 'revisions'], takes: rev },
  'Agent.history': {
    reach: () => [['agent:operate']],
    document: command('stopAgent', () => ({ ...inNamespace(), id: known.otherAgents[0]! }), 'StopAgentPayload', 'agent', 'history'),
    at: ['stopAgent', 'agent', 'history'],
    takes: () => ['agent:read'],
    denial: 'openclaw.audit.read',
  },
  'AgentRevision.agent': { reach: () => [rev()], document: revisionField('agent { name }'), at: ['agentRevision', 'agent'], takes: agt, denial: 'openclaw.agents.read' },
  'AgentRevision.savedConfiguration': { reach: () => [rev()], document: revisionField('savedConfiguration { generation }'), at: ['agentRevision', 'savedConfiguration'], takes: cfg, denial: 'openclaw.configurations.read' },
  'AgentRevision.deployment': {
    reach: () => [['agent:deploy'], cfg()],
    document: command('deployAgent', () => ({ ...inNamespace(), id: known.otherAgents[0]! }), 'DeployAgentPayload', 'revision', 'deployment'),
    at: ['deployAgent', 'revision', 'deployment'],
    takes: () => ['agent_revision:read'],
    denial: 'openclaw.agent_deployments.read',
  },
  'Deployment.agent': { reach: () => [rev()], document: deploymentField('agent { name }'), at: ['deployment', 'agent'], takes: agt, denial: 'openclaw.agents.read' },
  // Shares its id and so its permission with the Deployment that leads to it.
  'Deployment.revision': { reach: () => [agt()], document: agentField('latestDeployment { revision { revision } }'), at: ['agent', 'latestDeployment'], takes: rev, denial: 'openclaw.agent_deployments.read' },
  'Configuration.namespace': { reach: () => [cfg()], document: () => `{ configuration(id: "${known.configuration}") { namespace { name } } }`, at: ['configuration', 'namespace'], takes: ns, denial: 'openclaw.namespaces.read' },
  'Namespace.agents': { reach: () => [ns()], document: () => `{ namespace(id: "${known.namespace}") { agents(first: 1) { nodes { agentId } edges { cursor } pageInfo { hasNextPage hasPreviousPage startCursor endCursor } } } }`, at: ['namespace', 'agents'], takes: agt },
  'Namespace.history': { reach: () => [ns()], document: () => `{ namespace(id: "${known.namespace}") { history { nodes { type } } } }`, at: ['namespace', 'history'], takes: () => ['audit:read'], denial: 'openclaw.audit.read' },

  'Namespace.roles': { reach: () => [ns()], document: () => `{ namespace(id: "${known.namespace}") { roles { nodes { roleId } } } }`, at: ['namespace', 'roles'], takes: adm, denial: 'openclaw.iam.roles.list' },
  'Namespace.accessBindings': { reach: () => [ns()], document: () => `{ namespace(id: "${known.namespace}") { accessBindings { nodes { bindingId } } } }`, at: ['namespace', 'accessBindings'], takes: adm, denial: 'openclaw.iam.access_bindings.list' },

  'Query.accessBinding': { reach: () => [ns()], document: () => `{ accessBinding(id: "${known.binding}", namespaceId: "${known.namespace}") { roleId } }`, at: ['accessBinding'], takes: adm, denial: 'openclaw.iam.access_bindings.read' },
  'Query.role': { reach: () => [ns()], document: () => `{ role(id: "${globalId('Role', known.namespace, known.role)}") { permissions { action } } }`, at: ['role'], takes: adm, denial: 'openclaw.iam.roles.read' },
  'Query.agent': { reach: () => [], document: agentField('name'), at: ['agent'], takes: agt, denial: 'openclaw.agents.read' },
  'Query.agentRevision': { reach: () => [], document: revisionField('revision'), at: ['agentRevision'], takes: rev, denial: 'openclaw.agent_revisions.read' },
  'Query.configuration': { reach: () => [], document: () => `{ configuration(id: "${known.configuration}") { generation } }`, at: ['configuration'], takes: cfg, denial: 'openclaw.configurations.read' },
  'Query.deployment': { reach: () => [], document: deploymentField('status'), at: ['deployment'], takes: rev, denial: 'openclaw.agent_deployments.read' },
  'Query.namespace': { reach: () => [], document: () => `{ namespace(id: "${known.namespace}") { name } }`, at: ['namespace'], takes: ns, denial: 'openclaw.namespaces.read' },
  'Query.namespaces': { reach: () => [], document: () => '{ namespaces { nodes { namespaceId } edges { cursor } pageInfo { hasNextPage hasPreviousPage startCursor endCursor } } }', at: ['namespaces'], takes: ns },
  'Query.node': { reach: () => [], document: () => `{ node(id: "${globalId('Configuration', known.namespace, known.configuration)}") { id } }`, at: ['node'], takes: cfg, denial: 'openclaw.configurations.read' },
  'Query.nodes': { reach: () => [], document: () => `{ nodes(ids: ["${globalId('Agent', known.namespace, known.agent)}"]) { id } }`, at: ['nodes', 0], takes: agt, denial: 'openclaw.agents.read' },
  'Query.eventHistory': { reach: () => [], document: () => `{ eventHistory(filter: { namespaceId: "${known.namespace}" }) { nodes { type } } }`, at: ['eventHistory'], takes: () => ['audit:read'], denial: 'openclaw.audit.read' },
  'Subscription.deploymentChanged': { reach: () => [], document: () => `subscription { deploymentChanged(id: "${known.revision}", namespaceId: "${known.namespace}", agentId: "${known.agent}") { status } }`, at: ['deploymentChanged'], takes: rev, denial: 'openclaw.agent_deployments.read' },
  'Subscription.agentChanged': { reach: () => [], document: () => `subscription { agentChanged(id: "${known.agentKey}") { name } }`, at: ['agentChanged'], takes: agt, denial: 'openclaw.agents.read' },
  'Subscription.historyAppended': {
    reach: () => [],
    document: () => `subscription { historyAppended(after: "${known.event}", filter: { namespaceId: "${known.namespace}" }) { type } }`,
    at: ['historyAppended'],
    takes: () => ['audit:read'],
    denial: 'openclaw.audit.read',
  },

  'CreateAgentPayload.agent': { reach: () => [['agent:create'], cfg()], document: command('createAgent', () => ({ ...inNamespace(), name: 'made blindly', configurationId: known.configuration }), 'CreateAgentPayload', 'agent'), at: ['createAgent', 'agent'] },
  'UpdateAgentPayload.agent': { reach: () => [['agent:update'], cfg()], document: command('updateAgent', () => ({ ...inNamespace(), id: known.doomed.agent, configurationId: known.configuration }), 'UpdateAgentPayload', 'agent'), at: ['updateAgent', 'agent'] },
  'StopAgentPayload.agent': { reach: () => [['agent:operate']], document: command('stopAgent', () => ({ ...inNamespace(), id: known.doomed.agent }), 'StopAgentPayload', 'agent'), at: ['stopAgent', 'agent'] },
  'DeployAgentPayload.revision': { reach: () => [['agent:deploy'], cfg()], document: command('deployAgent', () => ({ ...inNamespace(), id: known.otherAgents[0]! }), 'DeployAgentPayload', 'revision', 'agent'), at: ['deployAgent', 'revision'] },
  'DeleteAgentPayload.agent': { reach: () => [['agent:delete']], document: command('deleteAgent', () => ({ ...inNamespace(), id: known.doomed.agent }), 'DeleteAgentPayload', 'agent'), at: ['deleteAgent', 'agent'] },
  'CreateConfigurationPayload.configuration': {
    reach: () => [['configuration:create']],
    document: () => `mutation { createConfiguration(input: { namespaceId: "${known.namespace}", kind: agent, values: {} }) { ... on CreateConfigurationPayload { configuration { __typename namespace { __typename } } } ... on Refusal { code } } }`,
    at: ['createConfiguration', 'configuration'],
  },
  'UpdateConfigurationPayload.configuration': {
    reach: () => [['configuration:update']],
    document: () => `mutation { updateConfiguration(input: { id: "${known.doomed.configuration}", namespaceId: "${known.namespace}", values: {} }) { ... on UpdateConfigurationPayload { configuration { __typename namespace { __typename } } } ... on Refusal { code } } }`,
    at: ['updateConfiguration', 'configuration'],
  },
  'CreateRolePayload.role': {
    reach: () => [adm(), ns()],
    document: () => `mutation { createRole(input: { namespaceId: "${known.namespace}", permissions: [{ action: "read", resourceKind: "agent" }] }) { ... on CreateRolePayload { role { __typename } } ... on Refusal { code message } } }`,
    at: ['createRole', 'role'],
  },
  'CreateAccessBindingPayload.accessBinding': {
    reach: () => [adm(), ns(), agt()],
    document: () => `mutation { createAccessBinding(input: { namespaceId: "${known.namespace}", subjectId: "${known.subject}", roleId: "${known.role}", resourceKind: agent, resourceId: "${known.agent}" }) { ... on CreateAccessBindingPayload { accessBinding { __typename } } ... on Refusal { code message } } }`,
    at: ['createAccessBinding', 'accessBinding'],
  },
  'CreateNamespacePayload.namespace': { reach: () => [['namespace:create']], document: command('createNamespace', () => ({ name: 'made-blindly' }), 'CreateNamespacePayload', 'namespace', ''), at: ['createNamespace', 'namespace'] },
  'DeleteNamespacePayload.namespace': { reach: () => [['namespace:delete', known.doomed.namespace]], document: command('deleteNamespace', () => ({ id: known.doomed.namespace }), 'DeleteNamespacePayload', 'namespace', ''), at: ['deleteNamespace', 'namespace'] },
};

beforeAll(async () => {
  world = await createWorld();
  ({ namespaceId: known.namespace } = await createNamespace(world, 'main'));
  ({ namespaceId: known.doomed.namespace } = await createNamespace(world, 'doomed'));
  ({ configurationId: known.configuration } = await createConfiguration(world, known.namespace));
  ({ configurationId: known.doomed.configuration } = await createConfiguration(world, known.namespace));
  const made = async (name: string) => createAgent(world, known.namespace, known.configuration, name);
  const first = await made('first');
  const agent = await made('crab');
  const last = await made('last');
  ({ agentId: known.doomed.agent } = await made('doomed'));
  known.agent = agent.agentId;
  known.agentKey = agent.id;
  known.otherAgents = [first.agentId, last.agentId];
  const { revisionId } = await deployAgent(world, agent.id);
  known.revision = revisionId;
  known.role = newId('role');
  known.binding = newId('bnd');
  known.event = (await world.send(HistoryDocument, { first: 1, filter: { namespaceId: known.namespace } })).data.eventHistory!.nodes[0]!.eventId;
  const claim = { workKey: workKey.deployment(revisionId), claimToken: 'test' };
  const system = { actor: { principalId: 'system', kind: 'system' }, requestId: null, correlationId: 'test', causationId: null, policyRevision: null } as const;
  known.subject = (await world.streams.load(iam, '')).state.principalOfAgent.get(agent.agentId)!;
  const role = { roleId: known.role, namespaceId: known.namespace, permissions: [{ action: 'read', resourceKind: 'agent' }] };
  await world.streams.execute(iam, '', { type: 'CreateRole', role }, system);
  const binding = { bindingId: known.binding, namespaceId: known.namespace, subjectKind: 'identity', subjectId: known.subject, roleId: known.role, resourceKind: 'agent', resourceId: known.agent } as const;
  await world.streams.execute(iam, '', { type: 'BindResource', binding }, system);
  await world.streams.execute(agents, agent.agentId, { type: 'SelectRevision', claim, revisionId, expectedActiveRevisionId: null }, system);
});
afterAll(() => world.close());

const specOf = ([permission, resourceId]: Grant): GrantSpec => {
  const [resourceKind = '', action = ''] = permission.split(':');
  const everywhere = permission === 'namespace:create' || permission === 'installation:administer';
  const isNamespace = resourceKind === 'namespace' && resourceId !== undefined;
  return { resourceKind, action, ...(!everywhere && { namespaceId: isNamespace ? resourceId : known.namespace }), ...(resourceId !== undefined && !isNamespace && { resourceId }) };
};

const ask = async (document: string, grants: readonly Grant[]) => {
  const { key } = await world.addPrincipal(grants.map(specOf));
  const isStream = document.startsWith('subscription');
  const leaving = new AbortController();
  const response = await fetch(world.edge.endpoint, {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'x-api-key': key, ...(isStream && { accept: 'text/event-stream' }) },
    body: JSON.stringify({ query: document }),
    signal: leaving.signal,
  });
  const read = async (): Promise<string> => {
    if (!isStream) return response.text();
    let text = '';
    for await (const chunk of response.body!.pipeThrough(new TextDecoderStream())) {
      text += chunk;
      const found = /^data: (\{.*)$/m.exec(text)?.[1];
      if (found !== undefined) return found;
    }
    throw new Error(`A stream without a result: ${text}`);
  };
  const { data, errors = [] } = JSON.parse(await read()) as Answer<unknown>;
  leaving.abort();
  return { data, errors: errors.map(({ path, extensions: { code } }) => ({ path, code })), denials: await world.denialsOf(response.headers.get('x-request-id')!) };
};

const at = (data: unknown, path: readonly (string | number)[]): unknown => path.reduce<unknown>((value, step) => (value as Record<string | number, unknown> | null | undefined)?.[step], data);

const isNode = (type: GraphQLNamedType): boolean => (isObjectType(type) ? type.getInterfaces().some(({ name }) => name === 'Node') : isInterfaceType(type) && type.name === 'Node');
const isConnection = (type: GraphQLNamedType): type is GraphQLObjectType => isObjectType(type) && 'pageInfo' in type.getFields();
const isEdge = (type: GraphQLObjectType): boolean => Object.keys(type.getFields()).sort().join() === 'cursor,node';
const yieldsResource = (type: GraphQLNamedType): boolean => isNode(isConnection(type) ? getNamedType(type.getFields()['nodes']!.type) : type);

it('every field of the schema that yields a resource has a row, and every row a field', () => {
  const crossings = Object.values(schema.getTypeMap())
    .filter((type): type is GraphQLObjectType => isObjectType(type) && !type.name.startsWith('__') && !isConnection(type) && !isEdge(type))
    .flatMap((type) => Object.values(type.getFields()).filter((field) => yieldsResource(getNamedType(field.type))).map(({ name }) => `${type.name}.${name}`));
  expect(Object.keys(rows).sort()).toEqual(crossings.sort());
});

const list = Object.entries(rows);

describe('one resource: null and one error without its permission, the resource with it', () => {
  it.each(list.filter(([, { denial }]) => denial !== undefined))('%s', async (_, { reach, document, at: path, takes, denial }) => {
    const without = await ask(document(), reach());
    expect(at(without.data, path) ?? null).toBeNull();
    expect(without.errors).toEqual([{ path, code: 'FORBIDDEN' }]);
    expect(without.denials).toEqual([denial]);
    const within = await ask(document(), [...reach(), takes!()]);
    expect(within).toMatchObject({ errors: [], denials: [] });
    expect(at(within.data, path)).toEqual(expect.any(Object));
  });
});

describe('a list: what may not be read is not there, in no count, cursor or size, and leaves no denial', () => {
  it.each(list.filter(([, { denial, takes }]) => denial === undefined && takes !== undefined))('%s', async (_, { reach, document, at: path, takes }) => {
    const without = await ask(document(), reach());
    expect(without).toMatchObject({ errors: [], denials: [] });
    expect(at(without.data, path)).toEqual({ nodes: [], edges: [], pageInfo: { hasNextPage: false, hasPreviousPage: false, startCursor: null, endCursor: null } });
    const [, id] = takes!();
    const within = await ask(document(), [...reach(), takes!()]);
    expect(within).toMatchObject({ errors: [], denials: [] });
    expect(at(within.data, path)).toMatchObject({ nodes: [expect.anything()], edges: [{ cursor: id }], pageInfo: { hasNextPage: false, hasPreviousPage: false, startCursor: id, endCursor: id } });
  });

  it('the id of a hidden row, as a cursor, is like one that nothing has', async () => {
    const after = (id: string) => `{ namespace(id: "${known.namespace}") { agents(after: "${id}") { nodes { agentId } pageInfo { hasNextPage endCursor } } } }`;
    const hidden = await ask(after(known.otherAgents[0]!), [ns(), agt()]);
    const invented = await ask(after('agt_00000000-0000-4000-8000-000000000000'), [ns(), agt()]);
    expect(hidden).toEqual(invented);
  });
});

describe('what a command answers with: free without read, and what is beyond it judged', () => {
  it.each(list.filter(([, { takes }]) => takes === undefined))('%s', async (_, { reach, document, at: path }) => {
    const { data, errors, denials } = await ask(document(), reach());
    expect(at(data, path), JSON.stringify(data)).toMatchObject({ __typename: expect.any(String) as unknown });
    const crossing = Object.keys(at(data, path) as object).find((member) => member !== '__typename');
    expect(errors).toEqual(crossing === undefined ? [] : [{ path: [...path, crossing], code: 'FORBIDDEN' }]);
    expect(denials).toHaveLength(errors.length);
  });
});
