/** A history with every event type: live read models, rebuilt ones, and what they answer. */
import { readdir } from 'node:fs/promises';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { createReads, productEvents, projections } from '../../projections/index.ts';
import type { Codec } from '../../src/kernel/codec.ts';
import { rebuild } from '../../src/runtime/consumer-rebuild.ts';
import { openClient } from '../../src/postgres/pool.ts';
import { lockNumber } from '../../src/runtime/consumer-checkpoint.ts';
import { tableOf } from '../../src/runtime/projection.ts';
import type { VisibilityBelow } from '../../src/runtime/reading.ts';
import { productConsumers, startConsumers, until, untilPassed, type TestConsumers } from '../support/consumers.ts';
import { createDatabase, type TestDatabase } from '../support/database.ts';
import { everyEventTypes, writeEveryEvent } from '../support/every-event.ts';
import { createInMemoryEventStore } from '../support/in-memory-event-store.ts';
import { prefix, writeHistory } from '../support/write-history.ts';

const store = createInMemoryEventStore();
let database: TestDatabase;
let consumers: TestConsumers;

beforeAll(async () => {
  database = await createDatabase();
  await writeEveryEvent(writeHistory(store));
  // Small batches, so that merging and the order between batches are both at work.
  consumers = startConsumers(database, store, { batchLimit: 7 });
  await untilPassed(database, (await store.head({ streamPrefix: prefix }))!);
});
afterAll(() => consumers.stop());

const rowsOf = async (table: string): Promise<readonly unknown[]> => (await database.pool.query<object>(`select * from ${table} as row order by row::text`)).rows;

it('holds every event type of every slice', async () => {
  const slices = await readdir(new URL('../../src', import.meta.url), { recursive: true });
  for (const file of slices.filter((name) => name.endsWith('messages.ts'))) {
    const module = (await import(new URL(`../../src/${file}`, import.meta.url).href)) as Record<string, Codec | undefined>;
    for (const codec of Object.values(module)) for (const type of codec?.definitions?.keys() ?? []) expect([...productEvents.definitions.keys()]).toContain(type);
  }
  expect([...productEvents.definitions.keys()].filter((type) => !everyEventTypes.has(type))).toEqual([]);
});

it('gives the same rows when a read model is rebuilt beside the live one', async () => {
  for (const projection of projections) {
    const live = await rowsOf(tableOf(projection));
    expect(live.length, projection.name).toBeGreaterThan(0);
    await rebuild({ url: database.url, store, prefix, codec: productEvents, consumer: productConsumers.find(({ name }) => name === projection.name)!, batchLimit: 50 });
    expect(await rowsOf(tableOf(projection)), projection.name).toEqual(live);
  }
  const position = await writeHistory(store).append('register-again', { type: 'NamespaceNameTaken', data: { namespaceId: 'ns_7', name: 'later' } });
  await untilPassed(database, position);
  expect((await rowsOf('history_v3')).length).toBe((await store.readAll(null, { streamPrefix: prefix }, 1_000)).events.length);
  const { rows } = await database.pool.query(`select 1 from pg_class where relname like '%rebuild%'`);
  expect(rows).toEqual([]);
});

it('takes the lock even where another session stands in line behind the leader', async () => {
  const consumer = productConsumers.find(({ shadow }) => shadow !== undefined)!;
  const number = lockNumber(prefix, consumer);
  const successor = await openClient({ url: database.url, applicationName: 'successor' });
  const ended = new Promise((resolve) => void successor.on('error', resolve));
  const leading = successor.query('select pg_advisory_lock($1::bigint)', [number]).catch(() => {});
  await until('the successor stands in line', async () => {
    const { rows } = await database.pool.query("select 1 from pg_locks join pg_stat_activity using (pid) where application_name = 'successor' and not granted");
    return rows.length === 1;
  });
  await rebuild({ url: database.url, store, prefix, codec: productEvents, consumer });
  await leading;
  await ended;
  await untilPassed(database, (await store.head({ streamPrefix: prefix }))!);
});

