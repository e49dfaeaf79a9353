/**
 * One statement per read: the rows, and beside them whether the projector has stood at the end of the store within
 * the last second and holds nothing back. (failure scenario 15)
 */
import pg from 'pg';
import type { Pool } from 'pg';
import type { PageRequest, Reading, Visibility, VisibilityBelow } from '../src/runtime/reading.ts';

/** Answers a named question; `select` and `order` are SQL of ours, never of a caller. */
export type Read<View> = (question: { readonly name: string; readonly select: string; readonly order: string }, values: readonly unknown[]) => Promise<Reading<View>>;

const undefinedTable = '42P01';

export const reader = <Row, View>(pool: Pool, { name, version }: { readonly name: string; readonly version: number }, view: (row: Row) => View): Read<View> => {
  const own = `name = '${name}' and version = ${version}`;
  const fresh = `
    exists (select from consumer_checkpoint where ${own} and caught_up_at > clock_timestamp() - interval '1 second')
    and not exists (select from parked_stream where ${own})`;
  return async (question, values) => {
    const text = `
      select standing.fresh, found.*
        from (select ${fresh} as fresh) as standing
        left join lateral (select true as present, answer.* from (${question.select}) as answer) as found on true
       order by ${question.order}`;
    try {
      const { rows } = await pool.query<Row & { fresh: boolean; present: boolean | null }>({ name: `${name}_v${version}.${question.name}`, text, values: [...values] });
      return { rows: rows.filter(({ present }) => present === true).map(view), fresh: rows[0]?.fresh === true };
    } catch (error) {
      // No projector of this build has run yet.
      if (error instanceof pg.DatabaseError && error.code === undefinedTable) return { rows: [], fresh: false };
      throw error;
    }
  };
};

/** A condition for the rows a caller may see; takes two parameters from the given number on: {@link visibilityValues}. */
export const visible = (key: string, parameter: number): string => `($${parameter}::text[] is null or ${key} = any($${parameter})) and not ${key} = any($${parameter + 1}::text[])`;

export const visibilityValues = ({ only, except }: Visibility): readonly unknown[] => [only ?? null, except];

/**
 * The rows of a table within a condition, one page of them in creation order, then key; takes two parameters from
 * the given number on: {@link pageValues}. A cursor counts within the same condition only, so that the id of a
 * hidden row is like one that nothing has.
 */
export const page = (table: string, within: string, created: string, key: string, parameter: number): string => `
  select * from ${table} where ${within}
     and ($${parameter}::text is null or (${created}, ${key}) >= (select ${created}, ${key} from ${table} where ${key} = $${parameter} and ${within}))
   order by ${created}, ${key} limit $${parameter + 1}::integer`;

export const pageValues = (request: PageRequest | undefined): readonly unknown[] => [request?.from ?? null, request?.limit ?? null];

/** {@link page} of the visible rows below each of several parents, `wanted.id` in their condition, all in one statement; takes {@link belowValues}. */
export const pageBelow = (table: string, within: string, created: string, key: string): string => {
  const name = `namespace_id || '/' || ${key}`;
  const seen = `(wanted.whole or ${name} = any($3::text[])) and not ${name} = any($4::text[])`;
  return `
  select one.* from unnest($1::text[], $2::boolean[]) as wanted (id, whole)
   cross join lateral (${page(table, `${within} and ${seen}`, created, key, 5)}) as one`;
};

export const belowValues = ({ parents, only, except }: VisibilityBelow, request: PageRequest | undefined): readonly unknown[] => [
  parents.map(({ id }) => id),
  parents.map(({ whole }) => whole),
  only,
  except,
  ...pageValues(request),
];
