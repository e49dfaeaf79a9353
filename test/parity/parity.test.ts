/** Both edges are one product: the same use case on equal state gives the same code, the same details, the same events and the same audit record. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Code } from '../../src/kernel/errors.ts';
import { auditOf, eventsOf, type RecordedEvent } from '../support/request-events.ts';
import { send, useCases as use, type Answer, type UseCase } from '../support/use-cases.ts';
import { createWorlds, type World, type Worlds } from './world.ts';

type Details = readonly string[];
type Case = readonly [what: string, useCase: (world: World) => UseCase | Promise<UseCase>, code: Code | null, details?: Details];

const runtime = { method: 'runtime' };
const key = 'a-key-of-enough-length';
const deep = (levels: number): object => (levels === 0 ? {} : { a: deep(levels - 1) });
const secret = (namespaceId: string) => ({ kind: 'secret', namespaceId, id: 'sec_1' });
const invalid = 'INVALID_REQUEST';

const namespaces: readonly Case[] = [
  ['reads the Installation', () => use.getInstallation(), null],
  ['lists Namespaces', () => use.listNamespaces(), null],
  ['creates a Namespace', (w) => use.createNamespace({ name: w.name('created') }), null],
  ['refuses a name with white space around it', () => use.createNamespace({ name: ' a' }), invalid, ['/name INVALID_FORMAT']],
  ['refuses an empty name', () => use.createNamespace({ name: '' }), invalid, ['/name INVALID_VALUE', '/name INVALID_FORMAT']],
  ['refuses a name of 201 characters', () => use.createNamespace({ name: 'a'.repeat(201) }), invalid, ['/name TOO_LONG']],
  ['refuses a malformed Namespace to adopt', (w) => use.createNamespace({ name: w.name('adopting'), existingNamespace: 'No' }), invalid, ['/existingNamespace INVALID_FORMAT']],
  ['cannot adopt a Namespace', (w) => use.createNamespace({ name: w.name('adopting'), existingNamespace: 'team' }), 'RESOURCE_CONFLICT'],
  ['refuses a taken Namespace name', () => use.createNamespace({ name: 'default' }), 'RESOURCE_CONFLICT'],
  ['answers a repeated creation with what the first one made', async (w) => repeated(w, use.createNamespace({ name: w.name('repeated') }, `${key}-${w.edge}`)), null],
  ['refuses the key of another creation', async (w) => (await repeated(w, use.createNamespace({ name: w.name('first') }, `${key}-2-${w.edge}`)), use.createNamespace({ name: w.name('second') }, `${key}-2-${w.edge}`)), 'RESOURCE_CONFLICT'],
  ['reads a Namespace', (w) => use.getNamespace(w.namespaceId), null],
  ['knows no such Namespace', () => use.getNamespace('ns_00000000-0000-4000-8000-000000000000'), 'NOT_FOUND'],
  ['deletes an empty Namespace', async (w) => use.deleteNamespace(await w.namespace()), null],
  ['deletes a Namespace again', (w) => use.deleteNamespace(w.deleting), null],
  ['keeps a Namespace that holds something', (w) => use.deleteNamespace(w.namespaceId), 'NAMESPACE_NOT_EMPTY'],
  ['has no such Namespace to delete', () => use.deleteNamespace('ns_00000000-0000-4000-8000-000000000000'), 'NOT_FOUND'],
];

const creating = (values: object, more: object = {}) => (w: World) => use.createConfiguration(w.namespaceId, { kind: 'agent', values, ...more });
const provider = (more: object) => ({ models: { providers: { acme: more } } });

const configurations: readonly Case[] = [
  ['creates a Configuration', creating({ logging: { level: 'debug' } }), null],
  ['creates a Configuration while the Namespace is provisioning', (w) => use.createConfiguration(w.provisioning, { kind: 'agent', values: {} }), null],
  ['answers a repeated creation of a Configuration', (w) => repeated(w, creating({}, { idempotencyKey: key })(w)), null],
  ['refuses the key of another Configuration', async (w) => (await repeated(w, creating({}, { idempotencyKey: `${key}-2` })(w)), creating({ a: 1 }, { idempotencyKey: `${key}-2` })(w)), 'RESOURCE_CONFLICT'],
  ['refuses a short idempotency key', creating({}, { idempotencyKey: 'short' }), invalid, ['/idempotencyKey INVALID_VALUE']],
  ['refuses values that are no object', (w) => use.createConfiguration(w.namespaceId, { kind: 'agent', values: [] }), invalid, ['/values INVALID_TYPE']],
  ['refuses a literal key', creating(provider({ apiKey: 'literal' })), invalid, ['/values/models/providers/acme/apiKey INVALID_VALUE']],
  ['refuses a literal credential in the environment', creating({ env: { MY_TOKEN: 'literal' } }), invalid, ['/values/env/MY_TOKEN INVALID_VALUE']],
  ['refuses an endpoint that is no URL', creating(provider({ baseUrl: 'ftp://a' })), invalid, ['/values/models/providers/acme/baseUrl INVALID_VALUE']],
  ['refuses a document that nests too deep', creating(deep(24)), invalid, [`/values${'/a'.repeat(23)} TOO_DEEP`]],
  ['refuses the name of a prototype', creating({ constructor: 1 }), invalid, ['/values/constructor INVALID_VALUE']],
  ['refuses text no store keeps', creating({ a: '\u0000' }), invalid, ['/values/a INVALID_VALUE']],
  ['refuses a reserved destination of a Secret', (w) => creating({}, { secretBindings: { PATH: { source: secret(w.namespaceId) } } })(w), invalid, ['/secretBindings/PATH INVALID_VALUE']],
  ['refuses a Secret of another Namespace', (w) => creating({}, { secretBindings: { A: { source: secret(w.foreign.namespaceId) } } })(w), invalid, ['/secretBindings/A/source/namespaceId INVALID_VALUE']],
  ['refuses an unknown kind of source', creating({}, { secretBindings: { A: { source: { kind: 'file' } } } }), invalid, ['/secretBindings/A/source/namespaceId REQUIRED', '/secretBindings/A/source/id REQUIRED', '/secretBindings/A/source/kind INVALID_VALUE']],
  ['knows no such Secret', (w) => creating({}, { secretBindings: { A: { source: secret(w.namespaceId) } } })(w), 'NOT_FOUND'],
  ['creates nothing in a failed Namespace', (w) => use.createConfiguration(w.failed, { kind: 'agent', values: {} }), 'RESOURCE_CONFLICT'],
  ['creates nothing in a Namespace that is being deleted', (w) => use.createConfiguration(w.deleting, { kind: 'agent', values: {} }), 'RESOURCE_CONFLICT'],
  ['creates nothing in a Namespace that is not', () => use.createConfiguration('ns_00000000-0000-4000-8000-000000000000', { kind: 'agent', values: {} }), 'NOT_FOUND'],
  ['reads a Configuration', async (w) => use.getConfiguration(await w.configuration({ a: 1 })), null],
  ['knows no such Configuration', (w) => use.getConfiguration(w.nothing), 'NOT_FOUND'],
  ['knows no Configuration of another Namespace', (w) => use.getConfiguration({ ...w.foreign, namespaceId: w.namespaceId }), 'NOT_FOUND'],
  ['replaces a Configuration', async (w) => use.updateConfiguration(await w.configuration(), { values: { b: 2 } }), null],
  ['replaces the generation it was read at', async (w) => use.updateConfiguration(await w.configuration(), { values: {} }, 1), null],
  ['refuses a stale generation', async (w) => use.updateConfiguration(await w.configuration(), { values: {} }, 7), 'RESOURCE_CONFLICT'],
  ['refuses a literal key in a change', async (w) => use.updateConfiguration(await w.configuration(), { values: provider({ apiKey: 'literal' }) }), invalid, ['/values/models/providers/acme/apiKey INVALID_VALUE']],
  ['has no such Configuration to replace', (w) => use.updateConfiguration(w.nothing, { values: {} }), 'NOT_FOUND'],
  ['deletes a Configuration', async (w) => use.deleteConfiguration(await w.configuration()), null],
  ['keeps a Configuration that an Agent names', async (w) => (await w.agent(), use.deleteConfiguration(w)), 'RESOURCE_CONFLICT'],
  ['has no such Configuration to delete', (w) => use.deleteConfiguration(w.nothing), 'NOT_FOUND'],
];

const draft = (more: object, namespaceId?: (w: World) => string) => (w: World) =>
  use.createAgent(namespaceId?.(w) ?? w.namespaceId, { name: w.name('draft'), configurationId: w.configurationId, ...more });
const everything = {
  executionMode: 'dedicated',
  harnessAuth: runtime,
  plugins: { 'acme.search': { enabled: false, toolDefaults: { approval: 'none' } } },
  pluginApprovers: [{ channel: 'slack', id: 'U1' }],
};

const drafts: readonly Case[] = [
  ['creates an Agent', draft({}), null],
  ['creates an Agent with everything', draft(everything), null],
  ['creates an Agent while the Namespace is provisioning', async (w) => use.createAgent(w.provisioning, { name: w.name('draft'), configurationId: (await configurationOf(w, w.provisioning)).configurationId }), null],
  ['answers a repeated creation of an Agent', (w) => repeated(w, draft({ idempotencyKey: key })(w)), null],
  ['refuses the key of another Agent', async (w) => (await repeated(w, draft({ idempotencyKey: `${key}-2` })(w)), draft({ idempotencyKey: `${key}-2`, harnessAuth: runtime })(w)), 'RESOURCE_CONFLICT'],
  ['refuses a malformed Configuration id', draft({ configurationId: 'cfg_1' }), invalid, ['/configurationId INVALID_FORMAT']],
  ['refuses an unknown method of authentication', draft({ harnessAuth: { method: 'magic' } }), invalid, ['/harnessAuth INVALID_VALUE']],
  ['refuses a member the method does not have', draft({ harnessAuth: { method: 'runtime', token: 'a' } }), invalid, ['/harnessAuth INVALID_VALUE']],
  ['refuses a Secret of another Namespace for the Harness', (w) => draft({ harnessAuth: { method: 'api_key', source: secret(w.foreign.namespaceId) } })(w), invalid, ['/harnessAuth/source/namespaceId INVALID_VALUE']],
  ['refuses a credential source that is not listed', draft({ harnessAuth: { method: 'credential_source', sourceId: 'cs_1' } }), invalid, ['/harnessAuth/sourceId INVALID_VALUE']],
  ['refuses an empty Backend id', draft({ backendId: '' }), invalid, ['/backendId INVALID_TYPE']],
  ['refuses a malformed plugin id', draft({ plugins: { 'no spaces': { enabled: true } } }), invalid, ['/plugins/no spaces UNKNOWN_FIELD']],
  ['refuses an approver named twice', draft({ pluginApprovers: [everything.pluginApprovers[0], everything.pluginApprovers[0]] }), invalid, ['/pluginApprovers INVALID_VALUE']],
  ['refuses more than eight credential sources', draft({ credentialSources: Array.from({ length: 9 }, (_, index) => ({ sourceId: `cs_${index}` })) }), invalid, ['/credentialSources INVALID_VALUE']],
  ['refuses a fifth workspace file', draft({ initialWorkspaceFiles: { 'OTHER.md': '' } }), invalid, ['/initialWorkspaceFiles/OTHER.md UNKNOWN_FIELD']],
  ['refuses a workspace file with a NUL', draft({ initialWorkspaceFiles: { 'SOUL.md': '\u0000' } }), invalid, ['/initialWorkspaceFiles/SOUL.md INVALID_FORMAT']],
  ['refuses a workspace file of more than 16 KiB', draft({ initialWorkspaceFiles: { 'SOUL.md': 'é'.repeat(10_000) } }), invalid, []],
  ['cannot apply workspace files yet', draft({ initialWorkspaceFiles: { 'SOUL.md': 'kind' } }), 'NOT_IMPLEMENTED'],
  ['refuses stale workspace defaults', draft({ workspaceDefaultsId: 'a'.repeat(64) }), 'RESOURCE_CONFLICT'],
  ['knows no Backend', draft({ backendId: 'anywhere' }), 'NOT_FOUND'],
  ['has no Credential Gateway', draft({ credentialSources: [{ sourceId: 'cs_1' }] }), 'CREDENTIAL_GATEWAY_NOT_CONFIGURED'],
  ['knows no such Configuration for an Agent', (w) => draft({ configurationId: w.nothing.configurationId })(w), 'NOT_FOUND'],
  ['knows no Configuration of another Namespace for an Agent', (w) => draft({ configurationId: w.foreign.configurationId })(w), 'NOT_FOUND'],
  ['knows no such Secret for an Agent', (w) => draft({ harnessAuth: { method: 'api_key', source: secret(w.namespaceId) } })(w), 'NOT_FOUND'],
  ['refuses a name another Agent has', async (w) => (await w.agent({ name: 'namesake' }), draft({ name: 'namesake' })(w)), 'RESOURCE_CONFLICT'],
  ['creates no Agent in a failed Namespace', draft({}, ({ failed }) => failed), 'RESOURCE_CONFLICT'],
  ['creates no Agent in a Namespace that is being deleted', draft({}, ({ deleting }) => deleting), 'RESOURCE_CONFLICT'],
  ['creates no Agent in a Namespace that is not', draft({}, () => 'ns_00000000-0000-4000-8000-000000000000'), 'NOT_FOUND'],
  ['lists Agents', async (w) => use.listAgents((await w.agent({}, w.foreign.namespaceId)).namespaceId), null],
  ['has no such Namespace to list', () => use.listAgents('ns_00000000-0000-4000-8000-000000000000'), 'NOT_FOUND'],
  ['reads an Agent', async (w) => use.getAgent(await w.agent(everything)), null],
  ['reads an Agent that is being deleted', async (w) => use.getAgent(await w.beingDeleted()), null],
  ['knows no such Agent', (w) => use.getAgent(w.nothing), 'NOT_FOUND'],
  ['knows no Agent of another Namespace', async (w) => use.getAgent({ ...(await w.agent()), namespaceId: w.foreign.namespaceId }), 'NOT_FOUND'],
  ['binds the same Configuration again', async (w) => use.updateAgent(await w.agent(), { configurationId: w.configurationId }), null],
  ['binds another Configuration', async (w) => use.updateAgent(await w.agent(), { configurationId: (await w.configuration()).configurationId }), null],
  ['changes everything', async (w) => use.updateAgent(await w.agent(), { configurationId: w.configurationId, ...everything }), null],
  ['clears what can be cleared', async (w) => use.updateAgent(await w.agent(everything), { configurationId: w.configurationId, harnessAuth: null, backendId: null, plugins: {}, pluginApprovers: null }), null],
  ['refuses a stale draft', async (w) => use.updateAgent(await w.agent(), { configurationId: w.configurationId }, 99), 'RESOURCE_CONFLICT'],
  ['refuses an unknown method in a change', async (w) => use.updateAgent(await w.agent(), { configurationId: w.configurationId, harnessAuth: { method: 'magic' } }), invalid, ['/harnessAuth INVALID_VALUE']],
  ['refuses a malformed Configuration id in a change', async (w) => use.updateAgent(await w.agent(), { configurationId: 'cfg_1' }), invalid, ['/configurationId INVALID_FORMAT']],
  ['knows no such Configuration in a change', async (w) => use.updateAgent(await w.agent(), { configurationId: w.nothing.configurationId }), 'NOT_FOUND'],
  ['knows no Backend in a change', async (w) => use.updateAgent(await w.agent(), { configurationId: w.configurationId, backendId: 'anywhere' }), 'NOT_FOUND'],
  ['has no such Agent to change', (w) => use.updateAgent(w.nothing, { configurationId: w.configurationId }), 'NOT_FOUND'],
  ['changes no Agent that is being deleted', async (w) => use.updateAgent(await w.beingDeleted(), { configurationId: w.configurationId }), 'AGENT_DELETING'],
  ['changes no Agent that is stopping', async (w) => use.updateAgent(await w.stopping(), { configurationId: w.configurationId }), 'RESOURCE_CONFLICT'],
];

const running: readonly Case[] = [
  ['deploys', async (w) => use.deployAgent(await w.agent()), null],
  ['deploys again', async (w) => use.deployAgent(await w.deployed()), null],
  ['deploys an Agent that is stopping', async (w) => use.deployAgent(await w.stopping()), null],
  ['answers a repeated deploy with its first revision', async (w) => repeated(w, use.deployAgent(await w.agent(), key)), null],
  ['deploys nothing without harness authentication', async (w) => use.deployAgent(await w.agent({ harnessAuth: null })), 'RESOURCE_CONFLICT'],
  ['deploys nothing that Compute cannot run', async (w) => use.deployAgent(await w.agent({ executionMode: 'dedicated' })), 'RESOURCE_CONFLICT'],
  ['deploys no document with conflicting runtimes', async (w) => use.deployAgent(await w.agent({ configurationId: (await w.configuration({ agents: { list: [{}] } })).configurationId })), invalid, []],
  ['deploys nothing before the Namespace is ready', async (w) => use.deployAgent(await w.agent({}, w.provisioning)), 'NAMESPACE_NOT_READY'],
  ['deploys no Agent that is being deleted', async (w) => use.deployAgent(await w.beingDeleted()), 'AGENT_DELETING'],
  ['has no such Agent to deploy', (w) => use.deployAgent(w.nothing), 'NOT_FOUND'],
  ['refuses a key the native admin UI', async (w) => use.getAgentNativeAdmin(await w.agent()), 'FORBIDDEN'],
  ['stops', async (w) => use.stopAgent(await w.deployed()), null],
  ['stops again', async (w) => use.stopAgent(await w.stopping()), null],
  ['stops an Agent that never ran', async (w) => use.stopAgent(await w.agent()), null],
  ['leaves an Agent that is being deleted as it is', async (w) => use.stopAgent(await w.beingDeleted()), null],
  ['has no such Agent to stop', (w) => use.stopAgent(w.nothing), 'NOT_FOUND'],
  ['deletes', async (w) => use.deleteAgent(await w.deployed()), null],
  ['deletes again', async (w) => use.deleteAgent(await w.beingDeleted()), null],
  ['leaves a failed deletion to who began it', async (w) => use.deleteAgent(await w.deletionOfAnother()), 'FORBIDDEN'],
  ['has no such Agent to delete', (w) => use.deleteAgent(w.nothing), 'NOT_FOUND'],
  ['lists revisions', async (w) => use.listAgentRevisions(await w.deployed()), null],
  ['lists no revisions of an Agent that never ran', async (w) => use.listAgentRevisions(await w.agent()), null],
  ['has no such Agent to list revisions of', (w) => use.listAgentRevisions(w.nothing), 'NOT_FOUND'],
  ['reads a revision', async (w) => use.getAgentRevision(await w.deployed()), null],
  ['knows no such revision', async (w) => use.getAgentRevision({ ...w.nothing, ...(await w.agent()) }), 'NOT_FOUND'],
  ['knows no revision of another Agent', async (w) => use.getAgentRevision({ ...(await w.deployed()), ...(await w.agent()) }), 'NOT_FOUND'],
  ['reads a deployment', async (w) => use.getAgentDeployment(await w.deployed()), null],
  ['knows no such deployment', async (w) => use.getAgentDeployment({ ...w.nothing, ...(await w.agent()) }), 'NOT_FOUND'],
  ['knows no deployment of another Agent', async (w) => use.getAgentDeployment({ ...(await w.deployed()), ...(await w.agent()) }), 'NOT_FOUND'],
  ['refuses more than a request may carry', creating({ a: 'a'.repeat(1_100_000) }), 'PAYLOAD_TOO_LARGE'],
];

const permitting = (permission: string) => {
  const [resourceKind, action] = permission.split(':');
  return { permissions: [{ action, resourceKind }] };
};
const binding = (more: object) => async (w: World) => use.createAccessBinding(w.namespaceId, { ...(await w.bindable()), ...more });

const policy: readonly Case[] = [
  ['creates a Role', (w) => use.createRole(w.namespaceId, { name: w.name('role'), ...permitting('agent:read') }), null],
  ['refuses a permission that no operation checks', (w) => use.createRole(w.namespaceId, permitting('secret:deploy')), invalid, ['/permissions/0/action INVALID_VALUE']],
  ['refuses a kind that a Namespace does not grant', (w) => use.createRole(w.namespaceId, permitting('installation:read')), invalid, ['/permissions/0 INVALID_VALUE']],
  ['refuses a permission twice', (w) => use.createRole(w.namespaceId, { permissions: [...permitting('agent:read').permissions, ...permitting('agent:read').permissions] }), invalid, ['/permissions INVALID_VALUE']],
  ['refuses a Role without permissions', (w) => use.createRole(w.namespaceId, { permissions: [] }), invalid, ['/permissions INVALID_VALUE']],
  ['creates no Role in a Namespace that is not', () => use.createRole('ns_00000000-0000-4000-8000-000000000000', permitting('agent:read')), 'NOT_FOUND'],
  ['reads a Role', async (w) => use.getRole(w.namespaceId, await w.role()), null],
  ['knows no such Role', (w) => use.getRole(w.namespaceId, w.nothing.roleId), 'NOT_FOUND'],
  ['lists Roles', (w) => use.listRoles(w.namespaceId), null],
  ['deletes a Role', async (w) => use.deleteRole(w.namespaceId, await w.role()), null],
  ['keeps a Role that is bound', async (w) => use.deleteRole(w.namespaceId, (await boundRole(w)).roleId), 'RESOURCE_CONFLICT'],
  ['has no such Role to delete', (w) => use.deleteRole(w.namespaceId, w.nothing.roleId), 'NOT_FOUND'],
  ['binds a Role', binding({}), null],
  ['binds nothing to a target that is not', (w) => binding({ resourceId: w.nothing.agentId })(w), invalid, ['/resourceId INVALID_VALUE']],
  ['binds nothing to another Namespace', (w) => binding({ resourceKind: 'namespace', resourceId: w.foreign.namespaceId })(w), invalid, ['/resourceId INVALID_VALUE']],
  ['binds nobody who is not', binding({ subjectId: 'prn_1' }), invalid, ['/subjectId INVALID_VALUE']],
  ['binds no Role that is not', (w) => binding({ roleId: w.nothing.roleId })(w), invalid, ['/roleId INVALID_VALUE']],
  ['binds no Role that creates', async (w) => binding({ roleId: await w.role('agent:create') })(w), invalid, ['/roleId INVALID_VALUE']],
  ['binds no subject without an id', binding({ subjectId: '' }), invalid, ['/subjectId INVALID_VALUE']],
  ['binds nothing to an Agent that is being deleted', async (w) => binding({ resourceId: (await w.beingDeleted()).agentId })(w), invalid, ['/resourceId INVALID_VALUE']],
  ['reads a binding', async (w) => use.getAccessBinding(w.namespaceId, await w.binding()), null],
  ['lists bindings', (w) => use.listAccessBindings(w.namespaceId), null],
  ['knows no such binding', (w) => use.getAccessBinding(w.namespaceId, w.nothing.bindingId), 'NOT_FOUND'],
  ['deletes a binding', async (w) => use.deleteAccessBinding(w.namespaceId, await w.binding()), null],
  ['has no such binding to delete', (w) => use.deleteAccessBinding(w.namespaceId, w.nothing.bindingId), 'NOT_FOUND'],
  ['makes a service principal', (w) => use.createServicePrincipal(w.namespaceId), null],
  ['issues a key', async (w) => use.issueServiceKey({ servicePrincipalId: await w.servicePrincipal(), namespaceId: w.namespaceId, name: 'parity' }), null],
  ['issues no key of another scope', async (w) => use.issueServiceKey({ servicePrincipalId: await w.servicePrincipal(), name: 'parity' }), invalid, ['/namespaceId INVALID_VALUE']],
  ['issues no key for nobody', () => use.issueServiceKey({ servicePrincipalId: 'spn_1', name: 'parity' }), invalid, ['/servicePrincipalId INVALID_VALUE']],
  ['issues no key for an hour', () => use.issueServiceKey({ servicePrincipalId: 'spn_1', name: 'parity', expiresIn: 3_600 }), invalid, ['/expiresIn INVALID_VALUE']],
  ['revokes a key', async (w) => use.revokeServiceKey(await w.serviceKey()), null],
  ['has no such key to revoke', (w) => use.revokeServiceKey(w.nothing.keyId), 'NOT_FOUND'],
];

const boundRole = async (w: World) => {
  const bindable = await w.bindable();
  const { application, keys } = worlds;
  await send('REST', application.origin, use.createAccessBinding(w.namespaceId, bindable), keys.administrator);
  return bindable;
};

/** What GraphQL's own types refuse before our schemas see it; only the code is the same. */
const typed: readonly Case[] = [
  ['a missing member', (w) => use.createAgent(w.namespaceId, { name: 'a' }), invalid],
  ['an unknown member', (w) => draft({ servicePrincipalId: 'spn_1' })(w), invalid],
  ['an unknown literal', (w) => draft({ executionMode: 'remote' })(w), invalid],
  ['a wrong type', (w) => use.createNamespace({ name: w.name('a').length }), invalid],
  ['a malformed id', () => use.getNamespace('ns_1'), invalid],
];

