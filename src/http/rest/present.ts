/**
 * What a REST client sees of each resource. Members stand in one documented order on every answer, and the
 * members of free maps in the order of their names, because clients compare serialized text.
 * (rest-contract 2.2, 2.7, 2.8, 3.1 to 3.3, 3.9, 3.10; client-expectations CX-19 and CX-33)
 */
import type { AgentView } from '../../agent/view.ts';
import type { RevisionService } from '../../agent-revision/service.ts';
import type { RevisionView } from '../../agent-revision/view.ts';
import type { ConfigurationView } from '../../configuration/view.ts';
import type { AccessBindingView, IssuedServiceKey, RoleView, ServicePrincipalView } from '../../iam/view.ts';
import type { InstallationView } from '../../installation/view.ts';
import { isUnreadable, type Unreadable } from '../../kernel/codec.ts';
import type { NamespaceView } from '../../namespace/view.ts';

type DeploymentView = Awaited<ReturnType<RevisionService['deployment']>>;

/** The same value with the members of every object in the order of their names. */
const inOrder = <T>(value: T): T => {
  if (typeof value !== 'object' || value === null) return value;
  if (Array.isArray(value)) return value.map(inOrder) as T;
  const members = value as Record<string, unknown>;
  return Object.fromEntries(Object.keys(members).sort().map((name) => [name, inOrder(members[name])])) as T;
};

type HarnessAuth = Exclude<AgentView['settings'], Unreadable>['harnessAuth'];

const harnessAuth = (auth: HarnessAuth): HarnessAuth => {
  if (auth === null || auth.method === 'runtime') return auth;
  if (auth.method === 'credential_source') return { method: auth.method, sourceId: auth.sourceId };
  const { kind, namespaceId, id } = auth.source;
  return { method: auth.method, source: { kind, namespaceId, id } } as HarnessAuth;
};

const readErrorFields = ['plugins', 'pluginApprovers', 'repositoryBindings', 'repositoryAccess', 'harnessAuth', 'secretBindings', 'repositoryCredentials', 'configuration'];

/** Stands in for saved settings that this build cannot read; nothing of them is guessed. */
const readError = ({ unreadable }: Unreadable) => ({
  code: 'SAVED_CONFIGURATION_UNREADABLE',
  field: readErrorFields.includes(unreadable) ? unreadable : 'configuration',
});

export const presentInstallation = ({ id, name, createdAt }: Pick<InstallationView, 'id' | 'name' | 'createdAt'>) => ({ id, name, createdAt });

export const presentNamespace = ({ id, name, status, createdAt }: NamespaceView) => ({ id, name, status, createdAt });

export const presentConfiguration = ({ id, namespaceId, kind, generation, settings, createdAt }: ConfigurationView) => {
  const place = { id, namespaceId, kind, generation };
  if (isUnreadable(settings)) return { ...place, createdAt, configurationReadError: readError(settings) };
  return {
    ...place,
    values: inOrder(settings.values),
    ...(settings.secretBindings !== undefined && { secretBindings: inOrder(settings.secretBindings) }),
    createdAt,
  };
};

export const presentAgent = (agent: AgentView) => {
  const { id, namespaceId, name, servicePrincipalId, configurationId, backendId, executionMode, settings } = agent;
  const draft = { id, namespaceId, name, servicePrincipalId, configurationId, backendId };
  const state = {
    desiredRuntimeState: agent.desiredRuntimeState,
    ...(agent.activeRevisionId !== null && { activeRevisionId: agent.activeRevisionId }),
    status: agent.status,
    createdAt: agent.createdAt,
  };
  if (isUnreadable(settings)) return { ...draft, executionMode, ...state, configurationReadError: readError(settings) };
  return {
    ...draft,
    harnessAuth: harnessAuth(settings.harnessAuth),
    executionMode,
    credentialSources: settings.credentialSources,
    ...(settings.plugins !== undefined && { plugins: inOrder(settings.plugins) }),
    ...(settings.pluginApprovers !== undefined && { pluginApprovers: inOrder(settings.pluginApprovers) }),
    ...state,
  };
};

export const presentRevision = ({ id, namespaceId, agentId, revision, backendId, settings, createdAt, ...admitted }: RevisionView) => {
  const place = { id, namespaceId, agentId, revision, backendId };
  if (isUnreadable(settings)) return { ...place, createdAt, configurationReadError: readError(settings) };
  const { id: harnessId, version, mode } = admitted.harness;
  const { id: computeId, implementation } = admitted.compute;
  const compute = { id: computeId, implementation };
  return {
    ...place,
    configurationId: admitted.configurationId,
    configurationKind: 'agent',
    configurationGeneration: admitted.configurationGeneration,
    configuration: inOrder(settings.configuration),
    harness: { id: harnessId, version, mode },
    compute,
    harnessAuth: harnessAuth(settings.harnessAuth),
    ...(settings.secretBindings !== undefined && { secretBindings: inOrder(settings.secretBindings) }),
    // Compute itself applies the requested plugins here: there is no separate driver to name.
    ...(settings.plugins !== undefined && { plugins: { driver: compute, plugins: inOrder(settings.plugins) } }),
    ...(settings.pluginApprovers !== undefined && { pluginApprovers: inOrder(settings.pluginApprovers) }),
    credentialSources: settings.credentialSources,
    createdAt,
  };
};

export const presentDeployment = ({ deploymentId, namespaceId, agentId, status, error, warnings, progress, cleanup }: DeploymentView) => ({
  deploymentId,
  namespaceId,
  agentId,
  status,
  error: error === null ? null : { code: error.code, message: error.message, ...(error.data !== undefined && { data: inOrder(error.data) }) },
  warnings: warnings.map(({ code, pluginId }) => ({ code, pluginId })),
  progress,
  cleanup,
});

export const presentRole = ({ id, namespaceId, name, permissions }: RoleView) => ({
  id,
  namespaceId,
  ...(name !== undefined && { name }),
  permissions: permissions.map(({ action, resourceKind }) => ({ action, resourceKind })),
});

export const presentAccessBinding = ({ id, namespaceId, subjectKind, subjectId, roleId, resourceKind, resourceId }: AccessBindingView) => ({
  id,
  namespaceId,
  subjectKind,
  subjectId,
  roleId,
  ...(resourceKind !== undefined && { resourceKind, resourceId }),
});

export const presentServicePrincipal = ({ id, namespaceId }: ServicePrincipalView) => ({ id, namespaceId });

export const presentServiceKey = ({ id, servicePrincipalId, namespaceId, name, expiresAt, key }: IssuedServiceKey) => ({
  id,
  servicePrincipalId,
  ...(namespaceId !== undefined && { namespaceId }),
  name,
  expiresAt,
  key,
});
