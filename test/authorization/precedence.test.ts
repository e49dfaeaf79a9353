/**
 * Of two rules that a request breaks, the one that comes first in the order of its operation answers: content,
 * permission on the path, what the body refers to by permission and then by existence, state, what cannot be done, and
 * last the permissions of the Agent's own principal. (iam-auth-audit 2.6 steps 13 to 17 and 8.3)
 */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { configurations, iam } from '../../src/aggregates.ts';
import { routes } from '../../src/http/rest/routes.ts';
import { systemContext } from '../../src/installation/bootstrap.ts';
import { edges, useCases as use, type UseCase } from '../support/use-cases.ts';
import { agentAt, configurationAt, createFixture, revisionAt, type Fixture, type Names } from './fixture.ts';
import type { Row, Scene } from './rows.ts';
import { createRunner, type Runner } from './running.ts';

type Order = Omit<Row, 'id' | 'asks' | 'status'> & { readonly before: string; readonly asks: (names: Names) => UseCase };

const administrator = 'the administrator';
const forbidden = (denied: string) => ({ code: 'FORBIDDEN', denied }) as const;
const invalid = { code: 'INVALID_REQUEST' } as const;
const notFound = { code: 'NOT_FOUND' } as const;
const conflict = { code: 'RESOURCE_CONFLICT' } as const;
const deleting = { code: 'AGENT_DELETING' } as const;
const statuses = { FORBIDDEN: 403, INVALID_REQUEST: 400, NOT_FOUND: 404 } as const;

const says = (text: RegExp): NonNullable<Row['then']> => ({ answer: { message } }) => {
  if (!text.test(message ?? '')) throw new Error(`Expected ${text}, was told: ${message}`);
};

const secret = (names: Names, namespace = 'N1') => ({ kind: 'secret', namespaceId: names[namespace], id: names['S1'] });
const fromSecret = (names: Names, namespace = 'N1') => ({ harnessAuth: { method: 'api_key', source: secret(names, namespace) } });
const fromGateway = (names: Names) => ({ harnessAuth: { method: 'credential_source', sourceId: names['K1'] }, credentialSources: [{ sourceId: names['K1'] }] });
const withSecret = (names: Names, namespace = 'N1') => ({ secretBindings: { A: { source: secret(names, namespace) } } });
const literal = { values: { env: { MY_TOKEN: 'literal' } } };
const files = { initialWorkspaceFiles: { 'SOUL.md': 'A soul' } };
/** What no Harness runs. */
const unfit = { agents: { list: [{ id: 'second' }] } };

const configure = (more: (names: Names) => object, namespace = 'N1') => (names: Names) => use.createConfiguration(names[namespace]!, { kind: 'agent', values: {}, ...more(names) });
const reconfigure = (name: string, more: (names: Names) => object, ifMatch?: number) => (names: Names) => use.updateConfiguration(configurationAt(names, name), { values: {}, ...more(names) }, ifMatch);
const create = (more: (names: Names) => object, namespace = 'N1') => (names: Names) =>
  use.createAgent(names[namespace]!, { name: 'of two rules', configurationId: names['C1'], harnessAuth: { method: 'runtime' }, ...more(names) });
const patch = (name: string, more: (names: Names) => object = () => ({}), ifMatch?: number) => (names: Names) => use.updateAgent(agentAt(names, name), { configurationId: names['C1'], ...more(names) }, ifMatch);
const deploy = (name = 'G1', namespace?: string) => (names: Names) => use.deployAgent(agentAt(names, name, namespace));
const bind = (more: (names: Names) => object) => (names: Names) =>
  use.createAccessBinding(names['N1']!, { subjectId: names['P1'], roleId: names['ROLE'], resourceKind: 'agent', resourceId: names['G1'], ...more(names) });
const nothing = () => ({});

