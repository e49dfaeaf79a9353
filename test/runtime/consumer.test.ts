/** The runner of event consumers under the faults it has to survive, on a real PostgreSQL. */
import { beforeEach, describe, expect, it } from 'vitest';
import Type from 'typebox';
import type { EventStore, Position } from '../../src/event-store/event-store.ts';
import { createCodec, defineEvent } from '../../src/kernel/codec.ts';
import { readConsumerHealth } from '../../src/runtime/consumer-health.ts';
import { HistoryMismatch } from '../../src/runtime/consumer-checkpoint.ts';
import type { Consumer } from '../../src/runtime/consumer.ts';
import { sagaProcessor } from '../../src/runtime/saga-processor.ts';
import { createReads, productEvents } from '../../projections/index.ts';
import { work } from '../../src/sagas/index.ts';
import { productConsumers, startConsumers, until, untilPassed } from '../support/consumers.ts';
import { createDatabase, type TestDatabase } from '../support/database.ts';
import { createInMemoryEventStore } from '../support/in-memory-event-store.ts';
import { prefix, writeHistory } from '../support/write-history.ts';

let database: TestDatabase;
let store: EventStore;

beforeEach(async () => {
  database = await createDatabase();
  store = createInMemoryEventStore();
});

const noted = defineEvent('Noted', { skeleton: Type.Object({ number: Type.Integer(), text: Type.Optional(Type.String()) }), view: [] });
const notedNext = defineEvent('Noted', { skeleton: Type.Object({ number: Type.Integer() }), schema: 2, older: { 1: { shape: noted.skeleton, lift: (old) => old } }, view: [] });

/** Counts, per stream, the events applied and remembers the last one: a second application would show. */
const counting = (version = 1): Consumer => {
  const table = `applied_v${version}`;
  return {
    name: 'counting',
    version,
    role: 'read-model',
    streams: undefined,
    handles: () => true,
    prepare: async (client) => {
      await client.query(`create table if not exists ${table} (number serial, stream text, revision integer, payload integer)`);
    },
    begin: () => {
      const rows: { stream: string; revision: number; payload: number }[] = [];
      return {
        add: ({ stream, envelope: { revision }, data }) => {
          const { number, text } = data as { number: number; text?: string };
          if (text === 'refused by the handler') throw new Error('The handler refuses this');
          rows.push({ stream, revision, payload: text === 'refused by the database' ? 2 ** 40 : number });
        },
        write: async (client) => {
          for (const { stream, revision, payload } of rows) await client.query(`insert into ${table} (stream, revision, payload) values ($1, $2, $3)`, [stream, revision, payload]);
        },
      };
    },
  };
};

const codec = createCodec(noted);
const applied = async (version = 1): Promise<readonly string[]> =>
  (await database.pool.query<{ event: string }>(`select stream || '@' || revision as event from applied_v${version} order by number`)).rows.map(({ event }) => event);
const note = (history: ReturnType<typeof writeHistory>, stream: string, number: number, text?: string, schema = 1) =>
  history.appendRaw(stream, 'Noted', text === undefined ? { number } : { number, text }, { schema });
const parked = async () => (await database.pool.query<object>('select name, stream, revision::integer from parked_stream order by name')).rows;

/** Loses its session in the middle of every third transaction, with rows written and neither checkpoint nor commit. */
const interrupted = (consumer: Consumer): Consumer => {
  let writes = 0;
  return {
    ...consumer,
    begin: () => {
      const batch = consumer.begin();
      return {
        ...batch,
        write: async (client) => {
          await batch.write(client);
          writes += 1;
          if (writes % 3 === 0) await client.query('select pg_terminate_backend(pg_backend_pid())');
        },
      };
    },
  };
};

