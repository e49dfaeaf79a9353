/** Read model: Namespaces and their state. */
import type { Pool } from 'pg';
import type { NamespaceEvent } from '../src/namespace/messages.ts';
import type { NamespaceReads, NamespaceView } from '../src/namespace/view.ts';
import type { Projection } from '../src/runtime/projection.ts';
import { page, pageValues, reader, visibilityValues, visible } from './reading.ts';

interface NamespaceRow {
  readonly namespace_id: string;
  readonly name: string;
  readonly status: NamespaceView['status'];
  readonly created_at: string;
  readonly created_position: string;
}

const becomes = (namespaceId: string, status: NamespaceView['status']) => [{ patch: namespaceId, set: { status } }];

export const namespaceProjection: Projection<NamespaceEvent, NamespaceRow> = {
  name: 'namespace',
  version: 1,
  streams: ['namespace'],
  table: {
    key: 'namespace_id',
    columns: { namespace_id: 'text', name: 'text', status: 'text', created_at: 'text', created_position: 'text' },
    indexes: [{ on: ['created_position', 'namespace_id'] }],
  },
  on: {
    NamespaceCreated: ({ data, envelope, position }) => [
      {
        upsert: {
          namespace_id: data.namespaceId,
          name: data.name,
          status: 'provisioning',
          created_at: envelope.occurredAt,
          created_position: position,
        },
      },
    ],
    NamespaceBecameReady: ({ data }) => becomes(data.namespaceId, 'ready'),
    NamespaceFailed: ({ data }) => becomes(data.namespaceId, 'failed'),
    NamespaceDeletionRequested: ({ data }) => becomes(data.namespaceId, 'deleting'),
    NamespaceRemoved: ({ data }) => [{ remove: data.namespaceId }],
  },
};

const view = (row: NamespaceRow): NamespaceView => ({ id: row.namespace_id, name: row.name, status: row.status, createdAt: row.created_at });
const order = 'created_position, namespace_id';

export const namespaceReads = (pool: Pool): NamespaceReads => {
  const read = reader(pool, namespaceProjection, view);
  return {
    byIds: (ids) => read({ name: 'by_ids', select: 'select * from namespace_v1 where namespace_id = any($1)', order }, [ids]),
    list: (visibility, request) =>
      read(
        { name: 'list', select: page('namespace_v1', visible('namespace_id', 1), 'created_position', 'namespace_id', 3), order },
        [...visibilityValues(visibility), ...pageValues(request)],
      ),
  };
};
