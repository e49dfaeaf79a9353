/** Read model: every event of the Installation, with its metadata as stored and the public view of its data. */
import type { Pool } from 'pg';
import Type from 'typebox';
import type { AuditFilter, HistoryEventView, HistoryFilter, HistoryReads } from '../src/history/view.ts';
import { publicView, Undecodable } from '../src/kernel/codec.ts';
import type { Message } from '../src/kernel/decider.ts';
import type { AuditRecord, Metadata } from '../src/kernel/event.ts';
import { validator } from '../src/kernel/parse.ts';
import type { Projection } from '../src/runtime/projection.ts';
import type { PageRequest } from '../src/runtime/reading.ts';
import { productEvents } from './events.ts';
import { page, pageValues, reader } from './reading.ts';

interface HistoryRow {
  readonly position: string;
  readonly id: string;
  /** Without the Installation prefix. */
  readonly stream: string;
  readonly revision: number;
  readonly type: string;
  readonly namespace_id: string | null;
  readonly agent_id: string | null;
  /** Who, what, on which resource, with what outcome, when: of the audit record, where the event carries one. */
  readonly actor_id: string | null;
  readonly action: string | null;
  readonly resource_id: string | null;
  readonly outcome: string | null;
  readonly occurred_at: string | null;
  /** As stored; null where it cannot be read either. */
  readonly metadata: string | null;
  /** Null for an event that cannot be read. */
  readonly data: string | null;
}

interface Place {
  readonly namespaceId?: string;
  readonly agentId?: string;
  /** The resource a fact of a register is about. */
  readonly kind?: string;
  readonly id?: string;
}

type Placed = Pick<HistoryRow, 'namespace_id' | 'agent_id'>;

/** Where an event belongs: what it says itself, else its stream, else the target of its audit record. */
const placeOf = (data: Place, kind: string, stream: string, audit: AuditRecord | undefined): Placed => {
  const idOf = (wanted: string): string | undefined =>
    kind === wanted ? stream.slice(kind.length + 1) : audit?.resource.kind === wanted ? audit.resource.id : undefined;
  return {
    namespace_id: data.namespaceId ?? idOf('namespace') ?? audit?.resource.namespaceId ?? null,
    agent_id: data.agentId ?? (data.kind === 'agent' ? data.id : undefined) ?? idOf('agent') ?? null,
  };
};

const optionalText = Type.Optional(Type.String());
const nullableText = Type.Optional(Type.Union([Type.String(), Type.Null()]));
/** What GraphQL can show as a number. */
const shownInteger = Type.Integer({ minimum: -(2 ** 31), maximum: 2 ** 31 - 1 });
const resource = Type.Object({ kind: Type.String(), id: Type.String(), namespaceId: optionalText });
/** What answers show of metadata; an event that carries less cannot be read, whatever its data. */
const shownMetadata = Type.Object({
  schema: shownInteger,
  actor: Type.Object({ principalId: Type.String(), kind: Type.String(), serviceKeyId: optionalText }),
  requestId: nullableText,
  correlationId: Type.String(),
  causationId: nullableText,
  occurredAt: Type.String(),
  policyRevision: Type.Optional(Type.Union([shownInteger, Type.Null()])),
  audit: Type.Optional(
    Type.Object({
      kind: Type.String(),
      action: Type.String(),
      resource,
      outcome: Type.String(),
      reasonCode: optionalText,
      authorization: Type.Optional(Type.Object({ principalId: Type.String(), action: Type.String(), resource })),
    }),
  ),
});
const isShown = (metadata: unknown): boolean => validator(shownMetadata)(metadata);

const readMetadata = (text: string): Metadata | undefined => {
  try {
    const metadata = JSON.parse(text) as unknown;
    return isShown(metadata) ? (metadata as Metadata) : undefined;
  } catch {
    return undefined; // no JSON, and so nothing to show
  }
};

type Audited = Pick<HistoryRow, 'actor_id' | 'action' | 'resource_id' | 'outcome' | 'occurred_at'>;

