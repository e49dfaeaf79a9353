/** Makes a database follow the history that an event store holds: what was derived from another is dropped, derived again, and compared. */
import { randomUUID } from 'node:crypto';
import type { Client } from 'pg';
import { createReads, productEvents } from '../../projections/index.ts';
import { eventStore } from '../aggregates.ts';
import { consumers } from '../consumers.ts';
import { everyEvent } from '../event-store/chain.ts';
import type { EventStore } from '../event-store/event-store.ts';
import { systemContext } from '../installation/bootstrap.ts';
import { Fault } from '../kernel/errors.ts';
import { prefixOf, type Database } from '../open-stores.ts';
import { openClient } from '../postgres/pool.ts';
import { adoptHistory } from '../postgres/store-identity-row.ts';
import { lockConsumers, resetConsumers, runConsumersTo } from '../runtime/consumer-reset.ts';
import type { Streams } from '../runtime/streams.ts';

export const say = (line: string): void => void process.stdout.write(`${line}\n`);

/** A connection that keeps every server from leading the consumers of these Installations. @throws Fault when one does */
export const holdConsumers = async ({ url }: Database, installationIds: readonly string[], stack: AsyncDisposableStack): Promise<Client> => {
  const client = await openClient({ url, applicationName: 'exuvia restore', statementTimeoutMs: 0 });
  stack.defer(() => client.end());
  for (const id of new Set(installationIds)) await lockConsumers(client, prefixOf(id), consumers);
  return client;
};

/** Every event of the history and no other, in its order; streams a consumer could not read wait, and are told. */
const compareHistory = async ({ pool }: Database, store: EventStore, prefix: string): Promise<number> => {
  const { rows: parked } = await pool.query<{ stream: string; revision: string; reason: string; names: readonly string[] }>(
    `select stream, min(revision) as revision, min(reason) as reason, array_agg(name order by name) as names from parked_stream group by stream order by stream`,
  );
  for (const { stream, revision, reason, names } of parked) say(`Parked: ${stream} from revision ${revision} for ${names.join(', ')}: ${reason}`);
  const waiting = new Map(parked.filter(({ names }) => names.includes('history')).map(({ stream, revision }) => [stream, Number(revision)]));

  const { history } = createReads(pool);
  const limit = 1_000;
  let page: readonly { readonly id: string }[] = [];
  let index = 0;
  const next = async (): Promise<string | undefined> => {
    if (index === page.length) {
      const from = page.at(-1)?.id ?? null;
      page = (await history.list({}, { from, limit })).rows.slice(from === null ? 0 : 1);
      index = 0;
    }
    return page[index++]?.id;
  };
  let events = 0;
  for await (const { id, stream, revision } of everyEvent(store, { streamPrefix: prefix })) {
    events += 1;
    if (revision >= (waiting.get(stream) ?? Infinity)) continue;
    const found = await next();
    if (found !== id) throw new Fault(`The rebuilt history has ${found ?? 'nothing'} where ${stream} at revision ${revision} belongs: run exuvia restore again`);
  }
  const more = await next();
  if (more !== undefined) throw new Fault(`The rebuilt history has ${more}, which the event store does not hold: run exuvia restore again`);
  return events;
};

/**
 * Resets all that was derived and derives it from the event store, up to its last event and compared with it.
 * `held` comes from {@link holdConsumers} and is let go before the consumers run.
 * @throws Fault when what was derived is not what the store holds; run again, it begins anew
 */
export const rebuildAll = async (database: Database, store: EventStore, streams: Streams, installationId: string, held: Client): Promise<void> => {
  const { state } = await streams.execute(eventStore, '', { type: 'OpenStore', storeId: randomUUID() }, systemContext(installationId));
  await held.query('begin');
  await resetConsumers(held);
  await adoptHistory(held, { installationId, storeId: state.storeId!, opened: state.opened });
  await held.query('commit');
  await held.query('select pg_advisory_unlock_all()');
  const prefix = prefixOf(installationId);
  const head = await store.head({ streamPrefix: prefix });
  let applied = 0;
  let told = 0;
  await runConsumersTo(head!, {
    url: database.url,
    store,
    consumers,
    prefix,
    codec: productEvents,
    onBatch: ({ events }) => {
      applied += events;
      if (applied - told < 50_000) return;
      told = applied;
      say(`${applied} events applied`);
    },
  });
  const events = await compareHistory(database, store, prefix);
  const { rows } = await database.pool.query<{ items: number }>('select count(*)::integer as items from work_item');
  say(`Rebuilt and compared: ${events} events in ${consumers.length - 1} read models, ${rows[0]!.items} work items`);
};