describe('checkpoints', () => {
  it('scenario 6: checkpoints never run ahead of what was applied', async () => {
    const history = writeHistory(store);
    const positions: Position[] = [];
    for (let number = 0; number < 60; number += 1) positions.push(await note(history, `note-${number % 3}`, number));
    let ahead = 0;
    // Every batch looks at what the checkpoint says of the rows committed so far.
    const consumers = startConsumers(database, store, {
      consumers: [interrupted(counting())],
      codec,
      batchLimit: 5,
      onBatch: ({ checkpoints: [first] }) => {
        void database.pool.query<{ applied: number }>('select count(*)::integer as applied from applied_v1').then(({ rows }) => {
          if (rows[0]!.applied < positions.indexOf(first!.checkpoint!.position) + 1) ahead += 1;
        });
      },
    });
    await untilPassed(database, positions.at(-1)!, ['counting']);
    await consumers.stop();
    expect(ahead).toBe(0);
    expect(consumers.faults.length).toBeGreaterThan(0);
    expect(await applied()).toEqual(positions.map((_, number) => `note-${number % 3}@${Math.floor(number / 3)}`));
  });

  it('scenario 5: a store that does not hold the event at the checkpoint keeps everything off', async () => {
    const history = writeHistory(store);
    const position = await note(history, 'note-1', 1);
    const first = startConsumers(database, store, { consumers: [counting()], codec });
    await untilPassed(database, position, ['counting']);
    await first.stop();
    const other = createInMemoryEventStore();
    const otherHistory = writeHistory(other);
    await note(otherHistory, 'note-1', 1);
    await note(otherHistory, 'note-1', 2);
    const second = startConsumers(database, other, { consumers: [counting()], codec });
    await second.done;
    expect(second.faults).toEqual([expect.any(HistoryMismatch)]);
    expect(second.state.historyMismatch).toContain('was restored to an older state, or is another one');
    expect(await applied()).toEqual(['note-1@0']);
  });
});