/** Puts an Agent behind G1 that runs with a document, and perhaps with a Secret that the document binds. */
const running = (values: object, { bound = false, namespace = 'N1', ...draft }: { readonly bound?: boolean; readonly namespace?: string; readonly harnessAuth?: null } = {}) => async ({ fixture, names }: Scene): Promise<Names> => {
  const { admin, operator } = fixture;
  const namespaceId = names[namespace]!;
  const { id: configurationId } = await admin(use.createConfiguration(namespaceId, { kind: 'agent', values }));
  if (bound) {
    const replaced = { type: 'ConfigurationReplaced', data: { configurationId, namespaceId, generation: 2, settings: { values, ...withSecret(names, namespace) } } } as const;
    await operator.streams.append(configurations, await operator.streams.load(configurations, configurationId), [replaced], systemContext(operator.installationId));
  }
  const { id: agentId } = await admin(use.createAgent(namespaceId, { name: configurationId, configurationId, harnessAuth: { method: 'runtime' }, ...draft }));
  return { ...names, C1: configurationId, G1: agentId };
};
const deletedToo = (given: NonNullable<Row['given']>, namespace = 'N1') => async (scene: Scene): Promise<Names> => {
  const names = (await given(scene)) ?? scene.names;
  await scene.fixture.admin(use.deleteAgent(agentAt(names, 'G1', namespace)));
  return names;
};
const unreadable: NonNullable<Row['given']> = ({ fixture, names }) => fixture.makeUnreadable(agentAt(names, 'G1'));

const namespaces: readonly Order[] = [
  { before: 'createNamespace: the permission to adopt before that nothing can be', by: ['namespace:create'], asks: () => use.createNamespace({ name: 'adopted', existingNamespace: 'team' }), ...forbidden('installation:administer') },
  { before: 'createNamespace: its permission before a taken name', by: [], asks: () => use.createNamespace({ name: 'N1' }), ...forbidden('namespace:create') },
  { before: 'deleteNamespace: its permission before existence', by: [], asks: (n) => use.deleteNamespace(n['XN']!), ...forbidden('namespace:delete=XN') },
  { before: 'deleteNamespace: its permission before what is left in it', by: [], asks: (n) => use.deleteNamespace(n['N1']!), ...forbidden('namespace:delete=N1') },
];

const ofConfigurations: readonly Order[] = [
  { before: 'createConfiguration: content before its permission', by: [], asks: configure(() => literal), ...invalid },
  { before: 'createConfiguration: its permission before the permission on a Secret', by: [], asks: configure(withSecret), ...forbidden('configuration:create@N1') },
  { before: 'createConfiguration: its permission before the Namespace', by: [], asks: configure(nothing, 'XN'), ...forbidden('configuration:create@XN') },
  { before: 'createConfiguration: the permission on a Secret before its existence', by: ['configuration:create@N1'], asks: configure(withSecret), ...forbidden('secret:operate=S1') },
  { before: 'createConfiguration: the permission on a Secret before the state of the Namespace', by: ['configuration:create@NF'], asks: configure((n) => withSecret(n, 'NF'), 'NF'), ...forbidden('secret:operate=S1 in NF') },
  // One that is being deleted is empty: what the body names is never there.
  { before: 'createConfiguration: the state of the Namespace before what is in it', by: administrator, asks: configure((n) => withSecret(n, 'ND'), 'ND'), ...conflict },
  { before: 'updateConfiguration: content before its permission', by: [], asks: reconfigure('C1', () => literal), ...invalid },
  { before: 'updateConfiguration: its permission before existence', by: [], asks: reconfigure('XC', nothing), ...forbidden('configuration:update=XC') },
  { before: 'updateConfiguration: the permission on a Secret before existence', by: ['configuration:update@N1'], asks: reconfigure('XC', withSecret), ...forbidden('secret:operate=S1') },
  { before: 'updateConfiguration: the permission on a Secret before a stale generation', by: ['configuration:update=C1'], asks: reconfigure('C1', withSecret, 99), ...forbidden('secret:operate=S1') },
  { before: 'updateConfiguration: the existence of a Secret before a stale generation', by: administrator, asks: reconfigure('C1', withSecret, 99), ...notFound },
  { before: 'deleteConfiguration: its permission before existence', by: [], asks: (n) => use.deleteConfiguration(configurationAt(n, 'XC')), ...forbidden('configuration:delete=XC') },
  { before: 'deleteConfiguration: its permission before what refers to it', by: [], asks: (n) => use.deleteConfiguration(configurationAt(n, 'C1')), ...forbidden('configuration:delete=C1') },
];

