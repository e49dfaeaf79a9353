/** Set-wise writing does what writing one change after the other would. */
import fc from 'fast-check';
import type { ClientBase } from 'pg';
import { expect, it } from 'vitest';
import type { Change, Table } from '../../src/runtime/projection.ts';
import { createRowChanges } from '../../src/runtime/row-changes.ts';
import { createDatabase } from '../support/database.ts';

interface Row {
  readonly id: string;
  readonly parent: string;
  readonly count: number | null;
  readonly text: string | null;
}
const table: Table<Row> = { key: 'id', columns: { id: 'text', parent: 'text', count: 'integer', text: 'text' }, indexes: [] };

/** The parent of a row never changes, as `removeWhere` asks. */
const parentOf = (id: string): string => (id < 'c' ? 'p' : 'q');
const id = fc.constantFrom('a', 'b', 'c', 'd');
const columns = fc.record({ count: fc.option(fc.integer({ min: -5, max: 5 })), text: fc.option(fc.constantFrom('', '"\\{},NULL', 'ü', 'null')) }, { requiredKeys: [] });
const change: fc.Arbitrary<Change<Row>> = fc.oneof(
  fc.tuple(id, columns).map(([key, set]) => ({ upsert: { id: key, parent: parentOf(key), ...set } })),
  fc.tuple(id, columns.filter((set) => Object.keys(set).length > 0)).map(([key, set]) => ({ patch: key, set })),
  id.map((key) => ({ remove: key })),
  fc.constantFrom('p', 'q').map((parent) => ({ removeWhere: { parent } })),
);

const write = async (client: ClientBase, name: string, changes: readonly Change<Row>[]): Promise<void> => {
  const rows = createRowChanges(name, table);
  rows.add(changes);
  await rows.write(client);
};

it('writes any sequence of changes set-wise as it would one by one', async () => {
  const { pool } = await createDatabase();
  const client = await pool.connect();
  for (const name of ['together', 'singly']) await client.query(`create table ${name} (id text primary key, parent text, count integer, text text)`);
  const rowsOf = async (name: string) => (await client.query<Row>(`select * from ${name} order by id`)).rows;
  await fc.assert(
    fc.asyncProperty(fc.array(change, { maxLength: 12 }), fc.array(change, { maxLength: 12 }), async (before, changes) => {
      await client.query('truncate together, singly');
      for (const batch of [before, changes]) {
        await write(client, 'together', batch);
        for (const one of batch) await write(client, 'singly', [one]);
      }
      expect(await rowsOf('together')).toEqual(await rowsOf('singly'));
    }),
    { numRuns: 80, seed: 20260101 },
  );
  client.release();
});

it('needs as many statements for 1,000 changes as for a few', async () => {
  const { pool } = await createDatabase();
  const client = await pool.connect();
  await client.query('create table counted (id text primary key, parent text, count integer, text text)');
  const statements = async (count: number): Promise<number> => {
    let sent = 0;
    const counting = { query: (...query: Parameters<ClientBase['query']>) => ((sent += 1), client.query(...query)) } as unknown as ClientBase;
    const all = Array.from({ length: count }, (_, index): Change<Row>[] => [
      { upsert: { id: `u${index}`, parent: 'p', count: index } },
      { patch: `p${index}`, set: { text: 'x' } },
      { remove: `r${index}` },
      { removeWhere: { parent: `gone${index}` } },
    ]).flat();
    await write(counting, 'counted', all);
    return sent;
  };
  expect([await statements(2), await statements(1_000)]).toEqual([4, 4]);
  client.release();
});
