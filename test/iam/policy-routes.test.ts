/** The policy of a Namespace over both edges: what is taken, what is refused and where, what is recorded, and what a race comes to. (iam-auth-audit section 4, rest-contract 3.9) */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { agents, iam, namespaces } from '../../src/aggregates.ts';
import { systemContext } from '../../src/installation/bootstrap.ts';
import { workKey } from '../../src/kernel/work.ts';
import { openReplica, type Replica } from '../scenarios/replica.ts';
import { startTestApplication, type TestApplication } from '../support/app.ts';
import { openOperator, permissionOf, type TestOperator, type TestPrincipal } from '../support/principals.ts';
import { auditOf, eventsOf } from '../support/request-events.ts';
import { sent } from '../support/sent.ts';
import { edges, send, useCases as use, type Answer, type EdgeName, type UseCase } from '../support/use-cases.ts';

let application: TestApplication;
let operator: TestOperator;
let replica: Replica;
let namespaceId: string;
let configurationId: string;
let agentId: string;
let revisionId: string;
/** The service principal of the Agent. */
let subjectId: string;
/** Holds what every call takes, and nothing else. */
let policyAdministrator: TestPrincipal;

const admin = async (useCase: UseCase): Promise<{ readonly id: string }> => {
  const { code, message, data } = await send('REST', application.origin, useCase, application.key);
  if (code !== null) throw new Error(`The administrator was refused: ${code}, ${message}`);
  return (data ?? { id: '' }) as { id: string };
};
const newNamespace = async (name: string): Promise<string> => {
  const { id } = await admin(use.createNamespace({ name }));
  await operator.tell.namespaceReady(id);
  return id;
};

beforeAll(async () => {
  application = await startTestApplication({ env: { EXUVIA_ROLES: 'api,projector' } });
  operator = await openOperator(application);
  replica = await openReplica(application);
  namespaceId = await newNamespace('policy');
  ({ id: configurationId } = await admin(use.createConfiguration(namespaceId, { kind: 'agent', values: {} })));
  ({ id: agentId } = await admin(use.createAgent(namespaceId, { name: 'a', configurationId, harnessAuth: { method: 'runtime' } })));
  ({ id: revisionId } = await admin(use.deployAgent({ namespaceId, agentId })));
  subjectId = (await operator.streams.load(iam, '')).state.principalOfAgent.get(agentId)!;
  policyAdministrator = await operator.principal();
  await policyAdministrator.grant([permissionOf('installation:administer'), permissionOf('namespace:read')]);
});
afterAll(async () => {
  await replica?.close();
  await operator?.close();
  await application?.close();
});

const records = async ({ requestId }: Answer) => auditOf(await eventsOf(application.database, requestId));
const permissions = (...texts: readonly string[]) => texts.map((text) => text.split(':')).map(([resourceKind, action]) => ({ action, resourceKind }));

