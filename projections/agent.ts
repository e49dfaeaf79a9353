/** Read model: Agents as they are now. Each part of the draft settings has its own column, because each has its own event. */
import type { Pool } from 'pg';
import type { AgentEvent } from '../src/agent/messages.ts';
import type { AgentSettings, ExecutionMode } from '../src/agent/settings.ts';
import type { AgentReads, AgentView } from '../src/agent/view.ts';
import { isUnreadable, type Unreadable } from '../src/kernel/codec.ts';
import type { Change, Projection } from '../src/runtime/projection.ts';
import { belowValues, pageBelow, reader } from './reading.ts';

interface SettingsColumns {
  readonly harness_auth: string | null;
  readonly credential_sources: string | null;
  readonly plugins: string | null;
  readonly plugin_approvers: string | null;
  /** The first member that could not be read; from then on the settings as a whole cannot. */
  readonly unreadable: string | null;
}

interface AgentRow extends SettingsColumns {
  readonly agent_id: string;
  readonly namespace_id: string;
  readonly name: string;
  readonly service_principal_id: string;
  readonly configuration_id: string;
  readonly backend_id: string | null;
  readonly execution_mode: ExecutionMode;
  readonly desired: 'running' | 'stopped';
  readonly active_revision_id: string | null;
  readonly status: 'active' | 'deleting';
  readonly created_at: string;
  readonly created_position: string;
  readonly draft_revision: number;
}

type Settings = Partial<{ readonly [K in keyof AgentSettings]: AgentSettings[K] | null }> | Unreadable;

const columnOf = { harnessAuth: 'harness_auth', credentialSources: 'credential_sources', plugins: 'plugins', pluginApprovers: 'plugin_approvers' } as const;

/** The columns of the settings an event carries; cleared and absent members are null. */
const settingsColumns = (settings: Settings): Partial<AgentRow> =>
  isUnreadable(settings)
    ? { unreadable: settings.unreadable }
    : Object.fromEntries(
        Object.entries(columnOf).flatMap(([member, column]) => {
          const value = settings[member as keyof AgentSettings];
          return value === undefined ? [] : [[column, value === null ? null : JSON.stringify(value)]];
        }),
      );

const patch = (agentId: string, set: Partial<AgentRow>): readonly Change<AgentRow>[] => [{ patch: agentId, set }];

const settingsChanged = ({ data, envelope }: { data: { agentId: string; settings: Settings }; envelope: { revision: number } }) =>
  patch(data.agentId, { ...settingsColumns(data.settings), draft_revision: envelope.revision });

export const agentProjection: Projection<AgentEvent, AgentRow> = {
  name: 'agent',
  version: 1,
  streams: ['agent'],
  table: {
    key: 'agent_id',
    columns: {
      agent_id: 'text',
      namespace_id: 'text',
      name: 'text',
      service_principal_id: 'text',
      configuration_id: 'text',
      backend_id: 'text',
      execution_mode: 'text',
      harness_auth: 'text',
      credential_sources: 'text',
      plugins: 'text',
      plugin_approvers: 'text',
      unreadable: 'text',
      desired: 'text',
      active_revision_id: 'text',
      status: 'text',
      created_at: 'text',
      created_position: 'text',
      draft_revision: 'integer',
    },
    indexes: [{ on: ['namespace_id', 'created_position', 'agent_id'] }],
  },
  on: {
    AgentCreated: ({ data, envelope, position }) => [
      {
        upsert: {
          agent_id: data.agentId,
          namespace_id: data.namespaceId,
          name: data.name,
          service_principal_id: data.servicePrincipalId,
          configuration_id: data.configurationId,
          backend_id: data.backendId,
          execution_mode: data.executionMode,
          ...settingsColumns(data.settings),
          desired: 'stopped',
          active_revision_id: null,
          status: 'active',
          created_at: envelope.occurredAt,
          created_position: position,
          draft_revision: envelope.revision,
        },
      },
    ],
    AgentConfigurationBound: ({ data, envelope }) => patch(data.agentId, { configuration_id: data.configurationId, draft_revision: envelope.revision }),
    AgentExecutionModeChanged: ({ data, envelope }) => patch(data.agentId, { execution_mode: data.executionMode, draft_revision: envelope.revision }),
    AgentBackendBound: ({ data, envelope }) => patch(data.agentId, { backend_id: data.backendId, draft_revision: envelope.revision }),
    AgentHarnessAuthBound: settingsChanged,
    AgentCredentialSourcesReplaced: settingsChanged,
    AgentPluginsReplaced: settingsChanged,
    AgentPluginApproversReplaced: settingsChanged,
    AgentRevisionAdmitted: ({ data }) => patch(data.agentId, { desired: 'running' }),
    AgentRevisionSelected: ({ data }) => patch(data.agentId, { active_revision_id: data.revisionId }),
    AgentStopRequested: ({ data }) => patch(data.agentId, { desired: 'stopped' }),
    // A stop completes only while the pointer still names what it stopped, so the pointer ends with it.
    AgentStopped: ({ data }) => patch(data.agentId, { active_revision_id: null }),
    AgentDeletionRequested: ({ data }) => patch(data.agentId, { desired: 'stopped', status: 'deleting' }),
    AgentRemoved: ({ data }) => [{ remove: data.agentId }],
  },
};

const parsed = (text: string): unknown => JSON.parse(text);

const settings = (row: AgentRow): AgentSettings | Unreadable =>
  row.unreadable !== null
    ? { unreadable: row.unreadable }
    : ({
        harnessAuth: row.harness_auth === null ? null : parsed(row.harness_auth),
        credentialSources: row.credential_sources === null ? [] : parsed(row.credential_sources),
        ...(row.plugins !== null && { plugins: parsed(row.plugins) }),
        ...(row.plugin_approvers !== null && { pluginApprovers: parsed(row.plugin_approvers) }),
      } as AgentSettings);

const view = (row: AgentRow): AgentView => ({
  id: row.agent_id,
  namespaceId: row.namespace_id,
  name: row.name,
  servicePrincipalId: row.service_principal_id,
  configurationId: row.configuration_id,
  backendId: row.backend_id,
  executionMode: row.execution_mode,
  settings: settings(row),
  desiredRuntimeState: row.desired,
  activeRevisionId: row.active_revision_id,
  status: row.status,
  createdAt: row.created_at,
  draftRevision: row.draft_revision,
});

const order = 'created_position, agent_id';

export const agentReads = (pool: Pool): AgentReads => {
  const read = reader(pool, agentProjection, view);
  return {
    byIds: (ids) => read({ name: 'by_ids', select: 'select * from agent_v1 where agent_id = any($1)', order }, [ids]),
    listBelow: (visible, request) =>
      read({ name: 'list_below', select: pageBelow('agent_v1', 'namespace_id = wanted.id', 'created_position', 'agent_id'), order }, belowValues(visible, request)),
    byHash: (installationId, hash) =>
      read(
        {
          name: 'by_hash',
          select: `select * from agent_v1 where starts_with(encode(sha256(convert_to($1 || '/' || namespace_id || '/' || agent_id, 'UTF8')), 'hex'), $2)`,
          order,
        },
        [installationId, hash],
      ),
  };
};
