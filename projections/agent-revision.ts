/** Read model: AgentRevisions. The snapshot comes first and from its own stream; a revision is visible once it is admitted. */
import type { Pool } from 'pg';
import type { AgentEvent } from '../src/agent/messages.ts';
import type { AgentRevisionSnapshotted, RevisionSettings } from '../src/agent-revision/messages.ts';
import type { RevisionReads, RevisionView } from '../src/agent-revision/view.ts';
import type { Unreadable } from '../src/kernel/codec.ts';
import type { Projection } from '../src/runtime/projection.ts';
import { belowValues, pageBelow, reader } from './reading.ts';

interface RevisionRow {
  readonly revision_id: string;
  readonly agent_id: string;
  readonly namespace_id: string;
  readonly number: number;
  /** Skeleton of the snapshot, and its settings; null until the snapshot has been read. */
  readonly snapshot: string;
  readonly settings: string;
  /** Null until the revision is admitted. */
  readonly admitted_at: string;
}

export const agentRevisionProjection: Projection<AgentEvent | AgentRevisionSnapshotted, RevisionRow> = {
  name: 'agent_revision',
  version: 1,
  streams: ['revision', 'agent'],
  table: {
    key: 'revision_id',
    columns: {
      revision_id: 'text',
      agent_id: 'text',
      namespace_id: 'text',
      number: 'integer',
      snapshot: 'text',
      settings: 'text',
      admitted_at: 'text',
    },
    indexes: [{ on: ['agent_id', 'number'] }],
  },
  on: {
    AgentRevisionSnapshotted: ({ data: { settings, ...snapshot } }) => [
      {
        upsert: {
          revision_id: snapshot.revisionId,
          agent_id: snapshot.agentId,
          namespace_id: snapshot.namespaceId,
          number: snapshot.number,
          snapshot: JSON.stringify(snapshot),
          settings: JSON.stringify(settings),
        },
      },
    ],
    AgentRevisionAdmitted: ({ data, envelope }) => [
      {
        upsert: {
          revision_id: data.revisionId,
          agent_id: data.agentId,
          namespace_id: data.namespaceId,
          number: data.number,
          admitted_at: envelope.occurredAt,
        },
      },
    ],
    AgentRemoved: ({ data }) => [{ removeWhere: { agent_id: data.agentId } }],
  },
};

type Snapshot = Omit<AgentRevisionSnapshotted['data'], 'settings'>;

const view = (row: RevisionRow): RevisionView => {
  const snapshot = JSON.parse(row.snapshot) as Snapshot;
  return {
    id: row.revision_id,
    namespaceId: row.namespace_id,
    agentId: row.agent_id,
    revision: row.number,
    backendId: snapshot.backendId,
    configurationId: snapshot.configurationId,
    configurationGeneration: snapshot.configurationGeneration,
    harness: snapshot.harness,
    compute: snapshot.compute,
    settings: JSON.parse(row.settings) as RevisionSettings | Unreadable,
    createdAt: row.admitted_at,
  };
};

const isAdmitted = 'admitted_at is not null and snapshot is not null';
const admitted = `select * from agent_revision_v1 where ${isAdmitted}`;
const order = 'agent_id, number, revision_id';

export const agentRevisionReads = (pool: Pool): RevisionReads => {
  const read = reader(pool, agentRevisionProjection, view);
  return {
    byIds: (ids) => read({ name: 'by_ids', select: `${admitted} and revision_id = any($1)`, order }, [ids]),
    listBelow: (visible, request) =>
      read(
        { name: 'list_below', select: pageBelow('agent_revision_v1', `${isAdmitted} and agent_id = wanted.id`, 'number', 'revision_id'), order },
        belowValues(visible, request),
      ),
  };
};