describe.each(edges)('over %s', (edge: EdgeName) => {
  const ask = (useCase: UseCase, key = application.key) => send(edge, application.origin, useCase, key);
  const done = async (useCase: UseCase, key?: string): Promise<Answer & { readonly data: { readonly id: string } }> => {
    const answer = await ask(useCase, key);
    expect({ code: answer.code, message: answer.message }).toEqual({ code: null, message: null });
    return answer as never;
  };
  const role = async (...texts: readonly string[]) => (await done(use.createRole(namespaceId, { permissions: permissions(...texts) }))).data.id;
  const authorization = { principalId: '', action: 'administer', resource: { kind: 'installation', id: '' } };
  const judged = () => ({ ...authorization, principalId: replica.installation.servicePrincipal.servicePrincipalId, resource: { kind: 'installation', id: operator.installationId } });

  it('a Role is created, read, listed in creation order, deleted, and then unknown', async () => {
    const at = await newNamespace(`listed ${edge}`);
    const created = await done(use.createRole(at, { name: 'Readers', permissions: permissions('agent:read', 'agent:operate') }));
    const { id } = created.data;
    if (edge === 'REST') expect(created.status).toBe(201);
    expect(created.data).toEqual({ id, namespaceId: at, name: 'Readers', permissions: permissions('agent:read', 'agent:operate') });
    expect(await records(created)).toEqual([
      {
        kind: 'mutation',
        outcome: 'success',
        action: 'openclaw.iam.roles.create',
        resource: { kind: 'namespace', id: at, namespaceId: at },
        authorization: judged(),
        details: { roleId: id, permissions: permissions('agent:read', 'agent:operate') },
      },
    ]);
    const others: string[] = [];
    for (let index = 0; index < 10; index++) others.push((await done(use.createRole(at, { permissions: permissions('secret:operate') }))).data.id);
    expect((await done(use.getRole(at, id))).data).toEqual(created.data);
    const listed = ((await done(use.listRoles(at))).data as unknown as { id: string }[]).map((one) => one.id);
    expect(listed).toEqual([id, ...others]);
    const deleted = await done(use.deleteRole(at, id));
    if (edge === 'REST') expect(deleted).toMatchObject({ status: 204, data: null });
    expect(await records(deleted)).toMatchObject([{ action: 'openclaw.iam.roles.delete', resource: { kind: 'namespace', id: at }, details: { roleId: id } }]);
    for (const gone of [use.getRole(at, id), use.deleteRole(at, id)]) expect(await ask(gone)).toMatchObject({ code: 'NOT_FOUND', status: 404 });
  });

  it.each([
    ['no permission', { permissions: [] }, ['/permissions INVALID_VALUE']],
    ['a permission twice', { permissions: permissions('agent:read', 'agent:read') }, ['/permissions INVALID_VALUE']],
    ['65 permissions', { permissions: Array.from({ length: 65 }, () => ({ action: 'read', resourceKind: 'agent' })) }, ['/permissions INVALID_VALUE']],
    ['an unknown kind', { permissions: permissions('backend:read') }, ['/permissions/0 INVALID_VALUE']],
    ['the Installation', { permissions: permissions('installation:read') }, ['/permissions/0 INVALID_VALUE']],
    ['more of a Namespace than to read it', { permissions: permissions('namespace:delete') }, ['/permissions/0/action INVALID_VALUE']],
    ['an action no operation checks', { permissions: permissions('agent:use') }, ['/permissions/0/action INVALID_VALUE']],
    ['a name with white space around it', { name: ' a', permissions: permissions('agent:read') }, ['/name INVALID_FORMAT']],
  ])('no Role with %s', async (_, input, details) => {
    const answer = await ask(use.createRole(namespaceId, input));
    expect(answer).toMatchObject({ code: 'INVALID_REQUEST', status: 400 });
    expect(answer.details.map(({ path, code }) => `${path} ${code}`)).toEqual(expect.arrayContaining(details));
    expect(await records(answer)).toEqual([]);
  });

  it('a binding is recorded on its target, grants at once, and is taken away again', async () => {
    const person = await operator.principal({ namespaceId });
    const read = use.getAgent({ namespaceId, agentId });
    const roleId = await role('agent:read');
    expect((await ask(read, person.key)).code).toBe('FORBIDDEN');
    const created = await done(use.createAccessBinding(namespaceId, { subjectId: person.id, roleId, resourceKind: 'agent', resourceId: agentId }));
    const { id } = created.data;
    if (edge === 'REST') expect(created.status).toBe(201);
    expect(created.data).toEqual({ id, namespaceId, subjectKind: 'identity', subjectId: person.id, roleId, resourceKind: 'agent', resourceId: agentId });
    const record = { kind: 'mutation', outcome: 'success', resource: { kind: 'agent', id: agentId, namespaceId }, authorization: judged(), details: { bindingId: id, subjectKind: 'identity', subjectId: person.id, roleId } };
    expect(await records(created)).toEqual([{ ...record, action: 'openclaw.iam.access_bindings.create' }]);
    expect((await ask(read, person.key)).code).toBeNull();
    expect((await done(use.getAccessBinding(namespaceId, id))).data).toEqual(created.data);
    expect((await done(use.listAccessBindings(namespaceId))).data).toEqual(expect.arrayContaining([created.data]));
    expect(await ask(use.deleteRole(namespaceId, roleId))).toMatchObject({ code: 'RESOURCE_CONFLICT', status: 409 });
    const deleted = await done(use.deleteAccessBinding(namespaceId, id));
    expect(await records(deleted)).toEqual([{ ...record, action: 'openclaw.iam.access_bindings.delete' }]);
    expect((await ask(read, person.key)).code).toBe('FORBIDDEN');
    expect((await ask(use.getAccessBinding(namespaceId, id))).code).toBe('NOT_FOUND');
  });

  it('a Configuration takes the bindings that target it along, and says so', async () => {
    const person = await operator.principal({ namespaceId });
    const { id } = await admin(use.createConfiguration(namespaceId, { kind: 'agent', values: {} }));
    const bound = { subjectId: person.id, roleId: await role('configuration:read'), resourceKind: 'configuration', resourceId: id } as const;
    const bindings = [await done(use.createAccessBinding(namespaceId, bound)), await done(use.createAccessBinding(namespaceId, bound))].map(({ data }) => data.id);
    const deleted = await done(use.deleteConfiguration({ namespaceId, configurationId: id }));
    expect(await records(deleted)).toMatchObject([{ action: 'openclaw.configurations.delete', details: { removedAccessBindings: bindings } }]);
    for (const bindingId of bindings) expect((await ask(use.getAccessBinding(namespaceId, bindingId))).code).toBe('NOT_FOUND');
    const { id: unbound } = await admin(use.createConfiguration(namespaceId, { kind: 'agent', values: {} }));
    expect((await records(await done(use.deleteConfiguration({ namespaceId, configurationId: unbound }))))[0]!.details).toBeUndefined();
  });

  it('equal bindings may stand beside each other, and one of the whole Namespace is listed without a target', async () => {
    const roleId = await role('agent:read');
    const input = { subjectId, roleId, resourceKind: 'agent', resourceId: agentId };
    const [one, other] = [(await done(use.createAccessBinding(namespaceId, input))).data.id, (await done(use.createAccessBinding(namespaceId, input))).data.id];
    await done(use.deleteAccessBinding(namespaceId, one));
    expect((await done(use.getAccessBinding(namespaceId, other))).data.id).toBe(other);
    const wide = await operator.bind(subjectId, roleId, { namespaceId });
    const { data } = await done(use.getAccessBinding(namespaceId, wide));
    expect(data).toEqual({ id: wide, namespaceId, subjectKind: 'identity', subjectId, roleId, ...(edge === 'GraphQL' && { resourceKind: null, resourceId: null }) });
    const installationWide = replica.installation.bindings[0]!.bindingId;
    expect((await ask(use.getAccessBinding(namespaceId, installationWide))).code).toBe('NOT_FOUND');
    expect((await ask(use.deleteAccessBinding(namespaceId, installationWide))).code).toBe('NOT_FOUND');
    expect((await ask(use.deleteRole(namespaceId, replica.installation.role.roleId))).code).toBe('NOT_FOUND');
  });

  it.each([
    ['an Agent', 'agent:read', () => ['agent', agentId]],
    ['a revision', 'agent_revision:read', () => ['agent_revision', revisionId]],
    ['a Configuration', 'configuration:update', () => ['configuration', configurationId]],
    ['the Namespace', 'namespace:read', () => ['namespace', namespaceId]],
  ] as const)('a Role is bound to %s', async (_, permission, target) => {
    const [resourceKind, resourceId] = target();
    const { data } = await done(use.createAccessBinding(namespaceId, { subjectId, roleId: await role(permission), resourceKind, resourceId }));
    expect(data).toMatchObject({ resourceKind, resourceId });
  });

  it.each([
    ['an Agent that is not', { resourceId: 'agt_00000000-0000-4000-8000-000000000000' }, '/resourceId'],
    ['what is no id', { resourceId: 'any text' }, '/resourceId'],
    ['a revision that is not', { resourceKind: 'agent_revision', resourceId: 'rev_00000000-0000-4000-8000-000000000000' }, '/resourceId'],
    ['a Configuration that is not', { resourceKind: 'configuration', resourceId: 'cfg_00000000-0000-4000-8000-000000000000' }, '/resourceId'],
    ['a Secret that is not', { resourceKind: 'secret', resourceId: 'sec_00000000-0000-4000-8000-000000000000' }, '/resourceId'],
    ['another Namespace', { resourceKind: 'namespace', resourceId: 'ns_00000000-0000-4000-8000-000000000000' }, '/resourceId'],
    ['an unknown subject', { subjectId: 'prn_1' }, '/subjectId'],
    ['an unknown Role', { roleId: 'role_1' }, '/roleId'],
  ])('nothing is bound to %s', async (_, more, path) => {
    const input = { subjectId, roleId: await role('agent:read', 'agent_revision:read', 'configuration:read', 'secret:operate', 'namespace:read'), resourceKind: 'agent', resourceId: agentId, ...more };
    const answer = await ask(use.createAccessBinding(namespaceId, input));
    expect(answer).toMatchObject({ code: 'INVALID_REQUEST', status: 400, details: [{ path, code: 'INVALID_VALUE' }] });
    expect(await records(answer)).toEqual([]);
  });

  it('no principal of the Installation and no Role of it can be bound, but a human can', async () => {
    const roleId = await role('agent:read');
    const bind = (more: object) => use.createAccessBinding(namespaceId, { subjectId, roleId, resourceKind: 'agent', resourceId: agentId, ...more });
    const group = await operator.createGroup('bound elsewhere', { namespaceId });
    for (const [id, sentence] of [[policyAdministrator.id, 'A service principal is bound only in its own Namespace'], [group, 'A Group is bound by the operator of the host alone']] as const)
      expect(await ask(bind({ subjectId: id }))).toMatchObject({ message: sentence, details: [{ path: '/subjectId', code: 'INVALID_VALUE' }] });
    expect((await ask(bind({ roleId: replica.installation.role.roleId }))).details).toEqual([{ path: '/roleId', code: 'INVALID_VALUE' }]);
    await done(bind({ subjectId: replica.installation.administrator.principalId }));
  });

  it('a Role that creates, or permits nothing on the target, is named with its permissions', async () => {
    const bind = async (...texts: readonly string[]) => ask(use.createAccessBinding(namespaceId, { subjectId, roleId: await role(...texts), resourceKind: 'agent', resourceId: agentId }));
    expect((await bind('agent:read', 'agent:create')).message).toContain('agent:create');
    expect((await bind('secret:operate')).message).toContain('secret:operate');
  });

  it('whoever may not read the target binds nothing to it, and is refused before it is looked for', async () => {
    const roleId = await role('agent:read');
    for (const resourceId of [agentId, 'agt_00000000-0000-4000-8000-000000000000']) {
      const answer = await ask(use.createAccessBinding(namespaceId, { subjectId, roleId, resourceKind: 'agent', resourceId }), policyAdministrator.key);
      expect(answer).toMatchObject({ code: 'FORBIDDEN', status: 403 });
      expect(await records(answer)).toMatchObject([
        {
          kind: 'authorization_denial',
          action: 'openclaw.iam.access_bindings.create',
          resource: { kind: 'namespace', id: namespaceId },
          authorization: { action: 'read', resource: { kind: 'agent', id: resourceId, namespaceId } },
        },
      ]);
    }
    expect((await ask(use.createRole(namespaceId, { permissions: permissions('agent:read') }), policyAdministrator.key)).code).toBeNull();
  });

  it('a service principal is made without grants, and is used with a key', async () => {
    const created = await done(use.createServicePrincipal(namespaceId));
    if (edge === 'REST') expect(created.status).toBe(201);
    expect(created.data).toEqual({ id: created.data.id, namespaceId });
    expect(await records(created)).toMatchObject([{ action: 'openclaw.iam.service_principals.create', resource: { kind: 'namespace', id: namespaceId }, details: { servicePrincipalId: created.data.id } }]);
    const { data } = await done(use.issueServiceKey({ servicePrincipalId: created.data.id, namespaceId, name: 'first' }));
    expect((await ask(use.getNamespace(namespaceId), (data as unknown as { key: string }).key)).code).toBe('FORBIDDEN');
  });

  it('a Namespace that is not has no policy, and one that is gone takes nothing new', async () => {
    const gone = await newNamespace(`gone ${edge}`);
    const kept = await operator.createRole([permissionOf('agent:read')], { namespaceId: gone });
    await admin(use.deleteNamespace(gone));
    const forget = { type: 'RemoveResourcePolicy', resourceKind: 'namespace', resourceId: gone, namespaceId: gone } as const;
    await operator.streams.execute(iam, '', forget, systemContext(operator.installationId));
    const creations = [use.createRole(gone, { permissions: permissions('agent:read') }), use.createServicePrincipal(gone)];
    for (const useCase of [...creations, use.getRole(gone, kept)]) expect(await ask(useCase)).toMatchObject({ code: 'NOT_FOUND', status: 404 });
    const claim = { workKey: workKey.namespaceDeletion(gone), claimToken: 'told' };
    await operator.streams.execute(namespaces, gone, { type: 'RemoveNamespace', namespaceId: gone, claim }, systemContext(operator.installationId));
    for (const id of [gone, 'ns_00000000-0000-4000-8000-000000000000'])
      for (const useCase of [use.createRole(id, { permissions: permissions('agent:read') }), use.deleteRole(id, kept), use.createServicePrincipal(id), use.getAccessBinding(id, 'bnd_1')])
        expect(await ask(useCase)).toMatchObject({ code: 'NOT_FOUND', status: 404 });
  });
});