const strangers: readonly Case[] = [
  ...[...namespaces, ...configurations, ...drafts, ...running, ...policy].flatMap(([what, useCase, code]): Case[] => (code === null && what !== 'lists Namespaces' ? [[what, useCase, 'FORBIDDEN']] : [])),
  ['learns nothing of a Namespace that is not', () => use.getNamespace('ns_00000000-0000-4000-8000-000000000000'), 'FORBIDDEN'],
  ['learns nothing of an Agent that is not', (w) => use.deployAgent(w.nothing), 'FORBIDDEN'],
  ['learns nothing of a failed Namespace', draft({}, ({ failed }) => failed), 'FORBIDDEN'],
  ['learns nothing of a taken name', async (w) => (await w.agent({ name: 'unseen' }), draft({ name: 'unseen' })(w)), 'FORBIDDEN'],
  ['is told of a malformed body first', draft({ configurationId: 'cfg_1' }), invalid, ['/configurationId INVALID_FORMAT']],
];

let worlds: Worlds;
beforeAll(async () => {
  worlds = await createWorlds();
});
afterAll(() => worlds?.close());

/** The same use case after it has been sent once. */
const repeated = async (world: World, useCase: UseCase): Promise<UseCase> => {
  const { application, keys } = worlds;
  await send(world.edge, application.origin, useCase, keys.administrator);
  return useCase;
};

