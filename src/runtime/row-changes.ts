/**
 * Row changes of many events merged per key and written set-wise: the number of statements depends on the kinds
 * of changes in a batch, not on their number.
 */
import type { ClientBase } from 'pg';
import { sha256 } from '../kernel/canonical.ts';
import type { Change, ColumnType, Table } from './projection.ts';

type Row = Readonly<Record<string, unknown>>;
type Pending = { readonly op: 'upsert' | 'patch' | 'remove'; readonly columns: Row };

/** Changes whose order does not matter any more: rows first, then removals by condition. */
interface Segment {
  readonly rows: Map<string, Pending>;
  readonly conditions: Row[];
}

export interface RowChanges {
  add(change: Change<Row>): void;
  write(client: ClientBase): Promise<void>;
}

/** Whether a row with these columns is certainly not meant by a condition. */
const isOutside = (columns: Row, condition: Row): boolean => Object.entries(condition).some(([name, value]) => name in columns && columns[name] !== value);

const sqlTypes: Readonly<Record<ColumnType, string>> = { text: 'text', integer: 'integer', place: 'text' };

const names = new Map<string, string>();
const statement = (text: string, values: readonly unknown[]) => {
  let name = names.get(text);
  if (name === undefined) names.set(text, (name = `rows_${sha256(text).slice(0, 24)}`));
  return { name, text, values: [...values] };
};

const byColumns = (pendings: readonly Pending[]): ReadonlyMap<string, Row[]> => {
  const groups = new Map<string, Row[]>();
  for (const { columns } of pendings) {
    const signature = Object.keys(columns).sort().join(', ');
    const group = groups.get(signature);
    if (group === undefined) groups.set(signature, [columns]);
    else group.push(columns);
  }
  return groups;
};

/** Collects changes of one table, in order. */
export const createRowChanges = (table: string, { key, columns: types }: Table<Row>): RowChanges => {
  let segment: Segment = { rows: new Map(), conditions: [] };
  const segments = [segment];
  const startSegment = (): void => {
    segment = { rows: new Map(), conditions: [] };
    segments.push(segment);
  };

  const add: RowChanges['add'] = (change) => {
    if ('removeWhere' in change) {
      segment.conditions.push(change.removeWhere);
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
    const op = segment.rows.get(id)?.op ?? 'upsert';
    if (op !== 'upsert' || !segment.conditions.every((condition) => isOutside(change.upsert, condition))) startSegment();
    segment.rows.set(id, { op: 'upsert', columns: { ...segment.rows.get(id)?.columns, ...change.upsert } });
  };

  const recordset = (signature: string): string =>
    `json_to_recordset($1::json) as new (${signature.split(', ').map((name) => `${name} ${sqlTypes[types[name]!]}`).join(', ')})`;

  const writeSegment = async (client: ClientBase, { rows, conditions }: Segment): Promise<void> => {
    const pendings = [...rows.values()];
    for (const [signature, group] of byColumns(pendings.filter(({ op }) => op === 'upsert'))) {
      const sets = signature.split(', ').filter((name) => name !== key).map((name) => `${name} = excluded.${name}`);
      const resolution = sets.length === 0 ? 'nothing' : `update set ${sets.join(', ')}`;
      await client.query(
        statement(`insert into ${table} (${signature}) select ${signature} from ${recordset(signature)} on conflict (${key}) do ${resolution}`, [JSON.stringify(group)]),
      );
    }
    for (const [signature, group] of byColumns(pendings.filter(({ op }) => op === 'patch'))) {
      const sets = signature.split(', ').filter((name) => name !== key).map((name) => `${name} = new.${name}`);
      await client.query(statement(`update ${table} as own set ${sets.join(', ')} from ${recordset(signature)} where own.${key} = new.${key}`, [JSON.stringify(group)]));
    }
    const removed = pendings.flatMap(({ op, columns }) => (op === 'remove' ? [columns[key]] : []));
    if (removed.length > 0) await client.query(statement(`delete from ${table} where ${key} = any($1::text[])`, [removed]));
    for (const [signature, group] of byColumns(conditions.map((columns) => ({ op: 'remove', columns })))) {
      const matches = signature.split(', ').map((name) => `own.${name} = new.${name}`).join(' and ');
      await client.query(statement(`delete from ${table} as own using ${recordset(signature)} where ${matches}`, [JSON.stringify(group)]));
    }
  };

  return {
    add,
    write: async (client) => {
      for (const one of segments) await writeSegment(client, one);
    },
  };
};
