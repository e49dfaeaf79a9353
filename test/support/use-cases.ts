/** Every use case of the product, sent over either edge and answered in one shape, so that both can be compared. */
export interface AgentPlace {
  readonly namespaceId: string;
  readonly agentId: string;
}
export interface RevisionPlace extends AgentPlace {
  readonly revisionId: string;
}
export interface ConfigurationPlace {
  readonly namespaceId: string;
  readonly configurationId: string;
}

export interface UseCase {
  /** What the audit calls it, on each edge: GraphQL reaches a list through the resource it hangs on. */
  readonly action: Readonly<Record<EdgeName, string>>;
  readonly rest: { readonly method: string; readonly path: string; readonly body?: unknown; readonly headers?: Readonly<Record<string, string>> };
  readonly graphql: { readonly document: string; readonly variables: object; /** The members below `data` that lead to the answer. */ readonly at: readonly string[] };
}

export type EdgeName = 'REST' | 'GraphQL';
export const edges: readonly EdgeName[] = ['REST', 'GraphQL'];

export interface Answer {
  readonly status: number;
  /** Null for a success. */
  readonly code: string | null;
  readonly message: string | null;
  readonly details: readonly { readonly path: string; readonly code: string }[];
  readonly requestId: string;
  readonly data: unknown;
}

const namespaceFields = '{ id: namespaceId name status createdAt }';
const configurationFields = '{ id: configurationId namespaceId kind generation values secretBindings createdAt configurationReadError { code field } }';
const agentFields =
  '{ id: agentId namespaceId name servicePrincipalId configurationId backendId harnessAuth executionMode credentialSources { sourceId } plugins pluginApprovers { channel id } desiredRuntimeState activeRevisionId status createdAt configurationReadError { code field } }';
const revisionFields =
  '{ id: revisionId namespaceId agentId revision backendId configurationId configurationGeneration configuration harness { id version mode } compute { id implementation } harnessAuth credentialSources { sourceId } createdAt }';
const deploymentFields = '{ deploymentId namespaceId agentId status error { code message } warnings { code pluginId } progress { nextAttemptAt lastAttempt { code } } cleanup { status } }';
const roleFields = '{ id: roleId namespaceId name permissions { action resourceKind } }';
const accessBindingFields = '{ id: bindingId namespaceId subjectKind subjectId roleId resourceKind resourceId }';
const servicePrincipalFields = '{ id: servicePrincipalId namespaceId }';
const serviceKeyFields = '{ id: keyId servicePrincipalId namespaceId name expiresAt key }';
const refusal = '... on Refusal { code message status requestId details { path code } }';

const both = (action: string): UseCase['action'] => ({ REST: `openclaw.${action}`, GraphQL: `openclaw.${action}` });

const query = (field: string, types: string, args: string, selection: string, variables: object): UseCase['graphql'] => ({
  document: `query${types === '' ? '' : `(${types})`} { ${field}${args === '' ? '' : `(${args})`} ${selection} }`,
  variables,
  at: [field],
});

/** `result` is empty for a mutation whose payload carries an id only. */
const mutation = (field: string, input: object, result: string, selection: string): UseCase['graphql'] => {
  const name = field.charAt(0).toUpperCase() + field.slice(1);
  return {
    document: `mutation($input: ${name}Input!) { ${field}(input: $input) { __typename ... on ${name}Payload { ${result} ${selection} } ${refusal} } }`,
    variables: { input },
    at: selection === '' ? [field] : [field, result],
  };
};

const keyHeader = (key: string | undefined) => (key === undefined ? {} : { headers: { 'idempotency-key': key } });
const matchHeader = (ifMatch: number | undefined) => (ifMatch === undefined ? {} : { headers: { 'if-match': `"${ifMatch}"` } });

const pathOf = {
  namespace: (namespaceId: string) => `/namespaces/${namespaceId}`,
  configuration: ({ namespaceId, configurationId }: ConfigurationPlace) => `/namespaces/${namespaceId}/configurations/${configurationId}`,
  agent: ({ namespaceId, agentId }: AgentPlace) => `/namespaces/${namespaceId}/agents/${agentId}`,
};

const revisionQuery = (field: string, { namespaceId, agentId, revisionId: id }: RevisionPlace, selection: string) =>
  query(field, '$id: ID!, $agentId: ID, $namespaceId: ID', 'id: $id, agentId: $agentId, namespaceId: $namespaceId', selection, { id, agentId, namespaceId });

