/** Failure scenario 19: private rows whose event never came, swept beside slow appends and by two processes at once. */
import { afterAll, beforeAll, expect, it } from 'vitest';
import { iam } from '../../src/aggregates.ts';
import { noStream } from '../../src/event-store/event-store.ts';
import { createPostgresEventStore } from '../../src/event-store/postgres.ts';
import type { IamCommand } from '../../src/iam/iam.ts';
import { newKey } from '../../src/iam/keys.ts';
import { systemContext } from '../../src/installation/bootstrap.ts';
import { newId } from '../../src/kernel/ids.ts';
import { createAccountRows, createKeyRows } from '../../src/postgres/private-rows.ts';
import { createStreams, type Streams } from '../../src/runtime/streams.ts';
import { sweepOrphans } from '../../src/sign-in/orphans.ts';
import { startTestApplication, type TestApplication } from '../support/app.ts';
import { createDatabase } from '../support/database.ts';
import { openReplica, type Replica } from './replica.ts';

let application: TestApplication;
let replicas: readonly [Replica, Replica];
beforeAll(async () => {
  application = await startTestApplication({ env: { EXUVIA_ROLES: 'api,projector' } });
  replicas = [await openReplica(application, 'one'), await openReplica(application, 'two')];
});
afterAll(async () => {
  for (const replica of replicas ?? []) await replica.close();
  await application?.close();
});

const old = '2 hours';
const context = systemContext('test');
const parts = () => ({ accountRows: createAccountRows(application.database.pool), keyRows: createKeyRows(application.database.pool) });
const sweep = (streams: Streams) => sweepOrphans({ streams, ...parts(), installationId: 'ins_test' });
const age = (table: string, key: string, id: string, by: string) =>
  application.database.pool.query(`update ${table} set created_at = created_at - $2::interval where ${key} = $1`, [id, by]);

/** The row of an account, and the command that would name it. */
const accountRow = async (by: string) => {
  const [userId, principalId] = [newId('usr'), newId('prn')];
  await parts().accountRows.insert({ userId, principalId, email: `${userId}@example.test`, name: 'Somebody', passwordHash: 'none' });
  await age('account', 'user_id', userId, by);
  const command: IamCommand = { type: 'CreatePrincipal', principalId, issuer: 'local', subject: userId };
  return { id: principalId, command, exists: async () => (await parts().accountRows.byPrincipal(principalId)) !== undefined };
};

/** The row of a key, and the command that would name it. */
const keyRow = async (by: string) => {
  const { keyId, secretHash } = newKey();
  const { servicePrincipalId } = replicas[0].installation.serviceKey;
  await parts().keyRows.insert(keyId, servicePrincipalId, secretHash);
  await age('service_key', 'key_id', keyId, by);
  const command: IamCommand = { type: 'IssueServiceKey', key: { keyId, servicePrincipalId, name: 'late', expiresAt: '2100-01-01T00:00:00.000Z' } };
  return { id: keyId, command, exists: async () => (await parts().keyRows.secretHash(keyId)) !== undefined };
};

it('scenario 19: an old row that nothing names goes, and its late event is refused; what is named or young stays', async () => {
  const [{ streams }] = replicas;
  const orphans = [await accountRow(old), await keyRow(old)];
  const young = [await accountRow('50 minutes'), await keyRow('50 minutes')];
  const named = [await accountRow(old), await keyRow(old)];
  for (const { command } of named) await streams.execute(iam, '', command, context);
  await age('service_key', 'key_id', replicas[0].installation.serviceKey.keyId, old);

  expect(await sweep(streams)).toEqual({ accounts: 1, keys: 1 });
  expect(await Promise.all([...orphans, ...young, ...named].map(({ exists }) => exists()))).toEqual([false, false, true, true, true, true]);
  for (const { command } of orphans) await expect(streams.execute(iam, '', command, context)).rejects.toMatchObject({ code: 'RESOURCE_CONFLICT' });
  for (const { command } of young) await streams.execute(iam, '', command, context);
  expect((await application.client.rest('GET', '/namespaces')).status).toBe(200);
  expect(await sweep(streams)).toEqual({ accounts: 0, keys: 0 });
});

it('scenario 19: an append that has been under way for longer than the age is refused once its row has gone', async () => {
  const [slow, { streams }] = replicas;
  for (const make of [accountRow, keyRow]) {
    const row = await make(old);
    const held = slow.holdNext(row.command.type === 'CreatePrincipal' ? 'PrincipalCreated' : 'ServiceKeyIssued');
    const late = slow.streams.execute(iam, '', row.command, context).catch((refusal: unknown) => refusal);
    await held.reached;
    await sweep(streams);
    held.release();
    expect(await late).toMatchObject({ code: 'RESOURCE_CONFLICT' });
    expect(await row.exists()).toBe(false);
  }
});

it('scenario 19: two sweeps and the events themselves at once leave exactly the rows that the history names', async () => {
  const rows = [...(await Promise.all(Array.from({ length: 12 }, () => accountRow(old)))), ...(await Promise.all(Array.from({ length: 12 }, () => keyRow(old))))];
  const [one, two] = replicas;
  const outcomes = await Promise.allSettled([sweep(one.streams), ...rows.map(({ command }) => two.streams.execute(iam, '', command, context)), sweep(two.streams)]);
  for (const outcome of outcomes) if (outcome.status === 'rejected') expect(outcome.reason).toMatchObject({ code: 'RESOURCE_CONFLICT' });
  const { state } = await one.streams.load(iam, '');
  for (const { id, exists } of rows) expect({ id, exists: await exists() }).toEqual({ id, exists: state.identities.has(id) || state.keys.has(id) });
});

it('scenario 19: before the Installation is born nothing is swept, and nothing stands in the way of its birth', async () => {
  const database = await createDatabase();
  const store = createPostgresEventStore(database);
  try {
    const streams = createStreams({ store, clock: { now: () => Date.now() }, prefix: 'ins_unborn.' });
    const accountRows = createAccountRows(database.pool);
    await accountRows.insert({ userId: 'usr_1', principalId: 'prn_1', email: 'a@example.test', name: 'A', passwordHash: 'none' }, { founding: true });
    await database.pool.query(`update account set created_at = created_at - interval '${old}'`);
    expect(await sweepOrphans({ streams, accountRows, keyRows: createKeyRows(database.pool), installationId: 'ins_unborn' })).toEqual({ accounts: 0, keys: 0 });
    expect(await accountRows.byPrincipal('prn_1')).toBeDefined();
    expect((await streams.load(iam, '')).revision).toBe(noStream);
  } finally {
    await store.close();
  }
});