const configurationOf = async ({ edge }: World, namespaceId: string) => {
  const { application, keys } = worlds;
  const { data } = await send(edge, application.origin, use.createConfiguration(namespaceId, { kind: 'agent', values: {} }), keys.administrator);
  return { namespaceId, configurationId: (data as { id: string }).id };
};

/** Ids as the number of their first mention, times, digests and keys as what they are, and the edge's own name left out. */
const masked = (value: unknown): unknown => {
  const ids: string[] = [];
  const number = (id: string): number => {
    if (!ids.includes(id)) ids.push(id);
    return ids.indexOf(id);
  };
  const text = JSON.stringify(value)
    .replaceAll(/[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}/g, (id) => `#${number(id)}`)
    .replaceAll(/\d{4}-\d{2}-\d{2}T[\d:.]+Z/g, 'time')
    .replaceAll(/[0-9a-f]{64}/g, 'digest')
    .replaceAll(/exk\.[^"]+/g, 'key')
    .replaceAll(/ of (REST|GraphQL)|-(REST|GraphQL)/g, '');
  return JSON.parse(text) as unknown;
};

const withoutNulls = (value: unknown): unknown => {
  if (Array.isArray(value)) return value.map(withoutNulls);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).flatMap(([member, inner]) => (inner === null ? [] : [[member, withoutNulls(inner)]])));
};

