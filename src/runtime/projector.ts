/** The projector: makes a consumer of a projection, and a second one that fills a shadow table for a rebuild. */
import type { ClientBase } from 'pg';
import type { Message } from '../kernel/decider.ts';
import type { Consumer, Delivered, ShadowConsumer, Unread } from './consumer.ts';
import { tableOf, type Change, type ColumnType, type Projection } from './projection.ts';
import { createRowChanges } from './row-changes.ts';

// eslint-disable-next-line @typescript-eslint/no-explicit-any -- a list of projections holds many event and row types
export type AnyProjection = Projection<any, any>;

type AnyHandler = (delivered: Delivered) => readonly Change<Record<string, unknown>>[];

const shadowSuffix = '_rebuild';
const sqlTypes: Readonly<Record<ColumnType, string>> = { text: 'text collate "C"', integer: 'integer' };

const indexing = (table: string, { table: { indexes } }: AnyProjection): readonly string[] =>
  indexes.map(
    ({ on, unique, where }, index) =>
      `create ${unique === true ? 'unique ' : ''}index if not exists ${table}_${index} on ${table} (${on.join(', ')})${where === undefined ? '' : ` where ${where}`}`,
  );

const createTable = async (client: ClientBase, table: string, projection: AnyProjection): Promise<void> => {
  const { key, columns, indexedLast } = projection.table;
  const definitions = Object.entries(columns as Record<string, ColumnType>).map(([name, type]) => `${name} ${sqlTypes[type]}${name === key ? ' primary key' : ''}`);
  await client.query(`create table if not exists ${table} (${definitions.join(', ')})`);
  if (indexedLast !== true) for (const statement of indexing(table, projection)) await client.query(statement);
};

const follow = (projection: AnyProjection, table: string): Pick<Consumer, 'role' | 'streams' | 'handles' | 'prepare' | 'completion' | 'begin'> => {
  const on = projection.on as AnyHandler | Readonly<Record<string, AnyHandler | undefined>>;
  const unread = projection.unread as ((event: Unread) => readonly Change<Record<string, unknown>>[]) | undefined;
  const handlerOf = (type: string): AnyHandler | undefined => (typeof on === 'function' ? on : on[type]);
  return {
    role: 'read-model',
    streams: projection.streams === undefined ? undefined : new Set(projection.streams),
    handles: (type) => handlerOf(type) !== undefined,
    prepare: (client) => createTable(client, table, projection),
    ...(projection.table.indexedLast === true && { completion: indexing(table, projection) }),
    begin: () => {
      const changes = createRowChanges(table, projection.table);
      return {
        add: (delivered) => changes.add(handlerOf(delivered.type)?.(delivered) ?? []),
        ...(unread !== undefined && {
          mark: (event) => changes.add(unread(event)),
        }),
        write: (client) => changes.write(client),
      };
    },
  };
};

const shadowOf = (projection: AnyProjection): ShadowConsumer => {
  const live = tableOf(projection);
  const table = `${live}${shadowSuffix}`;
  return {
    ...follow(projection, table),
    name: `${projection.name}${shadowSuffix}`,
    version: projection.version,
    discard: async (client) => {
      await client.query(`drop table if exists ${table}`);
    },
    takeOver: async (client) => {
      await client.query(`drop table if exists ${live}`);
      await client.query(`alter table ${table} rename to ${live}`);
      const { rows } = await client.query<{ index: string }>('select indexname as index from pg_indexes where schemaname = current_schema() and tablename = $1', [live]);
      for (const { index } of rows) await client.query(`alter index ${index} rename to ${index.replace(shadowSuffix, '')}`);
    },
  };
};

/** The consumer that keeps a projection's table. */
export const projector = <E extends Message>(projection: Projection<E, never> | AnyProjection): Consumer => ({
  ...follow(projection, tableOf(projection)),
  name: projection.name,
  version: projection.version,
  shadow: shadowOf(projection),
});
