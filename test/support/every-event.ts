/** A history that contains every event type of the product: the resources that live on, and the ones that are gone. */
import type { AgentEvent } from '../../src/agent/messages.ts';
import type { AgentRevisionSnapshotted } from '../../src/agent-revision/messages.ts';
import type { AuditEvent } from '../../src/audit/messages.ts';
import type { ConfigurationEvent } from '../../src/configuration/messages.ts';
import type { IamEvent } from '../../src/iam/messages.ts';
import type { RegisterEvent } from '../../src/installation/messages.ts';
import { workKey } from '../../src/kernel/work.ts';
import type { NamespaceEvent } from '../../src/namespace/messages.ts';
import type { StoreEvent } from '../../src/store-identity/messages.ts';
import type { HistoryWriter } from './write-history.ts';

type ProductEvent = AgentEvent | AgentRevisionSnapshotted | AuditEvent | ConfigurationEvent | IamEvent | RegisterEvent | NamespaceEvent | StoreEvent;

const role = { roleId: 'role_1', permissions: [{ action: 'read', resourceKind: 'agent' }] };
const binding = { bindingId: 'bnd_1', subjectKind: 'identity', subjectId: 'prn_1', roleId: 'role_1' } as const;
const serviceKey = { keyId: 'key_1', servicePrincipalId: 'spn_1', name: 'first', expiresAt: '2027-01-01T00:00:00.000Z' };

const installation: readonly (readonly [string, ProductEvent])[] = [
  ['store', { type: 'StoreOpened', data: { storeId: 'store_1' } }],
  ['store', { type: 'DatabaseOpened', data: { number: 1, found: 0 } }],
  [
    'iam',
    {
      type: 'InstallationBootstrapped',
      data: {
        installationId: 'ins_1',
        name: 'Main',
        administrator: { principalId: 'prn_1', issuer: 'local', subject: 'admin' },
        servicePrincipal: { servicePrincipalId: 'spn_1' },
        role,
        bindings: [binding],
        serviceKey,
        defaultNamespaceId: 'ns_1',
      },
    },
  ],
  ['iam', { type: 'PrincipalCreated', data: { principalId: 'prn_2', issuer: 'local', subject: 'second' } }],
  ['iam', { type: 'PrincipalCreationAbandoned', data: { principalId: 'prn_9' } }],
  ['iam', { type: 'ServicePrincipalCreated', data: { servicePrincipalId: 'spn_2', namespaceId: 'ns_1', agentId: 'agt_1' } }],
  ['iam', { type: 'ServicePrincipalRemoved', data: { servicePrincipalId: 'spn_3' } }],
  ['iam', { type: 'RoleCreated', data: { ...role, roleId: 'role_2' } }],
  ['iam', { type: 'RoleDeleted', data: { roleId: 'role_2' } }],
  ['iam', { type: 'AccessBindingCreated', data: { ...binding, bindingId: 'bnd_2' } }],
  ['iam', { type: 'AccessBindingDeleted', data: { bindingId: 'bnd_2' } }],
  ['iam', { type: 'RestrictionCreated', data: { restrictionId: 'rst_1', action: 'read', resourceKind: 'agent' } }],
  ['iam', { type: 'RestrictionDeleted', data: { restrictionId: 'rst_1' } }],
  ['iam', { type: 'GroupCreated', data: { groupId: 'grp_1', name: 'readers' } }],
  ['iam', { type: 'GroupMembershipCreated', data: { groupId: 'grp_1', principalId: 'prn_2' } }],
  ['iam', { type: 'PasswordReplaced', data: { principalId: 'prn_1', passwordId: 'pwd_1' } }],
  ['iam', { type: 'GroupMembershipDeleted', data: { groupId: 'grp_1', principalId: 'prn_2' } }],
  ['iam', { type: 'GroupDeleted', data: { groupId: 'grp_1', principalIds: [] } }],
  ['iam', { type: 'ServiceKeyIssued', data: { ...serviceKey, keyId: 'key_2' } }],
  ['iam', { type: 'ServiceKeyAbandoned', data: { keyId: 'key_3' } }],
  ['iam', { type: 'ServiceKeyRevoked', data: { keyId: 'key_2', servicePrincipalId: 'spn_1' } }],
  [
    'iam',
    { type: 'AgentBindingsRemoved', data: { agentId: 'agt_9', namespaceId: 'ns_1', servicePrincipalId: 'spn_9', revisionIds: [], bindingIds: [], keyIds: [] } },
  ],
  ['iam', { type: 'AgentRestrictionsRemoved', data: { agentId: 'agt_9', namespaceId: 'ns_1', restrictionIds: [] } }],
  ['iam', { type: 'ResourcePolicyRemoved', data: { resourceKind: 'configuration', resourceId: 'cfg_9', namespaceId: 'ns_1', bindingIds: [], roleIds: [] } }],
  ['register', { type: 'NamespaceNameTaken', data: { namespaceId: 'ns_1', name: 'default' } }],
  ['register', { type: 'NamespaceNameTaken', data: { namespaceId: 'ns_9', name: 'never' } }],
  ['register', { type: 'NamespaceNameReleased', data: { namespaceId: 'ns_9', name: 'never' } }],
  ['audit-w1', { type: 'AuthorizationDenied', data: { namespaceId: 'ns_1' } }],
  ['audit-w1', { type: 'DenialsSuppressed', data: { principalId: 'prn_2', from: '2026-01-01T00:00:00.000Z', to: '2026-01-01T00:00:59.000Z', count: 7 } }],
  ['audit-w1', { type: 'CommandFailed', data: { namespaceId: 'ns_1', code: 'NAMESPACE_NOT_READY' } }],
  ['audit-w1', { type: 'SignedIn', data: { principalId: 'prn_1' } }],
  ['audit-w1', { type: 'SignInDenied', data: { principalId: 'prn_1' } }],
  ['audit-w1', { type: 'SignedOut', data: { principalId: 'prn_1', sessionKey: 'session-1' } }],
  ['audit-w1', { type: 'PasswordReset', data: { principalId: 'prn_1' } }],
  ['audit-w1', { type: 'NativeAdminConnected', data: { namespaceId: 'ns_1', agentId: 'agt_1', revisionId: 'rev_1', connectionId: 'c' } }],
  ['audit-w1', { type: 'NativeAdminClosed', data: { namespaceId: 'ns_1', agentId: 'agt_1', revisionId: 'rev_1', connectionId: 'c', closeReason: 'CLIENT_CLOSED' } }],
];