it('GraphQL pages Roles and bindings by cursor, and reads them by their global ids', async () => {
  const at = await newNamespace('paged');
  const roles = [];
  for (let index = 0; index < 3; index++) roles.push((await admin(use.createRole(at, { name: `Role ${index}`, permissions: permissions('agent:read') }))).id);
  const page = async (args: string) => {
    const { data } = await application.client.graphql<{ namespace: { roles: { nodes: { id: string; roleId: string }[]; pageInfo: { hasNextPage: boolean; endCursor: string } } } }>(
      `query($id: ID!) { namespace(id: $id) { roles(${args}) { nodes { id roleId } pageInfo { hasNextPage endCursor } } } }`,
      { id: at },
    );
    return data.namespace.roles;
  };
  const first = await page('first: 2');
  expect([first.nodes.map(({ roleId }) => roleId), first.pageInfo.hasNextPage]).toEqual([roles.slice(0, 2), true]);
  const second = await page(`first: 2, after: "${first.pageInfo.endCursor}"`);
  expect([second.nodes.map(({ roleId }) => roleId), second.pageInfo.hasNextPage]).toEqual([roles.slice(2), false]);
  expect(await page('after: "role_gone"')).toBeNull();
  const { data } = await application.client.graphql<object>('query($id: ID!) { node(id: $id) { id ... on Role { name } } role(id: $id) { name } }', { id: first.nodes[0]!.id });
  expect(data).toEqual({ node: { id: first.nodes[0]!.id, name: 'Role 0' }, role: { name: 'Role 0' } });
});

