/** Appends per second through the product's event stores, beside plain single-row INSERT commits into the same table shape. */
import { randomUUID } from 'node:crypto';
import type { Client } from 'pg';
import { noStream } from '../../src/event-store/event-store.ts';
import type { EventStore } from '../../src/event-store/event-store.ts';
import { openClient, openPool } from '../../src/postgres/pool.ts';
import { interleaved, quick, rate, storeNames, withStores } from './measure.ts';
import type { Row, StoreName } from './measure.ts';

const rounds = quick ? 1 : 5;
const roundMs = quick ? 100 : 1_000;
const callerCounts = [1, 8, 32];

const type = 'AgentUpdated';
const data = JSON.stringify({ agentId: randomUUID(), name: 'support-bot', note: 'x'.repeat(200) });
const metadata = JSON.stringify({ schema: 1, actor: { principalId: randomUUID(), kind: 'principal' }, previousHash: 'a'.repeat(64) });

/** The same columns and indexes, filled by one INSERT per commit and one connection per caller: no revision is judged. */
const createPlainTable = `
  create table plain_event (like event including all);
  create sequence plain_position owned by plain_event.position;
  alter table plain_event alter position set default nextval('plain_position')`;

const appender = (store: EventStore): (() => Promise<unknown>) => {
  const stream = `bench-${randomUUID()}`;
  let revision = noStream;
  return async () => {
    ({ revision } = await store.append(stream, revision, [{ id: randomUUID(), type, data, metadata }]));
  };
};

const inserter = (client: Client): (() => Promise<unknown>) => {
  const stream = `bench-${randomUUID()}`;
  let revision = 0;
  return () =>
    client.query({
      name: 'insert',
      text: 'insert into plain_event (stream, revision, id, type, data, metadata) values ($1, $2, $3, $4, $5, $6)',
      values: [stream, revision++, randomUUID(), type, data, metadata],
    });
};

export const measure = (storeName: StoreName): Promise<Row[]> =>
  withStores(storeName, async ({ url, openEventStore }) => {
    const pool = openPool({ url });
    await pool.query(createPlainTable);
    const store = openEventStore(pool);
    const clients = await Promise.all(Array.from({ length: Math.max(...callerCounts) }, () => openClient({ url })));
    const rows: Row[] = [];
    for (const callers of callerCounts) {
      const appenders = Array.from({ length: callers }, () => appender(store));
      const inserters = clients.slice(0, callers).map(inserter);
      const [value = NaN, yardstickValue = NaN] = await interleaved(rounds, [
        () => rate(appenders, roundMs),
        () => rate(inserters, roundMs),
      ]);
      rows.push({
        name: `append, ${callers} callers`,
        unit: 'appends/s',
        value,
        yardstick: 'plain INSERT commits',
        yardstickValue,
        ratio: value / yardstickValue,
        ...(callers === 32 && { aim: 2.3 }),
      });
    }
    await Promise.all([store.close(), pool.end(), ...clients.map((client) => client.end())]);
    return rows;
  });

if (import.meta.main) for (const store of storeNames) console.table((await measure(store)).map((row) => ({ store, ...row })));
