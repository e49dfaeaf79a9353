/** Failure scenarios 5 and 20: an event store that is not the one the database has followed, and several Installations in one. */
import { join } from 'node:path';
import { afterAll, afterEach, describe, expect, it } from 'vitest';
import { configurations } from '../../src/aggregates.ts';
import { createProcessDriver } from '../../src/compute/process/process-driver.ts';
import { createPostgresEventStore } from '../../src/event-store/postgres.ts';
import { createStreams, type CommandContext } from '../../src/runtime/streams.ts';
import { newAgent, newRevision, pass } from '../compute/drive.ts';
import { childrenOf } from '../compute/process-world.ts';
import { defaultNamespace, stepsIn } from '../end-to-end/steps.ts';
import { eventsOf, expectUnbrokenChains, storedEvents } from '../end-to-end/stored-history.ts';
import type { TestApplication } from '../support/app.ts';
import { eventually } from '../support/client.ts';
import { copyDatabase, createDatabase, type TestDatabase } from '../support/database.ts';
import { startEventstoredb } from '../support/eventstoredb/server.ts';
import { isAlive, signInAsAdministrator } from '../support/sign-in.ts';
import { closeStarted, countEvents, environmentOf, exuvia, newFolder, readiness, removeFolders, startAt, type Place } from './support.ts';

afterEach(closeStarted);
afterAll(removeFolders);

const newPlace = async (events?: TestDatabase): Promise<Place & { readonly events: TestDatabase }> => {
  const [database, store, dataDir] = await Promise.all([createDatabase(), events ?? createDatabase(), newFolder()]);
  return { dataDir, database, events: store, eventstoreUrl: store.url };
};

/** Makes the history longer than what is compared at once. */
const replaceOften = async ({ database, events }: Awaited<ReturnType<typeof newPlace>>, configurationId: string, times: number): Promise<void> => {
  const { rows } = await database.pool.query<{ id: string }>('select id from installation');
  const store = createPostgresEventStore({ pool: events.pool, url: events.url });
  const streams = createStreams({ store, clock: { now: Date.now }, prefix: `${rows[0]!.id}.` });
  const context: CommandContext = { actor: { principalId: 'system', kind: 'system' }, requestId: null, correlationId: 'test', causationId: null, policyRevision: null };
  const replace = { type: 'ReplaceConfiguration', settings: { values: {} } } as const;
  await Promise.all(Array.from({ length: times }, () => streams.execute(configurations, configurationId, replace, context)));
  await store.close();
};

const ready = (app: TestApplication) => eventually('a server that is ready', () => readiness(app), ({ status }) => status === 200);

/** Every command and every question is 503, and the process itself is well. */
const expectOff = async (app: TestApplication, why: RegExp) => {
  const seen = await readiness(app);
  expect(seen).toEqual({ status: 503, degraded: [expect.stringMatching(why)] });
  expect(seen.degraded[0]).not.toMatch(/\. /);
  expect((await fetch(`${app.origin}/healthz`)).status).toBe(200);
  for (const [method, path, body] of [['POST', '/namespaces', { name: 'another' }], ['GET', '/namespaces', undefined]] as const) {
    const { status, error } = await app.client.rest(method, path, body);
    expect({ method, status, code: error?.code }).toEqual({ method, status: 503, code: 'DEPENDENCY_UNAVAILABLE' });
  }
};