it('GraphQL binds to the global id of a resource as well', async () => {
  const { id: roleId } = await admin(use.createRole(namespaceId, { permissions: permissions('agent:read') }));
  const { data: found } = await application.client.graphql<{ agent: { id: string } }>('query($id: ID!, $ns: ID) { agent(id: $id, namespaceId: $ns) { id } }', { id: agentId, ns: namespaceId });
  const bind = 'mutation($input: CreateAccessBindingInput!) { createAccessBinding(input: $input) { ... on CreateAccessBindingPayload { accessBinding { resourceId } } ... on Refusal { code details { path } } } }';
  const input = { namespaceId, subjectId: replica.installation.administrator.principalId, roleId, resourceKind: 'agent', resourceId: found.agent.id };
  const { data } = await application.client.graphql<object>(bind, { input });
  expect(data).toEqual({ createAccessBinding: { accessBinding: { resourceId: agentId } } });
});

describe('races', () => {
  const bindAgent = async (subject = subjectId) => {
    const { id: roleId } = await admin(use.createRole(namespaceId, { permissions: permissions('agent:read') }));
    return { subjectKind: 'identity', subjectId: subject, roleId, resourceKind: 'agent', resourceId: agentId } as const;
  };

  it('authority that is taken away while a binding is under way never passes', async () => {
    const leaving = await operator.principal();
    const revoke = await leaving.grant([permissionOf('installation:administer'), permissionOf('namespace:read'), permissionOf('agent:read')]);
    const caller = { ...replica.caller(), actor: { principalId: leaving.id, kind: 'service_principal' } as const, requestId: `req_leaving` };
    const held = replica.holdNext('AccessBindingCreated');
    const binding = replica.services.iam.createAccessBinding(caller, namespaceId, sent(await bindAgent())).catch((error: unknown) => error);
    await held.reached;
    await revoke();
    held.release();
    expect(await binding).toMatchObject({ code: 'FORBIDDEN' });
    expect(auditOf(await eventsOf(application.database, 'req_leaving'))).toMatchObject([{ kind: 'authorization_denial', authorization: { principalId: leaving.id, action: 'administer' } }]);
  });

  it('a binding to an Agent that is removed meanwhile is refused', async () => {
    const { id } = await admin(use.createAgent(namespaceId, { name: 'leaving', configurationId, harnessAuth: { method: 'runtime' } }));
    const input = { ...(await bindAgent()), resourceId: id };
    const held = replica.holdNext('AccessBindingCreated');
    const binding = replica.services.iam.createAccessBinding(replica.caller(), namespaceId, sent(input)).catch((error: unknown) => error);
    await held.reached;
    const { state } = await operator.streams.load(agents, id);
    const servicePrincipalId = state.phase === 'present' ? state.servicePrincipalId : '';
    await operator.streams.execute(iam, '', { type: 'RemoveAgentBindings', agentId: id, namespaceId, servicePrincipalId, revisionIds: [] }, systemContext(operator.installationId));
    held.release();
    expect(await binding).toMatchObject({ code: 'INVALID_REQUEST', details: [{ path: '/resourceId', code: 'INVALID_VALUE' }] });
  });

  it('coverage that is lost while a key is issued leaves neither key nor row', async () => {
    const target = await operator.createServicePrincipal({ namespaceId });
    const issuer = await operator.principal();
    await issuer.grant([permissionOf('installation:administer')]);
    const caller = { ...replica.caller(), actor: { principalId: issuer.id, kind: 'service_principal' } as const, requestId: 'req_issuer' };
    const held = replica.holdNext('ServiceKeyIssued');
    const issued = replica.services.serviceKeys.issue(caller, sent({ servicePrincipalId: target, namespaceId, name: 'late' })).catch((error: unknown) => error);
    await held.reached;
    await operator.bind(target, await operator.createRole([permissionOf('agent:read')], { namespaceId }), { namespaceId });
    held.release();
    expect(await issued).toMatchObject({ code: 'FORBIDDEN' });
    expect(auditOf(await eventsOf(application.database, 'req_issuer'))).toMatchObject([{ reasonCode: 'SERVICE_PRINCIPAL_GRANTS_NOT_COVERED' }]);
    const { rows } = await application.database.pool.query('select from service_key where service_principal_id = $1', [target]);
    expect(rows).toEqual([]);
  });

  it('whoever loses his authority while he revokes a key revokes nothing', async () => {
    const target = await operator.principal();
    const leaving = await operator.principal();
    const revoke = await leaving.grant([permissionOf('installation:administer')]);
    const caller = { ...replica.caller(), actor: { principalId: leaving.id, kind: 'service_principal' } as const, requestId: 'req_revoking' };
    const [keyId] = (await operator.streams.load(iam, '')).state.keys.filter(({ servicePrincipalId }) => servicePrincipalId === target.id).keys();
    const held = replica.holdNext('ServiceKeyRevoked');
    const revoked = replica.services.serviceKeys.revoke(caller, keyId!).catch((error: unknown) => error);
    await held.reached;
    await revoke();
    held.release();
    expect(await revoked).toMatchObject({ code: 'FORBIDDEN' });
    const { rows } = await application.database.pool.query('select key_id from service_key where key_id = $1', [keyId]);
    expect(rows, 'the row of a key that is still issued').toEqual([{ key_id: keyId }]);
  });

  it('whoever loses his authority while he makes an account makes none', async () => {
    const leaving = await operator.principal();
    const revoke = await leaving.grant([permissionOf('installation:administer')]);
    const caller = { ...replica.caller(), actor: { principalId: leaving.id, kind: 'principal' } as const, requestId: 'req_accounting' };
    const held = replica.holdNext('PrincipalCreated');
    const created = replica.services.accounts.create(caller, sent({ email: 'late@example.test', password: 'correct horse battery' })).catch((error: unknown) => error);
    await held.reached;
    await revoke();
    held.release();
    expect(await created).toMatchObject({ code: 'FORBIDDEN' });
    expect(await eventsOf(application.database, 'req_accounting')).toMatchObject([{ type: 'AuthorizationDenied' }]);
    const { rows } = await application.database.pool.query(`select from account where email = 'late@example.test'`);
    expect(rows).toEqual([]);
  });
});