const creations: readonly Order[] = [
  { before: 'createAgent: content before its permission', by: [], asks: create((n) => fromSecret(n, 'N2')), ...invalid },
  { before: 'createAgent: its permission before the one on the Configuration', by: [], asks: create(nothing), ...forbidden('agent:create@N1') },
  { before: 'createAgent: the permission on the Configuration before the Namespace', by: ['agent:create@XN'], asks: create(nothing, 'XN'), ...forbidden('configuration:read=C1 in XN') },
  { before: 'createAgent: the permission on the Configuration before the one on the source', by: ['agent:create@N1'], asks: create(fromSecret), ...forbidden('configuration:read=C1') },
  { before: 'createAgent: the permission on the Configuration before its existence', by: ['agent:create@N1'], asks: create((n) => ({ configurationId: n['XC'] })), ...forbidden('configuration:read=XC') },
  { before: 'createAgent: the permission on the source before the existence of the Configuration', by: ['agent:create@N1', 'configuration:read@N1'], asks: create((n) => ({ configurationId: n['XC'], ...fromSecret(n) })), ...forbidden('secret:operate=S1') },
  { before: 'createAgent: the permission on the source before a taken name', by: ['agent:create@N1', 'configuration:read@N1'], asks: create((n) => ({ name: 'G1', ...fromSecret(n) })), ...forbidden('secret:operate=S1') },
  { before: 'createAgent: the permission on a credential source before that there is no gateway', by: ['agent:create@N1', 'configuration:read@N1'], asks: create(fromGateway), ...forbidden('credential_source:operate=K1') },
  { before: 'createAgent: the existence of the Configuration before a taken name', by: administrator, asks: create((n) => ({ name: 'G1', configurationId: n['XC'] })), ...notFound },
  { before: 'createAgent: the existence of the Secret before a taken name', by: administrator, asks: create((n) => ({ name: 'G1', ...fromSecret(n) })), ...notFound },
  { before: 'createAgent: the Namespace before files nothing applies', by: administrator, asks: create(() => files, 'XN'), ...notFound },
  { before: 'createAgent: the Configuration before files nothing applies', by: administrator, asks: create((n) => ({ configurationId: n['XC'], ...files })), ...notFound },
  { before: 'createAgent: the state of the Namespace before files nothing applies', by: administrator, asks: create(() => files, 'NF'), ...conflict },
  { before: 'createAgent: a taken name before files nothing applies', by: administrator, asks: create(() => ({ name: 'G1', ...files })), ...conflict },
  { before: 'createAgent: the Configuration before that there is no gateway', by: administrator, asks: create((n) => ({ configurationId: n['XC'], ...fromGateway(n) })), ...notFound },
  { before: 'createAgent: a taken name before that there is no gateway', by: administrator, asks: create((n) => ({ name: 'G1', ...fromGateway(n) })), ...conflict },
];