/** By the `operationId` of their REST routes. */
export const useCases = {
  getInstallation: (): UseCase => ({
    action: both('installation.read'),
    rest: { method: 'GET', path: '/installation' },
    graphql: query('installation', '', '', '{ id: installationId name createdAt }', {}),
  }),

  listNamespaces: (): UseCase => ({
    action: both('namespaces.list'),
    rest: { method: 'GET', path: '/namespaces' },
    graphql: { ...query('namespaces', '', '', `{ nodes ${namespaceFields} }`, {}), at: ['namespaces', 'nodes'] },
  }),
  createNamespace: (input: object, idempotencyKey?: string): UseCase => ({
    action: both('namespaces.create'),
    rest: { method: 'POST', path: '/namespaces', body: input, ...keyHeader(idempotencyKey) },
    graphql: mutation('createNamespace', { ...input, ...(idempotencyKey !== undefined && { idempotencyKey }) }, 'namespace', namespaceFields),
  }),
  getNamespace: (namespaceId: string): UseCase => ({
    action: both('namespaces.read'),
    rest: { method: 'GET', path: pathOf.namespace(namespaceId) },
    graphql: query('namespace', '$id: ID!', 'id: $id', namespaceFields, { id: namespaceId }),
  }),
  deleteNamespace: (namespaceId: string): UseCase => ({
    action: both('namespaces.delete'),
    rest: { method: 'DELETE', path: pathOf.namespace(namespaceId) },
    graphql: mutation('deleteNamespace', { id: namespaceId }, 'namespace', namespaceFields),
  }),

  createConfiguration: (namespaceId: string, input: object): UseCase => ({
    action: both('configurations.create'),
    rest: { method: 'POST', path: `/namespaces/${namespaceId}/configurations`, body: input },
    graphql: mutation('createConfiguration', { namespaceId, ...input }, 'configuration', configurationFields),
  }),
  getConfiguration: (place: ConfigurationPlace): UseCase => ({
    action: both('configurations.read'),
    rest: { method: 'GET', path: pathOf.configuration(place) },
    graphql: query('configuration', '$id: ID!, $namespaceId: ID', 'id: $id, namespaceId: $namespaceId', configurationFields, { id: place.configurationId, namespaceId: place.namespaceId }),
  }),
  updateConfiguration: (place: ConfigurationPlace, input: object, ifMatch?: number): UseCase => ({
    action: both('configurations.update'),
    rest: { method: 'PATCH', path: pathOf.configuration(place), body: input, ...matchHeader(ifMatch) },
    graphql: mutation('updateConfiguration', { id: place.configurationId, namespaceId: place.namespaceId, ...input, ...(ifMatch !== undefined && { ifMatch }) }, 'configuration', configurationFields),
  }),
  deleteConfiguration: (place: ConfigurationPlace): UseCase => ({
    action: both('configurations.delete'),
    rest: { method: 'DELETE', path: pathOf.configuration(place) },
    graphql: mutation('deleteConfiguration', { id: place.configurationId, namespaceId: place.namespaceId }, 'configurationId', ''),
  }),

  listAgents: (namespaceId: string): UseCase => ({
    action: { REST: 'openclaw.agents.list', GraphQL: 'openclaw.namespaces.read' },
    rest: { method: 'GET', path: `/namespaces/${namespaceId}/agents` },
    graphql: { ...query('namespace', '$id: ID!', 'id: $id', `{ agents { nodes ${agentFields} } }`, { id: namespaceId }), at: ['namespace', 'agents', 'nodes'] },
  }),
  createAgent: (namespaceId: string, input: object, idempotencyKey?: string): UseCase => ({
    action: both('agents.create'),
    rest: { method: 'POST', path: `/namespaces/${namespaceId}/agents`, body: input, ...keyHeader(idempotencyKey) },
    graphql: mutation('createAgent', { namespaceId, ...input, ...(idempotencyKey !== undefined && { idempotencyKey }) }, 'agent', agentFields),
  }),
  getAgent: (place: AgentPlace): UseCase => ({
    action: both('agents.read'),
    rest: { method: 'GET', path: pathOf.agent(place) },
    graphql: query('agent', '$id: ID!, $namespaceId: ID', 'id: $id, namespaceId: $namespaceId', agentFields, { id: place.agentId, namespaceId: place.namespaceId }),
  }),
  updateAgent: (place: AgentPlace, input: object, ifMatch?: number): UseCase => ({
    action: both('agents.update'),
    rest: { method: 'PATCH', path: pathOf.agent(place), body: input, ...matchHeader(ifMatch) },
    graphql: mutation('updateAgent', { id: place.agentId, namespaceId: place.namespaceId, ...input, ...(ifMatch !== undefined && { ifMatch }) }, 'agent', agentFields),
  }),
  deleteAgent: (place: AgentPlace): UseCase => ({
    action: both('agents.delete'),
    rest: { method: 'DELETE', path: pathOf.agent(place) },
    graphql: mutation('deleteAgent', { id: place.agentId, namespaceId: place.namespaceId }, 'agent', agentFields),
  }),
  deployAgent: (place: AgentPlace, idempotencyKey?: string): UseCase => ({
    action: both('agents.deploy'),
    rest: { method: 'POST', path: `${pathOf.agent(place)}/deploy`, ...keyHeader(idempotencyKey) },
    graphql: mutation('deployAgent', { id: place.agentId, namespaceId: place.namespaceId, ...(idempotencyKey !== undefined && { idempotencyKey }) }, 'revision', revisionFields),
  }),
  stopAgent: (place: AgentPlace): UseCase => ({
    action: both('agents.stop'),
    rest: { method: 'POST', path: `${pathOf.agent(place)}/stop` },
    graphql: mutation('stopAgent', { id: place.agentId, namespaceId: place.namespaceId }, 'agent', agentFields),
  }),

  getAgentNativeAdmin: (place: AgentPlace): UseCase => ({
    action: { REST: 'openclaw.agents.native_admin.read', GraphQL: 'openclaw.agents.read' },
    rest: { method: 'GET', path: `${pathOf.agent(place)}/native-admin` },
    graphql: {
      ...query('agent', '$id: ID!, $namespaceId: ID', 'id: $id, namespaceId: $namespaceId', '{ nativeAdmin { status activeRevisionId host origin url } }', { id: place.agentId, namespaceId: place.namespaceId }),
      at: ['agent', 'nativeAdmin'],
    },
  }),

  listAgentRevisions: (place: AgentPlace): UseCase => ({
    action: { REST: 'openclaw.agent_revisions.list', GraphQL: 'openclaw.agents.read' },
    rest: { method: 'GET', path: `${pathOf.agent(place)}/revisions` },
    graphql: {
      ...query('agent', '$id: ID!, $namespaceId: ID', 'id: $id, namespaceId: $namespaceId', `{ revisions { nodes ${revisionFields} } }`, { id: place.agentId, namespaceId: place.namespaceId }),
      at: ['agent', 'revisions', 'nodes'],
    },
  }),
  getAgentRevision: (place: RevisionPlace): UseCase => ({
    action: both('agent_revisions.read'),
    rest: { method: 'GET', path: `${pathOf.agent(place)}/revisions/${place.revisionId}` },
    graphql: revisionQuery('agentRevision', place, revisionFields),
  }),
  diagnoseAgentDeployment: (place: RevisionPlace): UseCase => ({
    action: both('agent_deployments.diagnostics.run'),
    rest: { method: 'POST', path: `${pathOf.agent(place)}/deployments/${place.revisionId}/diagnostics` },
    graphql: mutation('diagnoseAgentDeployment', { id: place.revisionId, agentId: place.agentId, namespaceId: place.namespaceId }, 'diagnostics', '{ revisionId observedAt checks { component check state checkedAt code } }'),
  }),
  getAgentDeployment: (place: RevisionPlace): UseCase => ({
    action: both('agent_deployments.read'),
    rest: { method: 'GET', path: `${pathOf.agent(place)}/deployments/${place.revisionId}` },
    graphql: revisionQuery('deployment', place, deploymentFields),
  }),

  listRoles: (namespaceId: string): UseCase => ({
    action: { REST: 'openclaw.iam.roles.list', GraphQL: 'openclaw.namespaces.read' },
    rest: { method: 'GET', path: `/namespaces/${namespaceId}/iam/roles` },
    graphql: { ...query('namespace', '$id: ID!', 'id: $id', `{ roles { nodes ${roleFields} } }`, { id: namespaceId }), at: ['namespace', 'roles', 'nodes'] },
  }),
  createRole: (namespaceId: string, input: object): UseCase => ({
    action: both('iam.roles.create'),
    rest: { method: 'POST', path: `/namespaces/${namespaceId}/iam/roles`, body: input },
    graphql: mutation('createRole', { namespaceId, ...input }, 'role', roleFields),
  }),
  getRole: (namespaceId: string, id: string): UseCase => ({
    action: both('iam.roles.read'),
    rest: { method: 'GET', path: `/namespaces/${namespaceId}/iam/roles/${id}` },
    graphql: query('role', '$id: ID!, $namespaceId: ID', 'id: $id, namespaceId: $namespaceId', roleFields, { id, namespaceId }),
  }),
  deleteRole: (namespaceId: string, id: string): UseCase => ({
    action: both('iam.roles.delete'),
    rest: { method: 'DELETE', path: `/namespaces/${namespaceId}/iam/roles/${id}` },
    graphql: mutation('deleteRole', { id, namespaceId }, 'roleId', ''),
  }),
  listAccessBindings: (namespaceId: string): UseCase => ({
    action: { REST: 'openclaw.iam.access_bindings.list', GraphQL: 'openclaw.namespaces.read' },
    rest: { method: 'GET', path: `/namespaces/${namespaceId}/iam/access-bindings` },
    graphql: { ...query('namespace', '$id: ID!', 'id: $id', `{ accessBindings { nodes ${accessBindingFields} } }`, { id: namespaceId }), at: ['namespace', 'accessBindings', 'nodes'] },
  }),
  createAccessBinding: (namespaceId: string, input: object): UseCase => ({
    action: both('iam.access_bindings.create'),
    rest: { method: 'POST', path: `/namespaces/${namespaceId}/iam/access-bindings`, body: { subjectKind: 'identity', ...input } },
    graphql: mutation('createAccessBinding', { namespaceId, ...input }, 'accessBinding', accessBindingFields),
  }),
  getAccessBinding: (namespaceId: string, id: string): UseCase => ({
    action: both('iam.access_bindings.read'),
    rest: { method: 'GET', path: `/namespaces/${namespaceId}/iam/access-bindings/${id}` },
    graphql: query('accessBinding', '$id: ID!, $namespaceId: ID', 'id: $id, namespaceId: $namespaceId', accessBindingFields, { id, namespaceId }),
  }),
  deleteAccessBinding: (namespaceId: string, id: string): UseCase => ({
    action: both('iam.access_bindings.delete'),
    rest: { method: 'DELETE', path: `/namespaces/${namespaceId}/iam/access-bindings/${id}` },
    graphql: mutation('deleteAccessBinding', { id, namespaceId }, 'bindingId', ''),
  }),
  createServicePrincipal: (namespaceId: string): UseCase => ({
    action: both('iam.service_principals.create'),
    rest: { method: 'POST', path: `/namespaces/${namespaceId}/iam/service-principals`, body: {} },
    graphql: mutation('createServicePrincipal', { namespaceId }, 'servicePrincipal', servicePrincipalFields),
  }),
  issueServiceKey: (input: object): UseCase => ({
    action: both('auth.service-keys.create'),
    rest: { method: 'POST', path: '/api/auth/service-keys', body: input },
    graphql: mutation('issueServiceKey', input, 'serviceKey', serviceKeyFields),
  }),
  revokeServiceKey: (keyId: string): UseCase => ({
    action: both('auth.service-keys.revoke'),
    rest: { method: 'DELETE', path: `/api/auth/service-keys/${keyId}` },
    graphql: mutation('revokeServiceKey', { keyId }, 'keyId', ''),
  }),
};