describe('scenario 5: an event store that is older, or another', () => {
  it('scenario 5: an event store restored to an older state keeps everything off until exuvia restore', async () => {
    const place = await newPlace();
    const first = await startAt(place);
    const namespaceId = await defaultNamespace(first.client);
    const steps = stepsIn(first.client, namespaceId);
    const before = await steps.configure({ gateway: {} });
    const agent = await steps.createAgent('kept', before.id);
    const often = await steps.configure();
    await first.close();
    await replaceOften(place, often.id, 1_100);
    const backup = await copyDatabase(place.events);

    const second = await startAt(place);
    const later = stepsIn(second.client, namespaceId);
    const after = await later.configure();
    const forgotten = await later.createAgent('forgotten', after.id);
    const { cookie } = await signInAsAdministrator(second);
    expect(await isAlive(second.origin, cookie)).toBe(true);
    await second.close();
    const driver = () => createProcessDriver({ root: join(place.dataDir, 'compute'), log: { info: () => {}, warn: () => {}, error: () => {} } });
    const left = driver();
    await left.prepareRevision(newRevision(left, { ...newAgent(namespaceId), agentId: forgotten.id }, 1, {}), pass(1));
    await left.close({ stopWorkloads: false });
    const pids = async () => (await childrenOf(join(place.dataDir, 'compute'))).map(({ pid }) => pid);
    const running = await pids();
    expect(running).toHaveLength(1);

    try {
      const restored = { ...place, eventstoreUrl: backup.url };
      const stored = await countEvents(backup);
      const off = await startAt(restored);
      await expectOff(off, /^The event store does not hold event .* the store was restored to an older state, or is another one; .* exuvia restore$/);
      expect((await exuvia(['restore', '--yes'], environmentOf(restored))).err).toContain('is in use by another running Exuvia');
      await off.close();
      expect(await countEvents(backup)).toBe(stored);
      expect(await pids()).toEqual(running);

      const placesOf = async () => (await place.database.pool.query<object>('select name, position from consumer_checkpoint order by name')).rows;
      const places = await placesOf();
      const asked = await exuvia(['restore'], environmentOf(restored));
      expect(asked).toMatchObject({ code: 1, err: 'exuvia: Nothing was changed: add --yes to go on\n' });
      expect(asked.out).toContain('drop and rebuild 7 read models (agent_revision_v');
      expect(asked.out).toMatch(/- drop \d+ work items and derive them again\n- reset 8 checkpoints/);
      expect(asked.out).toContain(`Running here without a history, and left alone: ${forgotten.id}\n`);
      expect(await placesOf()).toEqual(places);

      const done = await exuvia(['restore', '--yes'], environmentOf(restored));
      expect(done).toMatchObject({ code: 0, err: '' });
      expect(done.out).toContain(`Rebuilt and compared: ${stored} events in 7 read models`);
      expect(await pids()).toEqual(running);
      await expectUnbrokenChains(backup.pool);

      const on = await startAt(restored);
      await ready(on);
      expect(await isAlive(on.origin, cookie)).toBe(false);
      expect((await on.client.rest('GET', `${steps.at}/configurations/${before.id}`)).data).toEqual(before);
      expect((await on.client.rest('GET', steps.agentPath(agent.id))).data).toMatchObject({ id: agent.id, name: 'kept' });
      expect((await on.client.rest('GET', `${steps.at}/configurations/${after.id}`)).status).toBe(404);
      expect((await on.client.rest('GET', steps.agentPath(forgotten.id))).status).toBe(404);
      // The name is nobody's: the Agent that held it is not in this history.
      await stepsIn(on.client, namespaceId).createAgent('forgotten', before.id);
      await on.close();
    } finally {
      await closeStarted();
      await driver().close({ stopWorkloads: true });
    }
  });

  it('scenario 5: an empty event store beside a full database gets no second Installation', async () => {
    const place = await newPlace();
    const server = await startAt(place);
    await server.close();
    const empty = await createDatabase();
    const moved = { ...place, eventstoreUrl: empty.url };
    const off = await startAt(moved);
    await expectOff(off, /^The event store holds no history of Installation ins_.*: nothing works on it before exuvia restore$/);
    await off.close();
    expect(await countEvents(empty)).toBe(0);

    const back = await startAt(place);
    await ready(back);
    await back.close();

    const done = await exuvia(['restore', '--yes'], environmentOf(moved));
    expect(done).toMatchObject({ code: 0, err: '' });
    expect(done.out).toContain('Nothing is left of its history: the next start begins a new one.');
    const on = await startAt(moved);
    await ready(on);
    await defaultNamespace(on.client);
    expect((await storedEvents(empty.pool))[0]?.type).toBe('StoreOpened');
  });

  it('scenario 5: EventStoreDB that loses the end of its log under a running server is noticed', async () => {
    const eventstoredb = await startEventstoredb();
    const place = { dataDir: await newFolder(), database: await createDatabase(), eventstoreUrl: eventstoredb.url };
    try {
      const app = await startAt(place);
      const steps = stepsIn(app.client, await defaultNamespace(app.client));
      await ready(app);
      const kept = eventstoredb.log.all.length;
      await steps.configure();
      await ready(app);
      eventstoredb.rewind(kept);
      await eventstoredb.start();
      await eventually('a server that is off', () => readiness(app), ({ status, degraded }) => status === 503 && degraded.some((why) => why.includes('exuvia restore')));
      await expectOff(app, /does not hold event/);
      expect(eventstoredb.log.all).toHaveLength(kept);
      await app.close();

      expect(await exuvia(['restore', '--yes'], environmentOf(place))).toMatchObject({ code: 0, err: '' });
      const on = await startAt(place);
      await ready(on);
      expect((await on.client.rest<unknown[]>('GET', '/namespaces')).data).toHaveLength(1);
    } finally {
      await closeStarted();
      await eventstoredb.close();
    }
  });
});

