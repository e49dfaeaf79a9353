/** Read model: every event of the Installation, with its metadata as stored and the public view of its data. */
import type { Pool } from 'pg';
import type { HistoryEventView, HistoryFilter, HistoryReads } from '../src/history/view.ts';
import { publicView } from '../src/kernel/codec.ts';
import type { Message } from '../src/kernel/decider.ts';
import type { Envelope, Metadata } from '../src/kernel/event.ts';
import type { Projection } from '../src/runtime/projection.ts';
import { productEvents } from './events.ts';
import { reader } from './reading.ts';

interface HistoryRow {
  readonly position: string;
  readonly id: string;
  /** Without the Installation prefix. */
  readonly stream: string;
  readonly revision: number;
  readonly type: string;
  readonly namespace_id: string | null;
  readonly agent_id: string | null;
  readonly metadata: string;
  readonly data: string;
}

interface Place {
  readonly namespaceId?: string;
  readonly agentId?: string;
  /** The resource a fact of a register is about. */
  readonly kind?: string;
  readonly id?: string;
}

/** Where an event belongs: what it says itself, else its stream, else the target of its audit record. */
const placeOf = (data: Place, kind: string, stream: string, { audit }: Envelope): Pick<HistoryRow, 'namespace_id' | 'agent_id'> => {
  const idOf = (wanted: string): string | undefined =>
    kind === wanted ? stream.slice(kind.length + 1) : audit?.resource.kind === wanted ? audit.resource.id : undefined;
  return {
    namespace_id: data.namespaceId ?? idOf('namespace') ?? audit?.resource.namespaceId ?? null,
    agent_id: data.agentId ?? (data.kind === 'agent' ? data.id : undefined) ?? idOf('agent') ?? null,
  };
};

export const historyProjection: Projection<Message, HistoryRow> = {
  name: 'history',
  version: 1,
  streams: undefined,
  table: {
    key: 'position',
    columns: {
      position: 'text',
      id: 'text',
      stream: 'text',
      revision: 'integer',
      type: 'text',
      namespace_id: 'text',
      agent_id: 'text',
      metadata: 'text',
      data: 'text',
    },
    indexes: [
      { on: ['id'], unique: true },
      { on: ['namespace_id', 'position'], where: 'namespace_id is not null' },
      { on: ['agent_id', 'position'], where: 'agent_id is not null' },
      { on: ['type', 'position'] },
    ],
  },
  on: ({ type, data, envelope, position, stream, kind, metadata }) => [
    {
      upsert: {
        position,
        id: envelope.id,
        stream,
        revision: envelope.revision,
        type,
        ...placeOf(data, kind, stream, envelope),
        metadata,
        data: JSON.stringify(publicView(productEvents.definitions.get(type)!, data)),
      },
    },
  ],
};

const view = (row: HistoryRow): HistoryEventView => {
  const metadata = JSON.parse(row.metadata) as Metadata;
  return {
    id: row.id,
    position: row.position,
    stream: row.stream,
    revision: row.revision,
    type: row.type,
    schema: metadata.schema,
    occurredAt: metadata.occurredAt,
    actor: metadata.actor,
    requestId: metadata.requestId,
    correlationId: metadata.correlationId,
    causationId: metadata.causationId,
    policyRevision: metadata.policyRevision,
    audit: metadata.audit ?? null,
    namespaceId: row.namespace_id,
    agentId: row.agent_id,
    data: JSON.parse(row.data) as HistoryEventView['data'],
  };
};

/** The streams of an Agent and of a Namespace are found by its id, which has an index. */
const located = ({ stream, ...filter }: HistoryFilter): HistoryFilter => {
  const [, kind, id] = /^(agent|namespace)-(.*)$/.exec(stream ?? '') ?? [];
  return { ...filter, stream, agentId: filter.agentId ?? (kind === 'agent' ? id : undefined), namespaceId: filter.namespaceId ?? (kind === 'namespace' ? id : undefined) };
};

const conditions = { namespaceId: 'namespace_id = ', agentId: 'agent_id = ', types: 'type = any', stream: 'stream = ' } as const satisfies Record<keyof HistoryFilter, string>;

export const historyReads = (pool: Pool): HistoryReads => {
  const read = reader(pool, historyProjection, view);
  return {
    byIds: (ids) => read({ name: 'by_ids', select: 'select * from history_v1 where id = any($1)', order: 'position' }, [ids]),
    list: (asked, { after, limit }) => {
      const filter = located(asked);
      // A statement for each set of members, so that each can use its index.
      const wanted = (Object.keys(conditions) as (keyof HistoryFilter)[]).filter((member) => filter[member] !== undefined);
      const where = wanted.map((member, index) => `and ${conditions[member]}($${index + 3})`).join(' ');
      return read(
        { name: ['list', ...wanted].join('_'), select: `select * from history_v1 where position > $1 ${where} order by position limit $2`, order: 'position' },
        [after ?? '', limit, ...wanted.map((member) => filter[member])],
      );
    },
  };
};
