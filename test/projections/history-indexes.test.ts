/** The indexes of the history: there when the first reader comes, after every way of filling, and of use to every filter. */
import type { Pool } from 'pg';
import { expect, it } from 'vitest';
import { historyProjection, historyReads } from '../../projections/history.ts';
import { productEvents } from '../../projections/index.ts';
import type { EventStore } from '../../src/event-store/event-store.ts';
import type { AuditFilter, HistoryFilter } from '../../src/history/view.ts';
import { rebuild } from '../../src/runtime/consumer-rebuild.ts';
import { tableOf } from '../../src/runtime/projection.ts';
import { projector } from '../../src/runtime/projector.ts';
import { startConsumers, until, untilPassed } from '../support/consumers.ts';
import { createDatabase, type TestDatabase } from '../support/database.ts';
import { writeEveryEvent } from '../support/every-event.ts';
import { createInMemoryEventStore } from '../support/in-memory-event-store.ts';
import { prefix, writeHistory } from '../support/write-history.ts';

const table = tableOf(historyProjection);
const consumer = projector(historyProjection);
const filter = { streamPrefix: prefix };

const indexesOf = async ({ pool }: TestDatabase): Promise<readonly string[]> =>
  (await pool.query<{ name: string }>('select indexname as name from pg_indexes where tablename = $1 order by indexname', [table])).rows.map(({ name }) => name);
const caughtUp = async ({ pool }: TestDatabase): Promise<boolean> =>
  (await pool.query('select from consumer_checkpoint where name = $1 and caught_up_at is not null', [historyProjection.name])).rowCount === 1;
const all = [...historyProjection.table.indexes.map((_, index) => `${table}_${index}`), `${table}_pkey`].sort();

it('come when the table has filled up to the last event, also where filling was interrupted, and with every rebuild', async () => {
  const database = await createDatabase();
  const store = createInMemoryEventStore();
  await writeEveryEvent(writeHistory(store));
  const head = (await store.head(filter))!;
  const first = await store.readAll(null, filter, 10);
  /** Far from its end for ever. */
  const endless: EventStore = {
    ...store,
    head: () => new Promise(() => {}),
    subscribe: async function* (_after, _filter, { signal }) {
      yield first;
      await new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve(), { once: true }));
    },
  };
  const filling = startConsumers(database, endless, { consumers: [consumer] });
  await untilPassed(database, first.position!, [consumer.name]);
  expect([await indexesOf(database), await caughtUp(database)]).toEqual([[`${table}_pkey`], false]);
  await filling.stop();

  const filled = startConsumers(database, store, { consumers: [consumer] });
  await untilPassed(database, head, [consumer.name]);
  await until('a consumer that stands at the end', () => caughtUp(database));
  expect(await indexesOf(database)).toEqual(all);

  await rebuild({ url: database.url, store, prefix, codec: productEvents, consumer });
  expect(await indexesOf(database)).toEqual(all);
  await filled.stop();
});

const eventCount = 20_000;

/** A history of many Namespaces, Agents and people, one second after the other; some things are rare in it. */
const fill = async (pool: Pool): Promise<void> => {
  const client = await pool.connect();
  try {
    await consumer.prepare(client);
    for (const statement of consumer.completion!) await client.query(statement);
    await client.query(
      `insert into ${table} (position, id, stream, revision, type, namespace_id, agent_id, actor_id, action, resource_id, outcome, occurred_at, metadata, data)
       select lpad(n::text, 20, '0'), 'id-' || n, 'agent-agt_' || n % 500, n / 500, case when n % 2000 = 0 then 'Rare' else 'Common' end, 'ns_' || n % 100, 'agt_' || n % 500,
              'prn_' || n % 200, 'action-' || n % 60, 'agt_' || n % 500, case when n % 200 = 0 then 'denied' else 'success' end,
              to_char(timestamp '2026-01-01' + n * interval '1 second', 'YYYY-MM-DD"T"HH24:MI:SS".000Z"'), '{}', '{}'
         from generate_series(1, $1::integer) as n`,
      [eventCount],
    );
    await client.query(`analyze ${table}`);
  } finally {
    client.release();
  }
};

interface Plan {
  readonly 'Node Type': string;
  readonly 'Index Name'?: string;
  readonly 'Relation Name'?: string;
  readonly Plans?: readonly Plan[];
}
const nodesOf = (plan: Plan): readonly Plan[] => [plan, ...(plan.Plans ?? []).flatMap(nodesOf)];

it('serve every filter of the history and of the audit records', async () => {
  const { pool } = await createDatabase();
  await fill(pool);
  const asked: { readonly text: string; readonly values: unknown[] }[] = [];
  const listening = { query: async (question: (typeof asked)[number]) => (asked.push(question), { rows: [] }) } as unknown as Pool;
  const reads = historyReads(listening);
  const page = { from: 'id-5000', limit: 51 };
  const histories: readonly (readonly [HistoryFilter, string])[] = [
    [{}, 'position'],
    [{ namespaceId: 'ns_7' }, 'namespace_id'],
    [{ agentId: 'agt_7' }, 'agent_id'],
    [{ types: ['Rare'] }, 'type'],
    [{ stream: 'agent-agt_7' }, 'agent_id'],
  ];
  const audits: readonly (readonly [AuditFilter, string])[] = [
    [{}, 'position'],
    [{ namespaceId: 'ns_7' }, 'namespace_id'],
    [{ actorId: 'prn_7' }, 'actor_id'],
    [{ action: 'action-7' }, 'action'],
    [{ resourceId: 'agt_7' }, 'resource_id'],
    [{ outcome: 'denied' }, 'outcome'],
    [{ since: '2026-01-01T05:33:00.000Z' }, 'occurred_at'],
    [{ until: '2026-01-01T00:00:20.000Z' }, 'occurred_at'],
  ];
  const expected: (readonly [string, string])[] = [];
  for (const [wanted, column] of histories) {
    await reads.list(wanted, page);
    await reads.newest(wanted);
    for (const kind of ['list', 'newest']) expected.push([`${kind} ${JSON.stringify(wanted)}`, column]);
  }
  for (const [wanted, column] of audits) {
    await reads.listAudit(wanted, { ...page, from: null });
    expected.push([`audit ${JSON.stringify(wanted)}`, column]);
  }
  await reads.byIds(['id-1', 'id-2']);
  expected.push(['by ids', 'id']);

  const { rows } = await pool.query<{ name: string; column: string }>(`select indexname as name, substring(indexdef from '\\("?(\\w+)') as column from pg_indexes where tablename = $1`, [table]);
  const columnOf = new Map(rows.map(({ name, column }) => [name, column]));
  for (const [index, { text, values }] of asked.entries()) {
    const [name, column] = expected[index]!;
    const { rows: explained } = await pool.query<{ 'QUERY PLAN': readonly [{ readonly Plan: Plan }] }>(`explain (format json) ${text}`, values);
    const nodes = nodesOf(explained[0]!['QUERY PLAN'][0].Plan);
    expect(nodes.filter((node) => node['Node Type'] === 'Seq Scan' && node['Relation Name'] === table), name).toEqual([]);
    const used = nodes.flatMap((node) => node['Index Name'] ?? []).map((found) => columnOf.get(found));
    expect(used, name).toContain(column);
  }
  expect(asked.length).toBe(expected.length);
});
