/** Failure scenarios 28 and 30: a history moves to another store as it is, or not at all. */
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { eventStore, iam, register } from '../../src/aggregates.ts';
import { copyEvents } from '../../src/event-store/copy.ts';
import { StoreUnavailable, type EventStore, type StoredEvent } from '../../src/event-store/event-store.ts';
import { createEventstoredbEventStore } from '../../src/event-store/eventstoredb.ts';
import { createPostgresEventStore } from '../../src/event-store/postgres.ts';
import { systemContext } from '../../src/installation/bootstrap.ts';
import { createStreams } from '../../src/runtime/streams.ts';
import { defaultNamespace, stepsIn } from '../end-to-end/steps.ts';
import { storedEvents } from '../end-to-end/stored-history.ts';
import { eventually } from '../support/client.ts';
import { startTestApplication } from '../support/app.ts';
import { createDatabase } from '../support/database.ts';
import { startEventstoredb, type Eventstoredb } from '../support/eventstoredb/server.ts';
import { createInMemoryEventStore, createLog } from '../support/in-memory-event-store.ts';
import { closeStarted, exuvia, newFolder, readiness, removeFolders, startAt } from './support.ts';

afterEach(closeStarted);
afterAll(removeFolders);

const prefix = 'ins_1.';
const context = systemContext('test');
const between = (from: EventStore, to: EventStore) => ({ from, to, prefix, exclusivePrefix: 'ins_' });

/** A history of three streams that take turns, some with several events of one append after the other. */
const writeHistory = async (store: EventStore, of = prefix): Promise<void> => {
  const streams = createStreams({ store, clock: { now: () => 1_800_000_000_000 }, prefix: of });
  await streams.execute(eventStore, '', { type: 'OpenStore', storeId: 'the-store' }, context);
  for (let number = 0; number < 12; number++) {
    await streams.execute(register, '', { type: 'TakeNamespaceName', namespaceId: `ns_${number}`, name: `näme-${number}` }, context);
    if (number % 3 === 0) await streams.execute(iam, '', { type: 'CreatePrincipal', principalId: `prn_${number}`, issuer: 'local', subject: `"\\${number}` }, context);
  }
};

const historyOf = async (store: EventStore): Promise<readonly StoredEvent[]> => (await store.readAll(null, { streamPrefix: 'ins_' }, 1_000)).events;
const withoutPosition = (events: readonly StoredEvent[]) => events.map(({ position: _, ...event }) => event);

let source: EventStore;
let history: readonly StoredEvent[];
let eventstoredb: Eventstoredb;
beforeAll(async () => {
  source = createInMemoryEventStore();
  await writeHistory(source);
  await source.append('somebody-else', -1, [{ id: '00000000-0000-4000-8000-000000000000', type: 'Foreign', data: 'x', metadata: 'x' }]);
  history = await historyOf(source);
  eventstoredb = await startEventstoredb();
});
afterAll(() => eventstoredb.close());