/** Everything of an event that is not its place: policy and predecessors differ between any two requests. */
const comparable = ({ stream, type, data, metadata: { policyRevision, previousHash: _, ...metadata } }: RecordedEvent) => ({
  stream,
  type,
  data,
  metadata: { ...metadata, judged: policyRevision !== null },
});

interface Outcome {
  readonly answer: Answer;
  readonly events: readonly RecordedEvent[];
}

const outcomeOn = async (world: World, as: keyof Worlds['keys'], useCase: Case[1]): Promise<Outcome> => {
  const { application, keys } = worlds;
  const answer = await send(world.edge, application.origin, await useCase(world), keys[as]);
  return { answer, events: await eventsOf(application.database, answer.requestId) };
};

const audited = new Set<Code | null>([null, 'FORBIDDEN', 'NAMESPACE_NOT_READY']);
/** The same answer in another form: all Namespaces of both worlds, and a payload that says by its type what REST says by a member. */
const shownOtherwise = new Set(['lists Namespaces', 'revokes a key']);
const listed = new Set(['lists Roles', 'lists bindings', 'lists Agents', 'lists revisions', 'lists no revisions of an Agent that never ran']);

const compared = async ([what, useCase, code, details]: Case, as: keyof Worlds['keys']): Promise<void> => {
  const [rest, graphql] = [await outcomeOn(worlds.each.REST, as, useCase), await outcomeOn(worlds.each.GraphQL, as, useCase)];
  for (const { answer, events } of [rest, graphql]) {
    expect({ code: answer.code, details: details === undefined ? undefined : answer.details.map(({ path, code }) => `${path} ${code}`) }).toEqual({ code, details });
    if (!audited.has(code)) expect(events).toEqual([]);
    if (code !== null && audited.has(code)) expect(auditOf(events)).toHaveLength(1);
    if (code === null && events.length > 0) expect(auditOf(events)).toHaveLength(1);
  }
  if (code !== null) expect(graphql.answer.status).toBe(rest.answer.status);
  expect(graphql.answer.details).toEqual(rest.answer.details);
  // A list hangs on another resource in GraphQL, so that its denial is the denial of that one.
  if (!(listed.has(what) && code === 'FORBIDDEN')) expect(masked(graphql.events.map(comparable))).toEqual(masked(rest.events.map(comparable)));
  if (code === null && rest.answer.data !== null && !shownOtherwise.has(what)) expect(masked(rest.answer.data)).toMatchObject(masked(withoutNulls(graphql.answer.data)) as object);
};