const agentResource = { kind: 'agent', id: 'agt_1' };
const configurationResource = { kind: 'configuration', id: 'cfg_1' };

const namespaces: readonly (readonly [string, ProductEvent])[] = [
  ['namespace-ns_9', { type: 'NamespaceCreationAbandoned', data: { namespaceId: 'ns_9' } }],
  ['namespace-ns_1', { type: 'NamespaceCreated', data: { namespaceId: 'ns_1', name: 'default' } }],
  ['namespace-ns_1', { type: 'WorkDeferred', data: { workKey: workKey.namespaceReady('ns_1'), code: 'RECONCILIATION_PENDING' } }],
  ['namespace-ns_1', { type: 'WorkRetryScheduled', data: { workKey: workKey.namespaceReady('ns_1'), code: 'DEPENDENCY_UNAVAILABLE', attempt: 1 } }],
  ['namespace-ns_1', { type: 'NamespaceBecameReady', data: { namespaceId: 'ns_1' } }],
  ['namespace-ns_1', { type: 'ResourceAdmitted', data: { ...configurationResource, refersTo: [] } }],
  ['namespace-ns_1', { type: 'ResourceAdmitted', data: { ...agentResource, name: 'triage', refersTo: [] } }],
  ['namespace-ns_1', { type: 'ReferencesAdded', data: { ...agentResource, refersTo: [configurationResource] } }],
  ['namespace-ns_1', { type: 'ReferencesDropped', data: { ...agentResource, refersTo: [configurationResource] } }],
  ['namespace-ns_2', { type: 'NamespaceCreated', data: { namespaceId: 'ns_2', name: 'broken' } }],
  ['namespace-ns_2', { type: 'NamespaceFailed', data: { namespaceId: 'ns_2', code: 'DEPENDENCY_UNAVAILABLE' } }],
  ['namespace-ns_2', { type: 'NamespaceDeletionRequested', data: { namespaceId: 'ns_2' } }],
  ['namespace-ns_2', { type: 'NamespaceDeletionRepeated', data: { namespaceId: 'ns_2' } }],
  ['namespace-ns_2', { type: 'NamespaceTeardownFailed', data: { namespaceId: 'ns_2', code: 'DEPENDENCY_UNAVAILABLE' } }],
  ['namespace-ns_2', { type: 'NamespaceDeletionRetried', data: { namespaceId: 'ns_2', previousActorId: 'prn_author' } }],
  ['namespace-ns_3', { type: 'NamespaceCreated', data: { namespaceId: 'ns_3', name: 'gone' } }],
  ['namespace-ns_3', { type: 'WorkClaimExpired', data: { workKey: workKey.namespaceReady('ns_3'), claimToken: 'token', attempt: 1, code: 'LEASE_EXPIRED' } }],
  ['namespace-ns_3', { type: 'NamespaceDeletionRequested', data: { namespaceId: 'ns_3' } }],
  ['namespace-ns_3', { type: 'NamespaceRemoved', data: { namespaceId: 'ns_3' } }],
];