describe('leadership', () => {
  it('scenario 16: a frozen leader loses its lock and cannot apply twice', async () => {
    const history = writeHistory(store);
    const { promise: thawed, resolve: thaw } = Promise.withResolvers<void>();
    const { promise: frozen, resolve: freeze } = Promise.withResolvers<void>();
    const slow = counting();
    // Stops between collecting its rows and writing them, as a suspended process would.
    const frozenConsumer: Consumer = {
      ...slow,
      begin: () => {
        const batch = slow.begin();
        return {
          add: (delivered) => batch.add(delivered),
          write: async (client) => {
            freeze();
            await thawed;
            await batch.write(client);
          },
        };
      },
    };
    const first = startConsumers(database, store, { consumers: [frozenConsumer], codec });
    await until('the first runner leads', () => first.state.leading.length === 1);
    const second = startConsumers(database, store, { consumers: [counting()], codec });
    const position = await note(history, 'note-1', 1);
    await frozen;
    expect(second.state.leading).toEqual([]);
    // The server ends the silent transaction by itself; nothing here cuts the connection.
    await untilPassed(database, position, ['counting']);
    expect(second.state.leading).toEqual(['counting']);
    thaw();
    await until('the first runner notices', () => first.faults.length > 0);
    const last = await note(history, 'note-1', 2);
    await untilPassed(database, last, ['counting']);
    expect(await applied()).toEqual(['note-1@0', 'note-1@1']);
    await Promise.all([first.stop(), second.stop()]);
  });

  it('scenario 16: a checkpoint moved by somebody else ends the leadership before anything is applied', async () => {
    const history = writeHistory(store);
    const consumers = startConsumers(database, store, { consumers: [counting()], codec });
    const first = await note(history, 'note-1', 1);
    await untilPassed(database, first, ['counting']);
    await database.pool.query('update consumer_checkpoint set position = null, event_id = null; delete from applied_v1');
    const second = await note(history, 'note-1', 2);
    await untilPassed(database, second, ['counting']);
    await consumers.stop();
    expect(consumers.faults).toEqual([expect.objectContaining({ name: 'LeadershipLost' })]);
    expect(await applied()).toEqual(['note-1@0', 'note-1@1']);
  });

  it('scenario 9: a take-over that lasts longer than the server bears a silent session keeps the leadership', async () => {
    const position = await note(writeHistory(store), 'note-1', 1);
    let takeOvers = 0;
    const consumers = startConsumers(database, store, {
      consumers: [counting()],
      codec,
      onTakeOver: () => {
        takeOvers += 1;
        return until('a session that is gone, or older than the limit', async () => {
          const { rows } = await database.pool.query<{ old: boolean }>(
            `select clock_timestamp() - backend_start > interval '7 seconds' as old from pg_stat_activity where datname = current_database() and application_name = 'exuvia consumers'`,
          );
          return rows.every(({ old }) => old);
        });
      },
    });
    await untilPassed(database, position, ['counting']);
    await consumers.stop();
    expect([takeOvers, consumers.faults]).toEqual([1, []]);
  });

  it('is not taken by a process that is asked to stop while it takes over', async () => {
    await note(writeHistory(store), 'note-1', 1);
    const { promise: begun, resolve: begin } = Promise.withResolvers<void>();
    const consumers = startConsumers(database, store, {
      consumers: [counting()],
      codec,
      onTakeOver: () => {
        begin();
        return new Promise(() => {});
      },
    });
    await begun;
    await consumers.stop();
    expect([consumers.state.leading, consumers.faults]).toEqual([[], []]);
    expect((await database.pool.query('select from consumer_checkpoint')).rowCount).toBe(0);
  });

  /** A consumer whose completion lasts until it is let. */
  const startCompleting = async () => {
    const holder = await database.pool.connect();
    await holder.query('select pg_advisory_lock(1)');
    const consumers = startConsumers(database, store, { consumers: [{ ...counting(), completion: ['select pg_advisory_xact_lock(1)'] }], codec });
    await until('a completion under way', async () => (await holder.query(`select from pg_locks where locktype = 'advisory' and objid = 1 and not granted`)).rowCount === 1);
    const release = async () => {
      await holder.query('select pg_advisory_unlock(1)');
      holder.release();
    };
    return { consumers, release };
  };

  it('keeps turning while the server is at work on what filling did without', async () => {
    const position = await note(writeHistory(store), 'note-1', 1);
    const { consumers, release } = await startCompleting();
    const { turnedAt } = consumers.state;
    await until('a loop that turns', () => consumers.state.turnedAt > turnedAt);
    expect((await readConsumerHealth(database.pool, [counting()])).hasCaughtUp).toBe(false);
    await release();
    await untilPassed(database, position, ['counting']);
    await consumers.stop();
  });

  it('is given up at once while the server is at work on what filling did without', async () => {
    await note(writeHistory(store), 'note-1', 1);
    const { consumers, release } = await startCompleting();
    await consumers.stop();
    expect(consumers.faults).toEqual([]);
    await release();
  });

  it('scenario 17: two versions are led side by side, and the one left behind is taken over', async () => {
    const history = writeHistory(store);
    const old = startConsumers(database, store, { consumers: [counting(1)], codec });
    await until('the old build leads its version', () => old.state.leading.length === 1);
    const next = startConsumers(database, store, { consumers: [counting(1), counting(2)], codec });
    await until('the new build leads its own', () => next.state.leading.length === 1);
    const first = await note(history, 'note-1', 1);
    const bothAt = (position: Position) =>
      until(`both versions at ${position}`, async () => {
        const { rows } = await database.pool.query<{ passed: number }>('select count(*)::integer as passed from consumer_checkpoint where position >= $1', [position]);
        return rows[0]?.passed === 2;
      });
    await bothAt(first);
    await old.stop();
    await until('the new build leads both', () => next.state.leading.length === 2);
    await bothAt(await note(history, 'note-1', 2));
    await next.stop();
    expect([await applied(1), await applied(2)]).toEqual([['note-1@0', 'note-1@1'], ['note-1@0', 'note-1@1']]);
  });
});