type Credentials = Readonly<Record<string, string>>;
interface Shown {
  readonly code: string;
  readonly message: string;
  readonly details?: Answer['details'];
}
const refused = (status: number, requestId: string, { code, message, details = [] }: Shown): Answer => ({
  status,
  code,
  message,
  details: details.map(({ path, code }) => ({ path, code })),
  requestId,
  data: null,
});

const sendRest = async (origin: string, { rest: { method, path, body, headers } }: UseCase, credentials: Credentials): Promise<Answer> => {
  const response = await fetch(origin + path, {
    method,
    headers: { ...credentials, ...headers, ...(body !== undefined && { 'content-type': 'application/json' }) },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  });
  const requestId = response.headers.get('x-request-id')!;
  const text = await response.text();
  const { data = null, error } = (text === '' ? {} : JSON.parse(text)) as { data?: unknown; error?: Shown };
  return error === undefined ? { status: response.status, code: null, message: null, details: [], requestId, data } : refused(response.status, requestId, error);
};

/** Sends a document as it is; answers of it are the refusal of the whole, of a mutation, or of the first field. */
export const sendGraphql = async (origin: string, { document, variables, at }: UseCase['graphql'], credentials: Credentials): Promise<Answer> => {
  const response = await fetch(`${origin}/graphql`, {
    method: 'POST',
    headers: { ...credentials, 'content-type': 'application/json' },
    body: JSON.stringify({ query: document, variables }),
  });
  const requestId = response.headers.get('x-request-id')!;
  const { data, errors } = (await response.json()) as { data?: Record<string, unknown> | null; errors?: readonly { message: string; extensions: Omit<Shown, 'message'> & { status: number } }[] };
  const [error] = errors ?? [];
  if (error !== undefined) return refused(error.extensions.status, requestId, { ...error.extensions, message: error.message });
  const field = data![at[0]!] as { __typename?: string; status: number } & Shown;
  if (field.__typename === 'Refusal') return refused(field.status, requestId, field);
  const answer = at.reduce<unknown>((value, member) => (value as Record<string, unknown>)[member], data);
  return { status: response.status, code: null, message: null, details: [], requestId, data: answer };
};

/** Sends a use case with a service key, or with other headers for credentials. */
export const send = (edge: EdgeName, origin: string, useCase: UseCase, credentials: string | Credentials): Promise<Answer> => {
  const headers = typeof credentials === 'string' ? { 'x-api-key': credentials } : credentials;
  return edge === 'REST' ? sendRest(origin, useCase, headers) : sendGraphql(origin, useCase.graphql, headers);
};