describe.each([
  ['the Installation and Namespaces', namespaces],
  ['Configurations', configurations],
  ['Agents', drafts],
  ['what runs', running],
  ['policy and keys', policy],
])('%s', (_, cases) => {
  it.each(cases)('%s', (...row) => compared(row as unknown as Case, 'administrator'));
});

describe('a stranger', () => {
  it.each(strangers)('is refused: %s', (...row) => compared(row as unknown as Case, 'stranger'));
});

it.each(typed)('what GraphQL types refuse has the same code: %s', async (...row) => {
  const [, useCase, code] = row as unknown as Case;
  for (const world of Object.values(worlds.each)) {
    const { answer, events } = await outcomeOn(world, 'administrator', useCase);
    expect({ code: answer.code, status: answer.status, events }).toEqual({ code, status: 400, events: [] });
  }
});

it.each([
  ['no credential', {}],
  ['an unknown key', { 'x-api-key': 'exk.key_00000000-0000-4000-8000-000000000000.AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA' }],
  ['a blank key', { 'x-api-key': '' }],
  ['a bearer token', { authorization: 'Bearer a' }],
])('nobody is let in: %s', async (_, credentials) => {
  const { origin } = worlds.application;
  for (const { edge, namespaceId } of Object.values(worlds.each)) {
    const { code, status } = await send(edge, origin, use.getNamespace(namespaceId), credentials);
    expect({ code, status }).toEqual({ code: 'UNAUTHENTICATED', status: 401 });
  }
});

it('covers every code that can be reached', () => {
  const covered = new Set([...namespaces, ...configurations, ...drafts, ...running, ...strangers].map(([, , code]) => code));
  expect([...covered].toSorted()).toEqual(
    [null, 'AGENT_DELETING', 'CREDENTIAL_GATEWAY_NOT_CONFIGURED', 'FORBIDDEN', 'INVALID_REQUEST', 'NAMESPACE_NOT_EMPTY', 'NAMESPACE_NOT_READY', 'NOT_FOUND', 'NOT_IMPLEMENTED', 'PAYLOAD_TOO_LARGE', 'RESOURCE_CONFLICT'].toSorted(),
  );
});
