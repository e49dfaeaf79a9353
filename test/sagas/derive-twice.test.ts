/** Work rows derived again after the checkpoint of the sagas went back. */
import { beforeEach, expect, it } from 'vitest';
import { workKey } from '../../src/kernel/work.ts';
import { sagaProcessor } from '../../src/runtime/saga-processor.ts';
import { work } from '../../src/sagas/index.ts';
import { startConsumers, untilPassed } from '../support/consumers.ts';
import { createDatabase, type TestDatabase } from '../support/database.ts';
import { writeEveryEvent } from '../support/every-event.ts';
import { createInMemoryEventStore } from '../support/in-memory-event-store.ts';
import { actor, prefix, writeHistory } from '../support/write-history.ts';
import type { EventStore } from '../../src/event-store/event-store.ts';

const sagas = sagaProcessor(work);
let database: TestDatabase;
let store: EventStore;

beforeEach(async () => {
  database = await createDatabase();
  store = createInMemoryEventStore();
});

/** Lets the sagas read everything, in batches of this many events. */
const derive = async (batchLimit = 7): Promise<void> => {
  const consumers = startConsumers(database, store, { consumers: [sagas], batchLimit });
  await untilPassed(database, (await store.head({ streamPrefix: prefix }))!, [sagas.name]);
  await consumers.stop();
};

const goBack = () => database.pool.query('update consumer_checkpoint set position = null, event_id = null');
const rows = async () =>
  (
    await database.pool.query<object>(
      `select key, lane, kind, namespace_id, agent_id, revision_id, operation_id, actor, state, attempt_count, claim_token, reason_code,
              created_at, completed_at, stream_revision, available_at from work_item order by key`,
    )
  ).rows;

it('scenario 31: deriving twice changes nothing', async () => {
  await writeEveryEvent(writeHistory(store));
  await derive();
  const claimed = workKey.deletion('agt_2');
  await database.pool.query(
    `update work_item set state = 'claimed', attempt_count = 3, claim_token = gen_random_uuid(), lease_expires_at = clock_timestamp() + interval '1 minute' where key = $1`,
    [claimed],
  );
  const before = await rows();
  expect(before).toContainEqual(expect.objectContaining({ key: claimed, state: 'claimed', attempt_count: 3 }));
  for (const batchLimit of [1, 7, 1_000]) {
    await goBack();
    await derive(batchLimit);
    expect(await rows()).toEqual(before);
  }
});

it('scenario 31: everything derived from nothing leaves finished work finished, and attempts as the evidence counts them', async () => {
  await writeEveryEvent(writeHistory(store));
  const derived = async (batchLimit: number) => {
    await derive(batchLimit);
    return (await rows()).map((row) => ({ ...row, available_at: undefined }));
  };
  const before = await derived(7);
  for (const batchLimit of [1, 1_000]) {
    await goBack();
    await database.pool.query('delete from work_item');
    expect(await derived(batchLimit)).toEqual(before);
  }
  const states = Object.fromEntries((await rows()).map((row) => [(row as { key: string }).key, row])) as Record<string, object>;
  // The removal's own item is left: its pass finds the Agent gone, does what follows, and takes the row away.
  expect(Object.keys(states).filter((key) => key.includes('agt_3') || key.includes('rev_6') || key.includes('ns_3'))).toEqual([workKey.deletion('agt_3')]);
  expect(states[workKey.deployment('rev_1')]).toMatchObject({ state: 'succeeded', reason_code: 'REVISION_ACTIVATED' });
  expect(states[workKey.deployment('rev_4')]).toMatchObject({ state: 'failed_permanent', reason_code: 'CONVERGENCE_DEADLINE_EXCEEDED' });
  expect(states[workKey.deployment('rev_5')]).toMatchObject({ state: 'queued', attempt_count: 2, reason_code: null, completed_at: null });
  expect(states[workKey.deletion('agt_2')]).toMatchObject({ state: 'queued', attempt_count: 0 });
  expect(states[workKey.namespaceReady('ns_2')]).toMatchObject({ state: 'failed_permanent' });
});

it('queues a failed deletion again for the actor who took it over, and keeps when it was first asked for', async () => {
  const history = writeHistory(store);
  const agent = { agentId: 'agt_1', namespaceId: 'ns_1' };
  await history.append('agent-agt_1', { type: 'AgentDeletionRequested', data: { ...agent, accessBindingIds: [], restrictionIds: [] } });
  await history.append('agent-agt_1', { type: 'AgentTeardownFailed', data: { ...agent, code: 'ACTOR_REVOKED' } });
  await derive();
  await database.pool.query('update work_item set attempt_count = 5');
  await history.append('agent-agt_1', { type: 'AgentDeletionTakenOver', data: { ...agent, previousActorId: actor.principalId } }, { actor: { principalId: 'prn_next', kind: 'principal' } });
  await derive();
  expect(await rows()).toEqual([
    expect.objectContaining({
      key: workKey.deletion('agt_1'),
      actor: '{"kind":"principal","principalId":"prn_next"}',
      state: 'queued',
      attempt_count: 0,
      reason_code: null,
      completed_at: null,
      created_at: new Date(history.timeOf(0)),
      stream_revision: '2',
    }),
  ]);
});