describe('parking', () => {
  it('parks a stream whose event the handler or the database refuses, and goes on with the others', async () => {
    const history = writeHistory(store);
    await note(history, 'note-1', 1);
    await note(history, 'note-2', 1, 'refused by the handler');
    await note(history, 'note-3', 1, 'refused by the database');
    await note(history, 'note-2', 2);
    await note(history, 'note-3', 2);
    const position = await note(history, 'note-1', 2);
    const consumers = startConsumers(database, store, { consumers: [counting()], codec });
    await untilPassed(database, position, ['counting']);
    expect(await applied()).toEqual(['note-1@0', 'note-1@1']);
    expect(await parked()).toEqual([
      { name: 'counting', stream: `${prefix}note-2`, revision: 0 },
      { name: 'counting', stream: `${prefix}note-3`, revision: 0 },
    ]);
    await consumers.stop();
  });

  it('scenario 7: a stream the saga cannot read is parked in order and driven again by a build that can', async () => {
    const history = writeHistory(store);
    await note(history, 'note-1', 1);
    await note(history, 'note-1', 2, undefined, 2);
    await note(history, 'note-2', 1);
    const position = await note(history, 'note-1', 3);
    const old = startConsumers(database, store, { consumers: [counting()], codec });
    await untilPassed(database, position, ['counting']);
    expect(await applied()).toEqual(['note-1@0', 'note-2@0']);
    await old.retryParked();
    expect(await parked()).toEqual([{ name: 'counting', stream: `${prefix}note-1`, revision: 1 }]);
    await old.stop();
    const next = startConsumers(database, store, { consumers: [counting()], codec: createCodec(notedNext) });
    await until('the parked stream is applied', async () => (await parked()).length === 0);
    const last = await note(history, 'note-1', 4);
    await untilPassed(database, last, ['counting']);
    await next.stop();
    expect(await applied()).toEqual(['note-1@0', 'note-2@0', 'note-1@1', 'note-1@2', 'note-1@3']);
  });

  it('scenario 7: an admission the saga could not read becomes work once it can', async () => {
    const history = writeHistory(store);
    const agent = { agentId: 'agt_1', namespaceId: 'ns_1' };
    const admission = { ...agent, revisionId: 'rev_1', number: 1, digest: 'd', configurationId: 'cfg_1', configurationGeneration: 1, compute: { id: 'c', implementation: 'process' }, exclusive: false };
    const position = await history.appendRaw('agent-agt_1', 'AgentRevisionAdmitted', admission, { schema: 3 });
    const sagas = sagaProcessor(work);
    const old = startConsumers(database, store, { consumers: [sagas] });
    await untilPassed(database, position, [sagas.name]);
    await old.stop();
    expect((await database.pool.query('select 1 from work_item')).rowCount).toBe(0);
    const reading: typeof productEvents = {
      ...productEvents,
      decode: (stored) => productEvents.decode({ ...stored, metadata: stored.metadata.replace('"schema":3', '"schema":1') }),
    };
    const next = startConsumers(database, store, { consumers: [sagas], codec: reading });
    await until('the work exists', async () => (await database.pool.query('select 1 from work_item')).rowCount === 1);
    await next.stop();
    expect(await parked()).toEqual([]);
  });

  it('scenario 35: one bad event does not make replicas unready', async () => {
    const history = writeHistory(store);
    await history.append('namespace-ns_1', { type: 'NamespaceCreated', data: { namespaceId: 'ns_1', name: 'a' } });
    const position = await history.appendRaw('namespace-ns_2', 'NamespaceTransmuted', { namespaceId: 'ns_2' });
    const consumers = startConsumers(database, store);
    await untilPassed(database, position);
    await until('every consumer has stood at the end', async () => (await readConsumerHealth(database.pool, productConsumers)).hasCaughtUp);
    const health = await readConsumerHealth(database.pool, productConsumers);
    expect(health.hasCaughtUp).toBe(true);
    expect(health.degraded).toContain(`namespace has parked 1 stream, first ${prefix}namespace-ns_2: Unknown event type NamespaceTransmuted`);
    expect(health.degraded.filter((sentence) => sentence.startsWith('agent '))).toEqual([]);
    const reads = createReads(database.pool);
    expect(await reads.namespaces.byIds(['ns_1'])).toMatchObject({ rows: [{ name: 'a' }], fresh: false });
    expect(await reads.agents.byIds(['agt_1'])).toEqual({ rows: [], fresh: true });
    expect(consumers.state.historyMismatch).toBeUndefined();
    await consumers.stop();
  });
});

it('says that readers are behind while no projector runs', async () => {
  const reads = createReads(database.pool);
  expect(await reads.agents.byIds(['agt_1'])).toEqual({ rows: [], fresh: false });
  const consumers = startConsumers(database, store);
  await until('the read models are fresh', async () => (await reads.agents.byIds([])).fresh);
  await consumers.stop();
  await until('they no longer are', async () => !(await reads.agents.byIds([])).fresh);
});