describe('scenario 28: copying between stores', () => {
  it('scenario 28: ids, order, bytes and hashes stay from store to store; positions and foreign events do not come along', async () => {
    const postgres = createPostgresEventStore(await createDatabase());
    const other = createEventstoredbEventStore({ url: eventstoredb.url });
    try {
      for (const [from, to] of [[source, postgres], [postgres, other]] as const) {
        expect(await copyEvents(between(from, to))).toEqual({ present: 0, copied: history.length });
        expect(await copyEvents(between(from, to))).toEqual({ present: history.length, copied: 0 });
        const copied = await historyOf(to);
        expect(withoutPosition(copied)).toEqual(withoutPosition(history));
        expect(copied.map(({ position }) => position)).not.toEqual(history.map(({ position }) => position));
      }
    } finally {
      await Promise.all([postgres.close(), other.close()]);
    }
  });

  it('scenario 28: an interrupted copy goes on where it stopped, whether its last append was stored or not', async () => {
    for (const isStored of [false, true])
      for (let appends = 1; ; appends++) {
        const target = createInMemoryEventStore();
        let left = appends;
        const failing: EventStore = {
          ...target,
          append: async (...args) => {
            if (--left > 0) return target.append(...args);
            if (isStored) await target.append(...args);
            throw new StoreUnavailable('cut off');
          },
        };
        const first = await copyEvents(between(source, failing)).catch((error: unknown) => error);
        if (!(first instanceof Error)) break;
        const present = (await historyOf(target)).length;
        expect(await copyEvents(between(source, target))).toEqual({ present, copied: history.length - present });
        expect(withoutPosition(await historyOf(target))).toEqual(withoutPosition(history));
      }
  });

  it('scenario 28: a target that holds anything else is refused and stays as it is', async () => {
    const refuse = async (prepare: (target: EventStore) => Promise<unknown>) => {
      const target = createInMemoryEventStore();
      await prepare(target);
      const before = await historyOf(target);
      await expect(copyEvents(between(source, target))).rejects.toThrow('The target holds other events');
      expect(await historyOf(target)).toEqual(before);
    };
    const [first, second] = history as readonly [StoredEvent, StoredEvent];
    await refuse((target) => writeHistory(target, 'ins_2.'));
    await refuse((target) => writeHistory(target));
    await refuse((target) => target.append(first.stream, -1, [{ ...first, data: first.data.replace('the', 'a') }]));
    await refuse((target) => target.append(second.stream, -1, [second]));
    await refuse(async (target) => {
      await copyEvents(between(source, target));
      await target.append(first.stream, 0, [{ ...first, id: '00000000-0000-4000-8000-000000000001' }]);
    });
  });

  it('scenario 28: an Installation moves to EventStoreDB and answers as before', async () => {
    const server = await startEventstoredb();
    const place = { dataDir: await newFolder(), database: await createDatabase(), eventstoreUrl: server.url };
    const { eventstoreUrl: _, ...home } = place;
    try {
      const before = await startTestApplication(home);
      const steps = stepsIn(before.client, await defaultNamespace(before.client));
      const agent = await steps.createAgent('moving', (await steps.configure({ gateway: {} })).id);
      await steps.deploy(agent.id);
      const questions = ['/installation', '/namespaces', `${steps.at}/configurations`, `${steps.at}/agents`];
      const answersOf = async ({ client }: Pick<typeof before, 'client'>) => Promise.all(questions.map(async (path) => (await client.rest('GET', path)).data));
      const idsOf = async ({ client }: Pick<typeof before, 'client'>) => {
        const { data } = await client.graphql<{ eventHistory: { edges: { node: { eventId: string } }[] } }>('{ eventHistory(first: 100) { edges { node { eventId } } } }');
        return data.eventHistory.edges.map(({ node }) => node.eventId);
      };
      await steps.remove(agent.id);
      await steps.gone(agent.id);
      await steps.createAgent('staying', (await steps.configure()).id);
      const answers = await answersOf(before);
      await before.close();

      const copied = await exuvia(['events', 'copy', '--to', server.url, '--database', place.database.url], { EXUVIA_DATA_DIR: place.dataDir, OCC_DATABASE_URL: place.database.url });
      expect(copied).toMatchObject({ code: 0, err: '' });
      expect(copied.out).toMatch(/^Installation ins_.*: \d+ events copied, 0 were there; ids, order, bytes and hashes are the same\.\nRebuilt and compared: \d+ events/);

      const after = await startAt(place);
      await eventually('a server that is ready', () => readiness(after), ({ status }) => status === 200);
      expect(await answersOf(after)).toEqual(answers);
      const ids = (await storedEvents(place.database.pool)).map(({ id }) => id);
      expect((await idsOf(after)).slice(0, ids.length)).toEqual(ids);
      await after.close();

      // The old store no longer is the one this database follows.
      const stale = await startTestApplication(home);
      expect(await readiness(stale)).toEqual({ status: 503, degraded: [expect.stringContaining('is another one')] });
      await stale.close();
    } finally {
      await closeStarted();
      await server.close();
    }
  });
});

describe('scenario 30: a history that is not whole', () => {
  const broken = async (change: (events: StoredEvent[]) => StoredEvent[]): Promise<EventStore> => {
    const log = createLog();
    log.events.push(...change([...history]).map((event, index) => ({ ...event, position: String(index + 1).padStart(8, '0') as StoredEvent['position'] })));
    return createInMemoryEventStore(log);
  };

  it('scenario 30: a missing, a truncated and a changed event stop the copy, and are named', async () => {
    const at = history.findIndex(({ stream, revision }) => stream === `${prefix}register` && revision === 4);
    const hole = await broken((events) => events.toSpliced(at, 1));
    await expect(copyEvents(between(hole, createInMemoryEventStore()))).rejects.toThrow('The history is not whole: stream ins_1.register has no event at revision 4');
    const truncated = await broken((events) => events.filter(({ stream, revision }) => stream !== `${prefix}iam` || revision > 1));
    await expect(copyEvents(between(truncated, createInMemoryEventStore()))).rejects.toThrow('The history is not whole: stream ins_1.iam has no event at revision 0');
    const changed = await broken((events) => events.with(at, { ...events[at]!, data: events[at]!.data.replace('ns_4', 'ns_5') }));
    await expect(copyEvents(between(changed, createInMemoryEventStore()))).rejects.toThrow('The history was changed: the event of stream ins_1.register at revision 5 does not carry the hash');
  });
});
