/**
 * The PostgreSQL event store: appends through one server-side function and a group-commit lane, reads through
 * the caller's pool, subscriptions woken by one shared LISTEN connection. Tables and function are in
 * src/postgres/migrations/000001.sql. (architecture section 3)
 */
import type { Pool } from 'pg';
import { checkAppend } from './check-append.ts';
import type { EventStore, Filter, Page, Position, StoredEvent } from './event-store.ts';
import { follow } from './follow.ts';
import { createAppendLane } from './postgres/append-lane.ts';
import { failure } from './postgres/connection.ts';
import { createListener } from './postgres/listener.ts';
import { isPosition, positionText } from './postgres/position.ts';

export interface PostgresEventStoreOptions {
  /** Serves the reads; it stays the caller's. */
  readonly pool: Pool;
  /** Where the two connections go that the store owns: one for appends, one for notifications. */
  readonly url: string;
  /** How long an append is tried before it is `StoreUnavailable`. 5 s. */
  readonly appendBudgetMs?: number;
  /** How long a subscription trusts silence before it reads anyway. 5 s. */
  readonly pollMs?: number;
}

const readTimeoutMs = 10_000;
/** Most events that one page examines for those its filter keeps. */
const pageWindow = 5_000;
const columns = 'event.position, event.stream, event.revision, event.id, event.type, event.data, event.metadata';

interface Row {
  readonly position: string;
  readonly stream: string;
  readonly revision: number;
  readonly id: string;
  readonly type: string;
  readonly data: string;
  readonly metadata: string;
}

const storedEvent = ({ position, stream, revision, id, type, data, metadata }: Row): StoredEvent =>
  ({ position: positionText(position), stream, revision, id, type, data, metadata });

/** The event store in a PostgreSQL database with our migrations. Closing it leaves the pool open. */
export const createPostgresEventStore = ({
  pool,
  url,
  appendBudgetMs = 5_000,
  pollMs = 5_000,
}: PostgresEventStoreOptions): EventStore => {
  const lane = createAppendLane(url, appendBudgetMs);
  const listener = createListener(url);
  const closing = new AbortController();

  const query = async <R extends object>(name: string, text: string, values: unknown[]): Promise<R[]> => {
    const config = { name, text, values, query_timeout: readTimeoutMs };
    try {
      return (await pool.query<R>(config)).rows;
    } catch (error) {
      throw failure(error);
    }
  };

  const readStreams: EventStore['readStreams'] = async (requests) => {
    if (requests.length === 0) return [];
    const rows = await query<Row & { readonly request: number }>(
      'read_streams',
      `select wanted.request::integer, ${columns}
         from unnest($1::text[], $2::integer[]) with ordinality as wanted (stream, from_revision, request)
        cross join lateral (select * from event
                             where event.stream = wanted.stream and event.revision >= wanted.from_revision
                             order by event.revision) as event
        order by wanted.request, event.revision`,
      [requests.map(({ stream }) => stream), requests.map(({ fromRevision }) => fromRevision)],
    );
    const answers: StoredEvent[][] = requests.map(() => []);
    for (const row of rows) answers[row.request - 1]!.push(storedEvent(row));
    return answers;
  };

  /**
   * The kept events among the next {@link pageWindow}, and the last of these events, kept or not, for its position;
   * `examined` is its number, and null on all others. One index range that ends with the limit.
   */
  const readAll = async (after: Position | null, { streamPrefix }: Filter, limit: number): Promise<Page> => {
    if (after !== null && !isPosition(after)) throw new RangeError(`${after} is not a position of this store`);
    const examine = Math.max(limit, pageWindow);
    const rows = await query<Row & { readonly examined: number | null }>(
      'read_all',
      `select ${columns}, case when last then number::integer end as examined
         from (select *, row_number() over ordered as number, lead(position) over ordered is null as last
                 from (select * from event where position > $1 order by position limit $2) as next_events
               window ordered as (order by position)) as event
        where last or starts_with(stream, $3) order by position limit $4`,
      [after ?? '0', examine, streamPrefix, limit],
    );
    const last = rows.at(-1);
    return {
      events: rows.filter(({ stream }) => stream.startsWith(streamPrefix)).map(storedEvent),
      position: last === undefined ? after : positionText(last.position),
      end: last === undefined || (last.examined !== null && last.examined < examine),
    };
  };

  return {
    async append(stream, expectedRevision, events) {
      checkAppend(stream, expectedRevision, events);
      return lane.append(stream, expectedRevision, events);
    },
    readStream: async (stream, fromRevision) => (await readStreams([{ stream, fromRevision }]))[0] ?? [],
    readStreams,
    readAll,
    async readAt(position) {
      if (!isPosition(position)) return undefined;
      const [row] = await query<Row>('read_at', `select ${columns} from event where position = $1`, [position]);
      return row === undefined ? undefined : storedEvent(row);
    },
    subscribe: (after, filter, { limit, signal }) =>
      follow((position) => readAll(position, filter, limit), listener, after, {
        signal: AbortSignal.any([signal, closing.signal]),
        pollMs,
      }),
    async head({ streamPrefix }) {
      const [row] = await query<Row>(
        'read_head',
        'select position from event where starts_with(stream, $1) order by position desc limit 1',
        [streamPrefix],
      );
      return row === undefined ? null : positionText(row.position);
    },
    async close() {
      closing.abort();
      await Promise.all([lane.close(), listener.close()]);
    },
  };
};