const changes: readonly Order[] = [
  { before: 'updateAgent: content before its permission', by: [], asks: patch('G1', (n) => fromSecret(n, 'N2')), ...invalid },
  { before: 'updateAgent: its permission before existence', by: [], asks: patch('XG'), ...forbidden('agent:update=XG') },
  { before: 'updateAgent: the permission on the Configuration before existence', by: ['agent:update@N1'], asks: patch('XG'), ...forbidden('configuration:read=C1') },
  { before: 'updateAgent: the permission on the source before existence', by: ['agent:update@N1', 'configuration:read@N1'], asks: patch('XG', fromSecret), ...forbidden('secret:operate=S1') },
  { before: 'updateAgent: the permission on the Configuration before AGENT_DELETING', by: ['agent:update=GD'], asks: patch('GD'), ...forbidden('configuration:read=C1') },
  { before: 'updateAgent: the permission on the Configuration before its existence', by: ['agent:update=G1'], asks: patch('G1', (n) => ({ configurationId: n['XC'] })), ...forbidden('configuration:read=XC') },
  { before: 'updateAgent: the permission on the source before a stale draft', by: ['agent:update=G1', 'configuration:read=C1'], asks: patch('G1', fromSecret, 99), ...forbidden('secret:operate=S1') },
  { before: 'updateAgent: the existence of the Configuration before AGENT_DELETING', by: administrator, asks: patch('GD', (n) => ({ configurationId: n['XC'] })), ...notFound },
  { before: 'updateAgent: the existence of the Secret before that it stops', by: administrator, asks: patch('GS', fromSecret), ...notFound },
  { before: 'updateAgent: the existence of the Backend before AGENT_DELETING', by: administrator, asks: patch('GD', () => ({ backendId: 'unknown' })), ...notFound },
  { before: 'updateAgent: AGENT_DELETING before a stale draft', by: administrator, asks: patch('GD', nothing, 99), ...deleting },
  { before: 'updateAgent: AGENT_DELETING before settings that cannot be read', by: administrator, fresh: true, given: deletedToo(unreadable), asks: patch('G1'), ...deleting },
  { before: 'updateAgent: AGENT_DELETING before that there is no gateway', by: administrator, asks: patch('GD', fromGateway), ...deleting },
  { before: 'updateAgent: that it stops before a stale draft', by: administrator, asks: patch('GS', nothing, 99), ...conflict, then: says(/stopping/) },
  { before: 'updateAgent: a stale draft before that there is no gateway', by: administrator, asks: patch('G1', fromGateway, 99), ...conflict },
];