const auditedBy = (metadata: Metadata | undefined): Audited => {
  if (metadata?.audit === undefined) return { actor_id: null, action: null, resource_id: null, outcome: null, occurred_at: null };
  const { actor, audit, occurredAt } = metadata;
  return { actor_id: actor.principalId, action: audit.action, resource_id: audit.resource.id, outcome: audit.outcome, occurred_at: occurredAt };
};

const audited = 'action is not null';

export const historyProjection: Projection<Message, HistoryRow> = {
  name: 'history',
  version: 3,
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
      actor_id: 'text',
      action: 'text',
      resource_id: 'text',
      outcome: 'text',
      occurred_at: 'text',
      metadata: 'text',
      data: 'text',
    },
    indexedLast: true,
    indexes: [
      { on: ['id'], unique: true },
      { on: ['namespace_id', 'position'], where: 'namespace_id is not null' },
      { on: ['agent_id', 'position'], where: 'agent_id is not null' },
      { on: ['type', 'position'] },
      { on: ['actor_id', 'position'], where: audited },
      { on: ['action', 'position'], where: audited },
      { on: ['resource_id', 'position'], where: audited },
      { on: ['outcome', 'position'], where: audited },
      { on: ['occurred_at', 'position'], where: audited },
    ],
  },
  on: ({ type, data, envelope, position, stream, kind, metadata }) => {
    if (!isShown(envelope)) throw new Undecodable(`The metadata of ${type} at ${stream}@${envelope.revision} cannot be read`);
    return [
      {
        upsert: {
          position,
          id: envelope.id,
          stream,
          revision: envelope.revision,
          type,
          ...placeOf(data, kind, stream, envelope.audit),
          ...auditedBy(envelope),
          metadata,
          data: JSON.stringify(publicView(productEvents.definitions.get(type)!, data)),
        },
      },
    ];
  },
  unread: ({ position, id, stream, revision, type, kind, metadata: text }) => {
    const metadata = readMetadata(text);
    return [
      {
        upsert: {
          position,
          id,
          stream,
          revision,
          type,
          ...placeOf({}, kind, stream, metadata?.audit),
          ...auditedBy(metadata),
          metadata: metadata === undefined ? null : text,
          data: null,
        },
      },
      // An Agent stays in its Namespace: what its stream said before, holds for what cannot be read of it.
      { inherit: position, column: 'namespace_id', from: ['agent_id', 'stream'] },
    ];
  },
};

const view = (row: HistoryRow): HistoryEventView => {
  const metadata = row.metadata === null ? null : (JSON.parse(row.metadata) as Metadata);
  return {
    id: row.id,
    position: row.position,
    stream: row.stream,
    revision: row.revision,
    type: row.type,
    unreadable: row.data === null,
    schema: metadata?.schema ?? null,
    occurredAt: metadata?.occurredAt ?? null,
    actor: metadata?.actor ?? null,
    requestId: metadata?.requestId ?? null,
    correlationId: metadata?.correlationId ?? null,
    causationId: metadata?.causationId ?? null,
    policyRevision: metadata?.policyRevision ?? null,
    audit: metadata?.audit ?? null,
    namespaceId: row.namespace_id,
    agentId: row.agent_id,
    data: row.data === null ? null : (JSON.parse(row.data) as HistoryEventView['data']),
  };
};

/** The streams of an Agent and of a Namespace are found by its id, which has an index. */
const located = ({ stream, ...filter }: HistoryFilter): HistoryFilter => {
  const [, kind, id] = /^(agent|namespace)-(.*)$/.exec(stream ?? '') ?? [];
  return { ...filter, stream, agentId: filter.agentId ?? (kind === 'agent' ? id : undefined), namespaceId: filter.namespaceId ?? (kind === 'namespace' ? id : undefined) };
};

const conditions = { namespaceId: 'namespace_id = ', agentId: 'agent_id = ', types: 'type = any', stream: 'stream = ' } as const satisfies Record<keyof HistoryFilter, string>;
const auditConditions = {
  namespaceId: 'namespace_id = ',
  actorId: 'actor_id = ',
  action: 'action = ',
  resourceId: 'resource_id = ',
  outcome: 'outcome = ',
  since: 'occurred_at >= ',
  until: 'occurred_at < ',
} as const satisfies Record<keyof AuditFilter, string>;