const cfg = { configurationId: 'cfg_1', namespaceId: 'ns_1' };
const cfg2 = { configurationId: 'cfg_2', namespaceId: 'ns_1' };
const cfg3 = { configurationId: 'cfg_3', namespaceId: 'ns_1' };

const configurations: readonly (readonly [string, ProductEvent])[] = [
  ['configuration-cfg_9', { type: 'ConfigurationCreationAbandoned', data: { configurationId: 'cfg_9', namespaceId: 'ns_1' } }],
  ['configuration-cfg_1', { type: 'ConfigurationCreated', data: { ...cfg, generation: 1, kind: 'agent', settings: { values: { z: 1, a: 'ü"\\' } } } }],
  ['configuration-cfg_1', { type: 'ConfigurationReplaced', data: { ...cfg, generation: 2, settings: { values: { z: 2 } } } }],
  ['configuration-cfg_2', { type: 'ConfigurationCreated', data: { ...cfg2, generation: 1, kind: 'agent', settings: { values: {} } } }],
  ['configuration-cfg_2', { type: 'ConfigurationDeleted', data: cfg2 }],
  ['configuration-cfg_3', { type: 'ConfigurationCreated', data: { ...cfg3, generation: 1, kind: 'agent', settings: { values: {} } } }],
  ['namespace-ns_1', { type: 'ResourceRemoved', data: { kind: 'configuration', id: 'cfg_3' } }],
];

const place = (agentId: string) => ({ agentId, namespaceId: 'ns_1' });
const born = (agentId: string, name: string): AgentEvent => ({
  type: 'AgentCreated',
  data: {
    ...place(agentId),
    name,
    servicePrincipalId: 'spn_2',
    configurationId: 'cfg_1',
    executionMode: 'embedded',
    backendId: null,
    settings: { harnessAuth: { method: 'runtime' }, credentialSources: [] },
  },
});
const snapshot = (agentId: string, revisionId: string, number: number): readonly [string, ProductEvent] => [
  `revision-${revisionId}`,
  {
    type: 'AgentRevisionSnapshotted',
    data: {
      ...place(agentId),
      revisionId,
      number,
      servicePrincipalId: 'spn_2',
      backendId: null,
      configurationId: 'cfg_1',
      configurationGeneration: 2,
      harness: { id: 'openclaw', version: '1', mode: 'embedded' },
      compute: { id: 'cmp_1', implementation: 'process' },
      settings: { harnessAuth: { method: 'runtime' }, configuration: { z: 2 }, credentialSources: [] },
    },
  },
];
const admitted = (agentId: string, revisionId: string, number: number): AgentEvent => ({
  type: 'AgentRevisionAdmitted',
  data: {
    ...place(agentId),
    revisionId,
    number,
    digest: 'd',
    configurationId: 'cfg_1',
    configurationGeneration: 2,
    compute: { id: 'cmp_1', implementation: 'process' },
    exclusive: false,
  },
});
const deployed = (agentId: string, revisionId: string, number: number, ...ending: readonly AgentEvent[]): readonly (readonly [string, ProductEvent])[] => [
  snapshot(agentId, revisionId, number),
  [`agent-${agentId}`, admitted(agentId, revisionId, number)],
  ...ending.map((event) => [`agent-${agentId}`, event] as const),
];

const one = place('agt_1');
const two = place('agt_2');
const three = place('agt_3');
const onAgent = (agentId: string, ...events: readonly AgentEvent[]) => events.map((event) => [`agent-${agentId}`, event] as const);