describe('scenario 20: two Installations in one event store', () => {
  it('scenario 20: each sees its own streams, and neither parks what is foreign', async () => {
    const one = await newPlace();
    const other = await newPlace(one.events);
    // What anybody else may have put there, the Installation's own name among it.
    const foreign = (stream: string, data: string) =>
      one.events.pool.query("select append_events(array[$1], array[-1], array[1], array[1], array[0], array[gen_random_uuid()], array['Foreign'], array[$2], array['{}'])", [stream, data]);
    await foreign('somebody-else', 'not even JSON');
    const servers = await Promise.all([startAt(one), startAt(other)]);
    const ids = await Promise.all([one, other].map(async ({ database }) => (await database.pool.query<{ id: string }>('select id from installation')).rows[0]!.id));
    await foreign(`${ids[0]!}-not-ours.iam`, '{}');
    for (const [index, server] of servers.entries()) {
      const steps = stepsIn(server.client, await defaultNamespace(server.client));
      await steps.createAgent('same-name', (await steps.configure()).id);
      expect(await ready(server)).toMatchObject({ degraded: [] });
      const { data } = await server.client.graphql<{ eventHistory: { edges: { node: { eventId: string } }[] } }>('{ eventHistory(first: 100) { edges { node { eventId } } } }');
      const own = (await storedEvents(one.events.pool)).filter(({ stream }) => stream.startsWith(`${ids[index]!}.`));
      expect(data.eventHistory.edges.map(({ node }) => node.eventId)).toEqual(own.map(({ id }) => id));
    }
    // An administrator here is a stranger there.
    const stranger = await fetch(`${servers[1].origin}/namespaces`, { headers: { 'x-api-key': servers[0].key } });
    expect(stranger.status).toBe(401);
    for (const id of ids) expect((await eventsOf(one.events.pool, 'store')).filter(({ stream }) => stream.startsWith(`${id}.`)).map(({ type }) => type)).toEqual(['StoreOpened', 'DatabaseOpened']);
    await closeStarted();

    // A lost database: the operator names the Installation, and a new key is issued for those whose rows are gone.
    const [installationId] = (await one.database.pool.query<{ id: string }>('select id from installation')).rows.map(({ id }) => id);
    const lost = { ...one, database: await createDatabase(), dataDir: await newFolder() };
    expect((await exuvia(['restore', '--yes'], environmentOf(lost))).err).toContain('several Installations: name one with --installation: ins_');
    const done = await exuvia(['restore', '--yes', '--installation', installationId!], environmentOf(lost));
    expect(done).toMatchObject({ code: 0, err: '' });
    expect(done.out).toContain('issue a new service key');
    const app = await startAt(lost);
    expect((await ready(app)).degraded).toEqual([]);
    const steps = stepsIn(app.client, await defaultNamespace(app.client));
    const { data } = await app.client.rest<{ name: string }[]>('GET', `${steps.at}/agents`);
    expect(data.map(({ name }) => name)).toEqual(['same-name']);
  });
});
