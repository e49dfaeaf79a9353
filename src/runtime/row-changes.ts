/**
 * Row changes of many events merged per key and written set-wise: the number of statements depends on the kinds
 * of changes in a batch, not on their number. Rows travel as one array per column, which costs PostgreSQL half of
 * what json_to_recordset does.
 */
import type { ClientBase } from 'pg';
import { sha256 } from '../kernel/canonical.ts';
import { Fault } from '../kernel/errors.ts';
import { textArray } from '../postgres/text-array.ts';
import type { Change, ColumnType, Table } from './projection.ts';

type Row = Readonly<Record<string, unknown>>;
type Pending = { readonly op: 'upsert' | 'patch' | 'remove'; readonly columns: Row };

/** Changes whose order does not matter any more: rows first, then removals by condition. */
interface Segment {
  readonly rows: Map<string, Pending>;
  readonly conditions: Row[];
}

export interface RowChanges {
  /**
   * Takes in what one event changes, all of it or nothing.
   * @throws Fault for a value that its column does not take
   */
  add(changes: readonly Change<Row>[]): void;
  write(client: ClientBase): Promise<void>;
}

/** Whether a row with these columns is certainly not meant by a condition. */
const isOutside = (columns: Row, condition: Row): boolean => Object.entries(condition).some(([name, value]) => name in columns && columns[name] !== value);

const valuesOf = (change: Change<Row>): Row => ('upsert' in change ? change.upsert : 'set' in change ? change.set : 'removeWhere' in change ? change.removeWhere : {});

const takes = (type: ColumnType | undefined, value: unknown): boolean => value == null || typeof value === (type === 'integer' ? 'number' : 'string');

const names = new Map<string, string>();
const statement = (text: string, values: readonly unknown[]) => {
  let name = names.get(text);
  if (name === undefined) names.set(text, (name = `rows_${sha256(text).slice(0, 24)}`));
  return { name, text, values: [...values] };
};

const parameterOf = (type: ColumnType, values: readonly unknown[]): unknown => (type === 'text' ? textArray(values as readonly (string | null | undefined)[]) : values);

/** Rows that have the same columns, in the same order: their values in that order, which is found faster than by name. */
interface Group {
  readonly names: readonly string[];
  readonly rows: (readonly unknown[])[];
}

/** The columns of all changes of one kind, grouped by which columns they are. */
const byColumns = (pendings: readonly Pending[], op: Pending['op']): readonly Group[] => {
  const groups = new Map<string, Group>();
  for (const pending of pendings) {
    if (pending.op !== op) continue;
    const names = Object.keys(pending.columns);
    const signature = names.join();
    const group = groups.get(signature);
    if (group === undefined) groups.set(signature, { names, rows: [Object.values(pending.columns)] });
    else group.rows.push(Object.values(pending.columns));
  }
  return [...groups.values()];
};

/** Collects changes of one table, in order. */
export const createRowChanges = (table: string, { key, columns: types }: Table<Row>): RowChanges => {
  let segment: Segment = { rows: new Map(), conditions: [] };
  const segments = [segment];
  /** Keys of the rows that inherit, by what they do. */
  const heirs = new Map<string, { readonly column: string; readonly from: readonly string[]; readonly keys: string[] }>();
  const startSegment = (): void => {
    segment = { rows: new Map(), conditions: [] };
    segments.push(segment);
  };

  const addOne = (change: Change<Row>): void => {
    if ('removeWhere' in change) {
      segment.conditions.push(change.removeWhere);
      return;
    }
    if ('inherit' in change) {
      const { inherit, column, from } = change;
      const kind = [column, ...from].join();
      const alike = heirs.get(kind) ?? { column, from, keys: [] };
      alike.keys.push(inherit);
      heirs.set(kind, alike);
      return;
    }
    if ('remove' in change) {
      segment.rows.set(change.remove, { op: 'remove', columns: { [key]: change.remove } });
      return;
    }
    if ('patch' in change) {
      const pending = segment.rows.get(change.patch);
      if (pending?.op === 'remove') return;
      segment.rows.set(change.patch, { op: pending?.op ?? 'patch', columns: { ...pending?.columns, ...change.set, [key]: change.patch } });
      return;
    }
    const id = change.upsert[key] as string;
    const pending = segment.rows.get(id);
    const op = pending?.op ?? 'upsert';
    if (op !== 'upsert' || !segment.conditions.every((condition) => isOutside(change.upsert, condition))) startSegment();
    segment.rows.set(id, { op: 'upsert', columns: pending?.op === 'upsert' ? { ...segment.rows.get(id)?.columns, ...change.upsert } : change.upsert });
  };

  const writeSegment = async (client: ClientBase, { rows, conditions }: Segment): Promise<void> => {
    /** Runs a statement over rows with these columns, which it finds under the name `new`. */
    const over = async ({ names, rows }: Group, text: (names: readonly string[], source: string) => string): Promise<void> => {
      const source = `unnest(${names.map((name, index) => `$${index + 1}::${types[name]!}[]`).join(', ')}) as new (${names.join(', ')})`;
      await client.query(statement(text(names, source), names.map((name, index) => parameterOf(types[name]!, rows.map((row) => row[index])))));
    };
    const pendings = [...rows.values()];
    const others = (names: readonly string[]): readonly string[] => names.filter((name) => name !== key);

    for (const group of byColumns(pendings, 'upsert'))
      await over(group, (names, source) => {
        const sets = others(names).map((name) => `${name} = excluded.${name}`);
        return `insert into ${table} (${names.join(', ')}) select * from ${source} on conflict (${key}) do ${sets.length === 0 ? 'nothing' : `update set ${sets.join(', ')}`}`;
      });
    for (const group of byColumns(pendings, 'patch'))
      await over(group, (names, source) => `update ${table} as own set ${others(names).map((name) => `${name} = new.${name}`).join(', ')} from ${source} where own.${key} = new.${key}`);
    for (const group of [...byColumns(pendings, 'remove'), ...byColumns(conditions.map((columns) => ({ op: 'remove', columns })), 'remove')])
      await over(group, (names, source) => `delete from ${table} as own using ${source} where ${names.map((name) => `own.${name} = new.${name}`).join(' and ')}`);
  };

  const writeHeirs = async (client: ClientBase): Promise<void> => {
    for (const { column, from, keys } of heirs.values()) {
      const nearest = `
        select known.${column} from ${table} as known
         where ${from.map((name) => `known.${name} = own.${name}`).join(' and ')} and known.${column} is not null and known.${key} < own.${key}
         order by known.${key} desc limit 1`;
      await client.query(statement(`update ${table} as own set ${column} = (${nearest}) from unnest($1::text[]) as new (${key}) where own.${key} = new.${key} and own.${column} is null`, [keys]));
    }
  };

  return {
    add: (changes) => {
      for (const change of changes)
        for (const [name, value] of Object.entries(valuesOf(change)))
          if (!takes(types[name], value)) throw new Fault(`The column ${name} of ${table} takes no ${typeof value}`);
      for (const change of changes) addOne(change);
    },
    write: async (client) => {
      for (const one of segments) await writeSegment(client, one);
      await writeHeirs(client);
    },
  };
};