const deployers = ['agent:deploy@N1', 'configuration:read@N1'];
const bound = running({}, { bound: true });
const deployments: readonly Order[] = [
  { before: 'deployAgent: its permission before existence', by: [], asks: deploy('XG'), ...forbidden('agent:deploy=XG') },
  { before: 'deployAgent: its permission before AGENT_DELETING', by: [], asks: deploy('GD'), ...forbidden('agent:deploy=GD') },
  { before: 'deployAgent: the permission on the Configuration before AGENT_DELETING', by: ['agent:deploy=GD'], asks: deploy('GD'), ...forbidden('configuration:read=C1') },
  { before: 'deployAgent: the permission on the Configuration before settings that cannot be read', by: ['agent:deploy=G1'], fresh: true, given: unreadable, asks: deploy(), ...forbidden('configuration:read=C1') },
  { before: 'deployAgent: the permission on a bound Secret before AGENT_DELETING', by: deployers, given: deletedToo(bound), asks: deploy(), ...forbidden('secret:operate=S1') },
  {
    before: 'deployAgent: the permission on a bound Secret before settings that cannot be read',
    by: deployers,
    given: async (scene) => {
      const names = await bound(scene);
      await scene.fixture.makeUnreadable(agentAt(names, 'G1'));
      return names;
    },
    asks: deploy(),
    ...forbidden('secret:operate=S1'),
  },
  { before: 'deployAgent: the permission on a bound Secret before the one of the Agent', by: deployers, given: bound, asks: deploy(), ...forbidden('secret:operate=S1') },
  { before: 'deployAgent: AGENT_DELETING before settings that cannot be read', by: administrator, fresh: true, given: deletedToo(unreadable), asks: deploy(), ...deleting },
  { before: 'deployAgent: AGENT_DELETING before no authentication', by: administrator, given: deletedToo(running({}, { harnessAuth: null })), asks: deploy(), ...deleting },
  { before: 'deployAgent: AGENT_DELETING before a Namespace that is not ready', by: administrator, given: deletedToo(running({}, { namespace: 'NP' }), 'NP'), asks: deploy('G1', 'NP'), ...deleting },
  { before: 'deployAgent: AGENT_DELETING before the permission of the Agent', by: administrator, given: deletedToo(bound), asks: deploy(), ...deleting },
  { before: 'deployAgent: a Namespace that is not ready before no authentication', by: administrator, given: running({}, { namespace: 'NP', harnessAuth: null }), asks: deploy('G1', 'NP'), code: 'NAMESPACE_NOT_READY', records: 'CommandFailed' },
  { before: 'deployAgent: a Namespace that is not ready before the permission of the Agent', by: administrator, given: running({}, { namespace: 'NP', bound: true }), asks: deploy('G1', 'NP'), code: 'NAMESPACE_NOT_READY', records: 'CommandFailed' },
  { before: 'deployAgent: no authentication before what no Harness runs', by: administrator, given: running(unfit, { harnessAuth: null }), asks: deploy(), ...conflict },
  { before: 'deployAgent: what no Harness runs before the permission of the Agent', by: administrator, given: running(unfit, { bound: true }), asks: deploy(), ...invalid },
  {
    before: 'deployAgent: the permission of the Agent last',
    by: [...deployers, 'secret:operate@N1'],
    given: bound,
    asks: deploy(),
    code: 'FORBIDDEN',
    records: 'AuthorizationDenied',
    then: ({ answer, records: [record], scene: { names, actor } }) => {
      expect(answer.message).toMatch(/lacks operate on secret/);
      expect(record).toMatchObject({ reasonCode: 'AGENT_PRINCIPAL_NOT_AUTHORIZED', authorization: { principalId: actor.id, action: 'deploy', resource: { id: names['G1'] } }, details: { action: 'operate', resource: { kind: 'secret', id: names['S1'] } } });
    },
  },
  { before: 'stopAgent: its permission before existence', by: [], asks: (n) => use.stopAgent(agentAt(n, 'XG')), ...forbidden('agent:operate=XG') },
  { before: 'deleteAgent: its permission before existence', by: [], asks: (n) => use.deleteAgent(agentAt(n, 'XG')), ...forbidden('agent:delete=XG') },
  { before: 'diagnoseAgentDeployment: the last of its permissions before existence', by: ['agent:read@N1', 'agent:operate@N1'], asks: (n) => use.diagnoseAgentDeployment(revisionAt(n, 'XR')), ...forbidden('agent_revision:read=XR') },
  { before: 'diagnoseAgentDeployment: existence before Compute', by: administrator, asks: (n) => use.diagnoseAgentDeployment(revisionAt(n, 'XR')), ...notFound },
];

const ofInstallation = ['installation:administer'];
const policy: readonly Order[] = [
  { before: 'createRole: permission in the Namespace before its existence', by: ofInstallation, asks: (n) => use.createRole(n['XN']!, { permissions: [{ action: 'read', resourceKind: 'agent' }] }), ...forbidden('namespace:read=XN') },
  { before: 'deleteRole: permission in the Namespace before what binds it', by: ofInstallation, asks: (n) => use.deleteRole(n['N1']!, n['ROLE']!), ...forbidden('namespace:read=N1') },
  { before: 'deleteRole: permission in the Namespace before existence', by: ofInstallation, asks: (n) => use.deleteRole(n['N1']!, n['XROLE']!), ...forbidden('namespace:read=N1') },
  { before: 'deleteAccessBinding: permission in the Namespace before existence', by: ofInstallation, asks: (n) => use.deleteAccessBinding(n['N1']!, n['XBINDING']!), ...forbidden('namespace:read=N1') },
  { before: 'createServicePrincipal: permission in the Namespace before its existence', by: ofInstallation, asks: (n) => use.createServicePrincipal(n['XN']!), ...forbidden('namespace:read=XN') },
  { before: 'createAccessBinding: content before its permission', by: [], asks: bind((n) => ({ resourceKind: 'namespace', resourceId: n['N2'] })), ...invalid },
  { before: 'createAccessBinding: permission on the target before its existence', by: [...ofInstallation, 'namespace:read=N1'], asks: bind((n) => ({ resourceId: n['XG'] })), ...forbidden('agent:read=XG') },
  { before: 'createAccessBinding: permission on the target before the subject', by: [...ofInstallation, 'namespace:read=N1'], asks: bind((n) => ({ subjectId: n['XPRINCIPAL'] })), ...forbidden('agent:read=G1') },
  { before: 'createAccessBinding: the target before the subject', by: administrator, asks: bind((n) => ({ resourceId: n['XG'], subjectId: n['XPRINCIPAL'] })), ...invalid, then: ({ answer }) => expect(answer.details).toEqual([{ path: '/resourceId', code: 'INVALID_VALUE' }]) },
  { before: 'issueServiceKey: its permission before the principal', by: [], asks: (n) => use.issueServiceKey({ servicePrincipalId: n['XPRINCIPAL'], name: 'key' }), ...forbidden('installation:administer') },
  {
    before: 'issueServiceKey: coverage of the principal before its scope',
    by: ofInstallation,
    asks: (n) => use.issueServiceKey({ servicePrincipalId: n['ADMINISTRATOR'], namespaceId: n['N1'], name: 'key' }),
    code: 'FORBIDDEN',
    records: 'AuthorizationDenied',
    then: ({ records }) => expect(records).toMatchObject([{ reasonCode: 'SERVICE_PRINCIPAL_GRANTS_NOT_COVERED' }]),
  },
  { before: 'revokeServiceKey: its permission before existence', by: [], asks: (n) => use.revokeServiceKey(n['XKEY']!), ...forbidden('installation:administer') },
];