/** A condition for the events that name no revision but what their reader may read: {@link VisibilityBelow}. */
const ofSeenRevisions = `not exists (
  select from regexp_matches(data, 'rev_[0-9a-f-]{36}', 'g') as named
   cross join lateral (select wanted.namespace_id || '/' || named[1]) as one (name)
   where not (wanted.revisions or one.name = any($5::text[])) or one.name = any($6::text[]))`;
const ofAgent = `agent_id = wanted.id and namespace_id = wanted.namespace_id and (wanted.whole or (stream = 'agent-' || wanted.id and ${ofSeenRevisions}))`;

/** What cannot be read at all may have been an audit record; it is asked for by its Namespace alone. */
const maybeAudited = `(${audited} or metadata is null)`;

/** A filter as SQL whose parameters begin at a number: a statement for each set of its members, so that each can use its index. */
const within = <Filter extends object>(name: string, always: string, conditions: Readonly<Record<keyof Filter & string, string>>, filter: Filter, parameter: number) => {
  const members = Object.keys(conditions) as (keyof Filter & string)[];
  const wanted = members.filter((member) => filter[member] !== undefined);
  return {
    name: [name, ...wanted.map((member) => members.indexOf(member))].join('_'),
    where: [always, ...wanted.map((member, index) => `${conditions[member]}($${index + parameter})`)].join(' and '),
    values: wanted.map((member) => filter[member]),
  };
};

/** A page within a filter. A cursor counts within the same filter only. */
const listed = <Filter extends object>(name: string, always: string, conditions: Readonly<Record<keyof Filter & string, string>>, filter: Filter, { from, limit }: PageRequest) => {
  const { name: named, where, values } = within(name, always, conditions, filter, 3);
  const start = `case when $1::text is null then '' else (select position from history_v3 where id = $1 and ${where}) end`;
  return [
    { name: named, select: `select * from history_v3 where ${where} and position >= ${start} order by position limit $2::integer`, order: 'position' },
    [from, limit, ...values],
  ] as const;
};

export const historyReads = (pool: Pool): HistoryReads => {
  const read = reader(pool, historyProjection, view);
  return {
    byIds: (ids) => read({ name: 'by_ids', select: `select * from history_v3 where id = any($1)`, order: 'position' }, [ids]),
    list: (filter, request) => read(...listed('list', 'true', conditions, located(filter), request)),
    listOfNamespaces: (ids, request) =>
      read(
        {
          name: 'list_of_namespaces',
          select: `
            select one.* from unnest($1::text[]) as wanted (id)
             cross join lateral (${page('history_v3', 'namespace_id = wanted.id', 'position', 'id', 2)}) as one`,
          order: 'position',
        },
        [ids, ...pageValues(request)],
      ),
    listOfAgents: (owners, { parents, only, except }, request) =>
      read(
        {
          name: 'list_of_agents',
          select: `
            select one.* from unnest($1::text[], $2::text[], $3::boolean[], $4::boolean[]) as wanted (namespace_id, id, whole, revisions)
             cross join lateral (${page('history_v3', ofAgent, 'position', 'id', 7)}) as one`,
          order: 'position',
        },
        [owners.map(({ namespaceId }) => namespaceId), owners.map(({ id }) => id), owners.map(({ whole }) => whole), parents.map(({ whole }) => whole), only, except, ...pageValues(request)],
      ),
    hasPosition: async (position) => (await read({ name: 'at', select: 'select * from history_v3 where position = $1', order: 'position' }, [position])).rows.length > 0,
    newest: async (filter) => {
      const { name, where, values } = within('newest', 'true', conditions, located(filter), 1);
      const { rows } = await read({ name, select: `select * from history_v3 where ${where} order by position desc limit 1`, order: 'position' }, values);
      return rows[0]?.id ?? null;
    },
    listAudit: (filter, request) => {
      const { namespaceId, ...more } = filter;
      const asksMore = Object.values(more).some((value) => value !== undefined);
      return read(...listed(asksMore ? 'audit' : 'audit_all', asksMore ? audited : maybeAudited, auditConditions, filter, request));
    },
  };
};
