/** Read model: the Installation, as its bootstrap named it. */
import type { Pool } from 'pg';
import type { IamEvent } from '../src/iam/messages.ts';
import type { InstallationReads, InstallationView } from '../src/installation/view.ts';
import type { Projection } from '../src/runtime/projection.ts';
import { reader } from './reading.ts';

interface InstallationRow {
  readonly installation_id: string;
  readonly name: string;
  readonly default_namespace_id: string;
  readonly created_at: string;
}

export const installationProjection: Projection<IamEvent, InstallationRow> = {
  name: 'installation',
  version: 1,
  streams: ['iam'],
  table: {
    key: 'installation_id',
    columns: { installation_id: 'text', name: 'text', default_namespace_id: 'text', created_at: 'text' },
    indexes: [],
  },
  on: {
    InstallationBootstrapped: ({ data, envelope }) => [
      {
        upsert: {
          installation_id: data.installationId,
          name: data.name,
          default_namespace_id: data.defaultNamespaceId,
          created_at: envelope.occurredAt,
        },
      },
    ],
  },
};

const view = (row: InstallationRow): InstallationView => ({
  id: row.installation_id,
  name: row.name,
  defaultNamespaceId: row.default_namespace_id,
  createdAt: row.created_at,
});

export const installationReads = (pool: Pool): InstallationReads => {
  const read = reader(pool, installationProjection, view);
  return { find: () => read({ name: 'find', select: 'select * from installation_v1', order: 'installation_id' }, []) };
};