const agents: readonly (readonly [string, ProductEvent])[] = [
  ...onAgent(
    'agt_1',
    born('agt_1', 'triage'),
    { type: 'IntentVoided', data: one },
    { type: 'AgentConfigurationBound', data: { ...one, configurationId: 'cfg_1' } },
    { type: 'AgentExecutionModeChanged', data: { ...one, executionMode: 'dedicated' } },
    { type: 'AgentBackendBound', data: { ...one, backendId: 'bck_1' } },
    { type: 'AgentHarnessAuthBound', data: { ...one, settings: { harnessAuth: { method: 'runtime' } } } },
    { type: 'AgentCredentialSourcesReplaced', data: { ...one, settings: { credentialSources: [{ sourceId: 'cs_1' }] } } },
    { type: 'AgentPluginsReplaced', data: { ...one, settings: { plugins: { github: { enabled: true } } } } },
    { type: 'AgentPluginApproversReplaced', data: { ...one, settings: { pluginApprovers: [{ channel: 'slack', id: 'U1' }] } } },
  ),
  ...deployed(
    'agt_1',
    'rev_1',
    1,
    { type: 'WorkDeferred', data: { workKey: workKey.deployment('rev_1'), code: 'REVISION_INCOMPLETE' } },
    { type: 'AgentRevisionSelected', data: { ...one, revisionId: 'rev_1', previousRevisionId: null } },
    {
      type: 'DeploymentActivated',
      data: { ...one, revisionId: 'rev_1', code: 'REVISION_ACTIVATED', previousRevisionId: null, warnings: [{ code: 'PLUGIN_AUTH_REQUIRED', pluginId: 'github' }] },
    },
  ),
  ...deployed('agt_1', 'rev_2', 2, { type: 'DeploymentSuperseded', data: { ...one, revisionId: 'rev_2', byRevisionId: 'rev_3' } }),
  ...deployed('agt_1', 'rev_3', 3, { type: 'DeploymentStopped', data: { ...one, revisionId: 'rev_3' } }),
  ...deployed('agt_1', 'rev_4', 4, {
    type: 'DeploymentFailed',
    data: { ...one, revisionId: 'rev_4', code: 'CONVERGENCE_DEADLINE_EXCEEDED', data: { timeoutMs: 1 } },
  }),
  ...deployed(
    'agt_1',
    'rev_5',
    5,
    { type: 'WorkRetryScheduled', data: { workKey: workKey.deployment('rev_5'), code: 'DEPENDENCY_UNAVAILABLE', attempt: 1 } },
    { type: 'WorkClaimExpired', data: { workKey: workKey.deployment('rev_5'), claimToken: 'token', attempt: 2, code: 'LEASE_EXPIRED', refusal: 'RUNTIME_STARTUP_FAILED' } },
  ),
  ...onAgent(
    'agt_2',
    born('agt_2', 'stopped'),
    { type: 'AgentStopRequested', data: { ...two, operationId: 'opr_1' } },
    { type: 'AgentStopped', data: { ...two, operationId: 'opr_1', code: 'AGENT_ALREADY_STOPPED', revisionId: null } },
    { type: 'AgentStopRequested', data: { ...two, operationId: 'opr_2' } },
    { type: 'AgentStopSuperseded', data: { ...two, operationId: 'opr_2' } },
    { type: 'AgentStopRequested', data: { ...two, operationId: 'opr_3' } },
    { type: 'AgentStopFailed', data: { ...two, operationId: 'opr_3', code: 'MAX_ATTEMPTS_EXHAUSTED' } },
    { type: 'AgentDeletionRequested', data: { ...two, accessBindingIds: [], restrictionIds: [] } },
    { type: 'AgentDeletionRepeated', data: two },
    { type: 'AgentTeardownFailed', data: { ...two, code: 'AUTHORIZATION_DENIED' } },
    { type: 'AgentDeletionRetried', data: two },
    { type: 'AgentTeardownFailed', data: { ...two, code: 'AUTHORIZATION_DENIED' } },
    { type: 'AgentDeletionTakenOver', data: { ...two, previousActorId: 'prn_author' } },
  ),
  ...onAgent('agt_3', born('agt_3', 'gone')),
  ...deployed('agt_3', 'rev_6', 1),
  ...onAgent(
    'agt_3',
    { type: 'AgentDeletionRequested', data: { ...three, accessBindingIds: [], restrictionIds: [] } },
    { type: 'AgentTeardownFinished', data: { ...three, revisionIds: ['rev_6'] } },
    { type: 'AgentRemoved', data: three },
  ),
  ...onAgent('agt_9', { type: 'AgentCreationAbandoned', data: place('agt_9') }),
  snapshot('agt_1', 'rev_9', 9),
];

const everyEvent = [...installation, ...namespaces, ...configurations, ...agents];

export const everyEventTypes: ReadonlySet<string> = new Set(everyEvent.map(([, { type }]) => type));

/** Writes it all; `rev_9` stays a snapshot nobody admitted. */
export const writeEveryEvent = async (history: HistoryWriter): Promise<number> => {
  for (const [stream, event] of everyEvent) await history.append(stream, event);
  return everyEvent.length;
};
