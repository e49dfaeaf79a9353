/** Failure scenario 9: a database that was restored to an older state beside an event store that was not. */
import { afterAll, afterEach, expect, it } from 'vitest';
import { createPostgresEventStore } from '../../src/event-store/postgres.ts';
import { createOperator } from '../../src/iam/operator.ts';
import { createDatabaseClock } from '../../src/postgres/clock.ts';
import { createInstallationRow, createKeyRows, createWaysIn } from '../../src/postgres/private-rows.ts';
import { createStreams } from '../../src/runtime/streams.ts';
import { createLogger } from '../../src/telemetry/logger.ts';
import { defaultNamespace, stepsIn } from '../end-to-end/steps.ts';
import { eventsOf } from '../end-to-end/stored-history.ts';
import { createClient, eventually } from '../support/client.ts';
import { copyDatabase, createDatabase, type TestDatabase } from '../support/database.ts';
import { isAlive, pageHeaders, signInAsAdministrator } from '../support/sign-in.ts';
import { closeStarted, newFolder, readiness, removeFolders, startAt } from './support.ts';

afterEach(closeStarted);
afterAll(removeFolders);

/** The operator of policy, beside a server. */
const withOperator = async <T>(database: TestDatabase, events: TestDatabase, act: (operator: ReturnType<typeof createOperator>) => Promise<T>): Promise<T> => {
  const clock = await createDatabaseClock(database.pool);
  const store = createPostgresEventStore(events);
  const installationId = await createInstallationRow(database.pool).id();
  const streams = createStreams({ store, clock, prefix: `${installationId}.` });
  try {
    return await act(createOperator({ streams, keyRows: createKeyRows(database.pool), waysIn: createWaysIn(database.pool), clock, installationId }));
  } finally {
    clock.close();
    await store.close();
  }
};

it('scenario 9: a database that went back revives no revoked key and no session, catches up, and is told', async () => {
  const [database, events, dataDir] = await Promise.all([createDatabase(), createDatabase(), newFolder()]);
  const place = { dataDir, database, eventstoreUrl: events.url };
  const statusWith = async (origin: string, key: string) => (await createClient(origin, key).rest('GET', '/namespaces')).status;
  const openings = async () => (await eventsOf(events.pool, 'store')).filter(({ type }) => type === 'DatabaseOpened').map(({ data }) => JSON.parse(data) as object);
  const first = await startAt(place);
  const namespaceId = await defaultNamespace(first.client);
  const { keyId, text } = await withOperator(database, events, async (operator) => {
    const id = await operator.createServicePrincipal();
    await operator.bind(id, await operator.createRole([{ action: 'read', resourceKind: 'namespace' }]), {});
    return operator.issueKey(id, { name: 'second', lifetimeMs: 3_600_000 });
  });
  expect(await statusWith(first.origin, text)).toBe(200);
  const ended = (await signInAsAdministrator(first)).cookie;
  const unended = (await signInAsAdministrator(first)).cookie;
  expect([await isAlive(first.origin, ended), await isAlive(first.origin, unended)]).toEqual([true, true]);
  await first.close();
  const backup = await copyDatabase(database);

  const second = await startAt(place);
  await eventually('the second opening', openings, ({ length }) => length === 2);
  await withOperator(database, events, (operator) => operator.revokeKey(keyId));
  expect(await statusWith(second.origin, text)).toBe(401);
  expect((await fetch(`${second.origin}/api/auth/sign-out`, { method: 'POST', headers: pageHeaders(ended) })).status).toBe(200);
  expect([await isAlive(second.origin, ended), await isAlive(second.origin, unended)]).toEqual([false, true]);
  const { id } = await stepsIn(second.client, namespaceId).configure({ agents: {} });
  await second.close();
  expect(await createKeyRows(database.pool).secretHash(keyId)).toBeUndefined();

  const back = { ...place, database: backup };
  expect(await createKeyRows(backup.pool).secretHash(keyId)).toBeDefined();
  const told: string[] = [];
  const third = await startAt(back, { log: createLogger({ level: 'error', to: { write: (line) => void told.push(line) } }) });
  const ready = await eventually('a server that says so', () => readiness(third), ({ status, degraded }) => status === 200 && degraded.length === 1);
  expect(ready.degraded[0]).toMatch(/^The database went back to an older state: at opening 3 it knew of 1/);
  expect(await statusWith(third.origin, text)).toBe(401);
  // One that had ended must not live again, and the database cannot tell which: all of them are over.
  expect([await isAlive(third.origin, ended), await isAlive(third.origin, unended)]).toEqual([false, false]);
  expect(told.map((line) => JSON.parse(line) as object)).toMatchObject([{ expected: 2, found: 1, endedSessions: 2, msg: 'the database went back to an older state' }]);
  expect((await third.client.rest('GET', `/namespaces/${namespaceId}/configurations/${id}`)).status).toBe(200);
  await third.close();

  const fourth = await startAt(back);
  await eventually('nothing to tell any more', () => readiness(fourth), ({ status, degraded }) => status === 200 && degraded.length === 0);
  await fourth.close();
  expect(await openings()).toEqual([
    { number: 1, found: 0 },
    { number: 2, found: 1 },
    { number: 3, found: 1 },
    { number: 4, found: 3 },
  ]);
});
