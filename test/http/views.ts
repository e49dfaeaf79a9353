/** Views as the services give them, for tests of what REST makes of them. */
import type { AgentView } from '../../src/agent/view.ts';
import type { RevisionView } from '../../src/agent-revision/view.ts';
import type { ConfigurationView } from '../../src/configuration/view.ts';
import type { AccessBindingView, IssuedServiceKey, RoleView } from '../../src/iam/view.ts';
import { agentId, configurationId, installationId, namespaceId, revisionId } from './edge.ts';

const createdAt = '2026-01-02T03:04:05.678Z';
const secretId = 'sec_00000001-0000-4000-8000-000000000000';

export const installationView = { id: installationId, name: 'Here', createdAt };

export const namespaceView = { id: namespaceId, name: 'default', status: 'ready', createdAt } as const;

export const configurationView: ConfigurationView = {
  id: configurationId,
  namespaceId,
  kind: 'agent',
  generation: 3,
  settings: { values: { models: { b: 1, a: 2 } }, secretBindings: { TOKEN: { source: { namespaceId, kind: 'secret', id: secretId } } } },
  createdAt,
};

export const agentView: AgentView = {
  id: agentId,
  namespaceId,
  name: 'Mara',
  servicePrincipalId: 'spn_7',
  configurationId,
  backendId: null,
  executionMode: 'embedded',
  settings: {
    credentialSources: [],
    harnessAuth: { source: { id: secretId, namespaceId, kind: 'secret' }, method: 'api_key' },
    plugins: { 'z@hub': { enabled: true, approvers: [] }, 'a@hub': { tools: { run: { reviewer: 'human', approval: 'none' } }, enabled: false } },
    pluginApprovers: [{ id: 'U1', channel: 'slack' }],
  },
  desiredRuntimeState: 'running',
  activeRevisionId: revisionId,
  status: 'active',
  createdAt,
  draftRevision: 4,
};

export const revisionView: RevisionView = {
  id: revisionId,
  namespaceId,
  agentId,
  revision: 2,
  backendId: null,
  configurationId,
  configurationGeneration: 3,
  harness: { mode: 'embedded', version: '2026.9.9', id: 'openclaw' },
  compute: { implementation: 'exuvia', id: 'process' },
  settings: { harnessAuth: { method: 'runtime' }, configuration: { z: 1, a: { d: 1, c: 2 } }, credentialSources: [], plugins: { 'a@hub': { enabled: true } } },
  createdAt,
};

export const diagnosticsView = { revisionId, observedAt: '2026-11-28T12:00:00.000Z', checks: [{ component: 'gateway', check: 'runtime-status', state: 'unknown', checkedAt: null, code: 'UNAVAILABLE' }] };

export const nativeAdminView = { status: 'available', activeRevisionId: revisionId, host: 'agent-0.agents.example', origin: 'https://agent-0.agents.example', url: 'https://agent-0.agents.example/' } as const;

export const deploymentView = {
  deploymentId: revisionId,
  namespaceId,
  agentId,
  status: 'failed',
  error: { code: 'GATEWAY_FAILED', message: 'The gateway failed', data: { z: 1, a: 2 } },
  warnings: [{ pluginId: 'a@hub', code: 'PLUGIN_INSTALL_FAILED' }],
  progress: null,
  cleanup: null,
} as const;

export const roleView: RoleView = { id: 'role_1', namespaceId, name: 'Readers', permissions: [{ resourceKind: 'agent', action: 'read' }] };

export const accessBindingView: AccessBindingView = { id: 'bnd_1', namespaceId, subjectKind: 'identity', subjectId: 'spn_7', roleId: 'role_1', resourceKind: 'agent', resourceId: agentId };

export const serviceKeyView: IssuedServiceKey = { id: 'key_1', servicePrincipalId: 'spn_7', namespaceId, name: 'ci', expiresAt: createdAt, key: 'exk.key_1.text' };
