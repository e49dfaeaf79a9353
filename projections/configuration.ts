/** Read model: Configurations as they are now. The register of the Namespace ends them, or their own stream. */
import type { Pool } from 'pg';
import type { ConfigurationEvent, ConfigurationSettings } from '../src/configuration/messages.ts';
import type { ConfigurationReads, ConfigurationView } from '../src/configuration/view.ts';
import type { Unreadable } from '../src/kernel/codec.ts';
import type { NamespaceEvent } from '../src/namespace/messages.ts';
import type { Projection } from '../src/runtime/projection.ts';
import { reader } from './reading.ts';

interface ConfigurationRow {
  readonly configuration_id: string;
  readonly namespace_id: string;
  readonly kind: 'agent';
  readonly generation: number;
  readonly settings: string;
  readonly created_at: string;
}

export const configurationProjection: Projection<ConfigurationEvent | NamespaceEvent, ConfigurationRow> = {
  name: 'configuration',
  version: 1,
  streams: ['configuration', 'namespace'],
  table: {
    key: 'configuration_id',
    columns: { configuration_id: 'text', namespace_id: 'text', kind: 'text', generation: 'integer', settings: 'text', created_at: 'text' },
    indexes: [],
  },
  on: {
    ConfigurationCreated: ({ data, envelope }) => [
      {
        upsert: {
          configuration_id: data.configurationId,
          namespace_id: data.namespaceId,
          kind: data.kind,
          generation: data.generation,
          settings: JSON.stringify(data.settings),
          created_at: envelope.occurredAt,
        },
      },
    ],
    ConfigurationReplaced: ({ data }) => [{ patch: data.configurationId, set: { generation: data.generation, settings: JSON.stringify(data.settings) } }],
    ConfigurationDeleted: ({ data }) => [{ remove: data.configurationId }],
    ResourceRemoved: ({ data }) => (data.kind === 'configuration' ? [{ remove: data.id }] : []),
  },
};

const view = (row: ConfigurationRow): ConfigurationView => ({
  id: row.configuration_id,
  namespaceId: row.namespace_id,
  kind: row.kind,
  generation: row.generation,
  settings: JSON.parse(row.settings) as ConfigurationSettings | Unreadable,
  createdAt: row.created_at,
});

export const configurationReads = (pool: Pool): ConfigurationReads => {
  const read = reader(pool, configurationProjection, view);
  return {
    byIds: (ids) => read({ name: 'by_ids', select: 'select * from configuration_v1 where configuration_id = any($1)', order: 'configuration_id' }, [ids]),
  };
};