it('answers from the rows', async () => {
  const reads = createReads(database.pool);
  const all = { only: undefined, except: [] };
  const of = (...ids: readonly string[]): VisibilityBelow => ({ parents: ids.map((id) => ({ id, whole: true })), only: [], except: [] });
  const inAll = of('ns_1');
  const inPart = { ...inAll, parents: [{ id: 'ns_1', whole: false }] };
  expect((await reads.installation.find()).rows).toMatchObject([{ id: 'ins_1', name: 'Main', defaultNamespaceId: 'ns_1' }]);
  expect((await reads.namespaces.list(all)).rows.map(({ id, status }) => [id, status])).toEqual([['ns_1', 'ready'], ['ns_2', 'deleting']]);
  expect((await reads.configurations.byIds(['cfg_1', 'cfg_2', 'cfg_3'])).rows).toMatchObject([{ id: 'cfg_1', generation: 2, settings: { values: { z: 2 } } }]);
  const agents = await reads.agents.listBelow(inAll);
  expect(agents.rows).toMatchObject([
    {
      id: 'agt_1',
      executionMode: 'dedicated',
      backendId: 'bck_1',
      desiredRuntimeState: 'running',
      activeRevisionId: 'rev_1',
      status: 'active',
      draftRevision: 8,
      settings: {
        harnessAuth: { method: 'runtime' },
        credentialSources: [{ sourceId: 'cs_1' }],
        plugins: { github: { enabled: true } },
        pluginApprovers: [{ channel: 'slack', id: 'U1' }],
      },
    },
    { id: 'agt_2', status: 'deleting', desiredRuntimeState: 'stopped', activeRevisionId: null },
  ]);
  expect((await reads.agents.listBelow({ ...inAll, except: ['ns_1/agt_1'] })).rows.map(({ id }) => id)).toEqual(['agt_2']);
  expect((await reads.agents.listBelow({ ...inPart, only: ['ns_1/agt_1', 'ns_2/agt_2'] })).rows.map(({ id }) => id)).toEqual(['agt_1']);
  expect((await reads.agents.listBelow(inPart)).rows).toEqual([]);
  expect((await reads.agents.listBelow(inAll, { from: 'agt_1', limit: 5 })).rows.map(({ id }) => id)).toEqual(['agt_1', 'agt_2']);
  expect((await reads.agents.listBelow(inAll, { from: null, limit: 1 })).rows.map(({ id }) => id)).toEqual(['agt_1']);
  expect((await reads.revisions.byIds(['rev_1', 'rev_6', 'rev_9'])).rows.map(({ id, revision }) => [id, revision])).toEqual([['rev_1', 1]]);
  expect((await reads.revisions.listBelow(of('agt_1'), { from: 'rev_2', limit: 3 })).rows.map(({ id }) => id)).toEqual(['rev_2', 'rev_3', 'rev_4']);
  expect((await reads.revisions.listBelow(of('agt_1', 'agt_2', 'agt_3'), { from: null, limit: 1 })).rows.map(({ id }) => id)).toEqual(['rev_1']);
  expect((await reads.revisions.listBelow(of('agt_1', 'agt_2'), { from: 'rev_none', limit: 2 })).rows).toEqual([]);
  expect((await reads.revisions.listBelow(of('agt_1', 'agt_2', 'agt_3'))).rows.map(({ id }) => id)).toEqual(['rev_1', 'rev_2', 'rev_3', 'rev_4', 'rev_5']);
  const deployments = await reads.deployments.byIds(['rev_1', 'rev_2', 'rev_3', 'rev_4', 'rev_5', 'rev_6']);
  expect(deployments.rows.map(({ record: { result, lastAttempt }, work }) => [result, lastAttempt?.code, work?.state])).toEqual([
    [{ code: 'REVISION_ACTIVATED', data: null, warnings: [{ code: 'PLUGIN_AUTH_REQUIRED', pluginId: 'github' }] }, 'REVISION_INCOMPLETE', 'succeeded'],
    [{ code: 'REVISION_SUPERSEDED', data: null, warnings: [] }, undefined, 'succeeded'],
    [{ code: 'REVISION_STOPPED', data: null, warnings: [] }, undefined, 'succeeded'],
    [{ code: 'CONVERGENCE_DEADLINE_EXCEEDED', data: { timeoutMs: 1 }, warnings: [] }, undefined, 'failed_permanent'],
    [null, 'LEASE_EXPIRED', 'queued'],
  ]);
  expect((await reads.deployments.latestOfAgents(['agt_1', 'agt_2'])).rows.map(({ record }) => record.revisionId)).toEqual(['rev_5']);
  const { rows: history } = await reads.history.list({ agentId: 'agt_3' }, { from: null, limit: 100 });
  expect(history.map(({ type }) => type)).toEqual(['AgentCreated', 'AgentRevisionSnapshotted', 'AgentRevisionAdmitted', 'AgentDeletionRequested', 'AgentTeardownFinished', 'AgentRemoved']);
  expect(history[0]).toMatchObject({ stream: 'agent-agt_3', revision: 0, schema: 1, namespaceId: 'ns_1', actor: { principalId: 'prn_author' }, data: { name: 'gone' } });
  expect((await reads.history.list({ stream: 'audit-w1', types: ['CommandFailed'] }, { from: null, limit: 9 })).rows).toHaveLength(1);
  expect((await reads.history.list({ stream: 'agent-agt_3' }, { from: history[0]!.id, limit: 2 })).rows.map(({ type }) => type)).toEqual(['AgentCreated', 'AgentRevisionAdmitted']);
  expect((await reads.history.byIds([history[1]!.id])).rows).toEqual([history[1]]);
  expect(agents.fresh).toBe(true);
});