const account = (more: object): UseCase => {
  const action = 'openclaw.auth.accounts.create';
  const body = { email: 'of-two-rules@example.test', password: 'correct horse battery', ...more };
  return { action: { REST: action, GraphQL: action }, rest: { method: 'POST', path: '/api/auth/accounts', body }, graphql: { document: '', variables: {}, at: [] } };
};
const throughGithub = { github: { subject: '1' } };
const ofAccounts: readonly Order[] = [
  { before: 'createAccount: its permission before an unknown Role', only: 'REST', person: true, by: [], asks: () => account({ roleId: 'role_unknown' }), ...forbidden('installation:administer') },
  {
    before: 'createAccount: coverage of the Role before that nobody signs in through GitHub',
    only: 'REST',
    person: true,
    by: ofInstallation,
    given: async ({ fixture, names }) => ({ ...names, ROLE: (await fixture.operator.streams.load(iam, '')).state.installation!.role.roleId }),
    asks: (n) => account({ roleId: n['ROLE'], ...throughGithub }),
    code: 'FORBIDDEN',
    records: 'AuthorizationDenied',
    then: ({ records }) => expect(records).toMatchObject([{ reasonCode: 'ACCOUNT_PRINCIPAL_GRANTS_NOT_COVERED' }]),
  },
  { before: 'createAccount: an unknown Role before that nobody signs in through GitHub', only: 'REST', person: true, by: ofInstallation, asks: () => account({ roleId: 'role_unknown', ...throughGithub }), ...invalid },
];

const orders = [...namespaces, ...ofConfigurations, ...creations, ...changes, ...deployments, ...policy, ...ofAccounts];

let fixture: Fixture;
let run: Runner;
beforeAll(async () => {
  fixture = await createFixture();
  run = createRunner(fixture);
});
afterAll(() => fixture?.close());

it('every command is among them', () => {
  // What external sign-in alone can do is refused to everybody who may ask: ../sign-in/accounts.test.ts.
  const isCommand = ({ method, access, path }: (typeof routes)[number]) => method !== 'GET' && (access === undefined || path === '/api/auth/accounts');
  expect(new Set(orders.map(({ before }) => before.split(':')[0]))).toEqual(new Set(routes.filter(isCommand).map(({ operationId }) => operationId)));
});

describe.each(edges)('over %s', (edge) => {
  it.each(orders.filter(({ only = edge }) => only === edge))('$before', ({ before: id, ...order }) => run({ id, status: statuses[order.code as keyof typeof statuses] ?? 409, ...order }, edge));
});
