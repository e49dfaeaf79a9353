/** Failure scenario 9: a standby takes the place of the database, with the last seconds or without them. */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, afterEach, expect, it, vi } from 'vitest';
import { startEmbedded } from '../../src/postgres/embedded.ts';
import { openPool } from '../../src/postgres/pool.ts';
import { createLogger } from '../../src/telemetry/logger.ts';
import { storedEvents } from '../end-to-end/stored-history.ts';
import { startTestApplication, type TestApplication, type TestApplicationOptions } from '../support/app.ts';
import { eventually } from '../support/client.ts';
import type { TestDatabase } from '../support/database.ts';
import { startEventstoredb } from '../support/eventstoredb/server.ts';
import { cookieOf, pageHeaders, signInAsAdministrator } from '../support/sign-in.ts';
import { replicated, startStandby } from '../support/standby.ts';
import { startTcpProxy } from '../support/tcp-proxy.ts';
import { environmentOf, exuvia, newFolder, readiness, removeFolders } from './support.ts';

vi.setConfig({ testTimeout: 60_000 });
let stack = new AsyncDisposableStack();
afterEach(async () => {
  await stack.disposeAsync();
  stack = new AsyncDisposableStack();
});
afterAll(removeFolders);

/** A database whose clients do not notice which of two servers they talk to. */
const openPair = async () => {
  const dataDir = await newFolder();
  const primary = await startEmbedded({ dataDir, settings: { ...replicated, fsync: 'off' } });
  stack.defer(() => primary.stop());
  const standby = await startStandby({ url: primary.url, dataDir });
  stack.defer(() => standby.stop());
  const proxy = await startTcpProxy(primary.url);
  stack.defer(() => proxy.close());
  const pool = openPool({ url: proxy.url, max: 2 });
  stack.defer(() => pool.end());
  const database: TestDatabase = { url: proxy.url, pool };
  const leadToStandby = async () => {
    await primary.stop();
    proxy.leadTo(standby.url);
    proxy.cut();
  };
  const failOver = async () => {
    await leadToStandby();
    await standby.promote();
  };
  return { database, standby, leadToStandby, failOver };
};

const start = async (options: TestApplicationOptions) => {
  const application = await startTestApplication(options);
  let closed: Promise<void> | undefined;
  const close = () => (closed ??= application.close());
  stack.defer(close);
  return { ...application, close };
};

const statusOf = async ({ origin }: Pick<TestApplication, 'origin'>, cookie: string): Promise<number> => (await fetch(`${origin}/namespaces`, { headers: { cookie } })).status;
const signOut = async ({ origin }: Pick<TestApplication, 'origin'>, cookie: string): Promise<void> =>
  expect((await fetch(`${origin}/api/auth/sign-out`, { method: 'POST', headers: pageHeaders(cookie) })).status).toBe(200);
const post = ({ origin }: Pick<TestApplication, 'origin'>, path: string, body: object, headers: Readonly<Record<string, string>> = {}) =>
  fetch(`${origin}/api/auth/${path}`, { method: 'POST', headers: { ...headers, 'content-type': 'application/json' }, body: JSON.stringify(body) });

/** A log that is kept. */
const telling = () => {
  const lines: string[] = [];
  return { log: createLogger({ level: 'warn', to: { write: (line) => void lines.push(line) } }), handedOver: () => lines.map((line) => JSON.parse(line) as { from?: string; to?: string }).filter(({ to }) => to !== undefined) };
};

it('scenario 9: a promotion that lost seconds revives no session that was ended and no password that was replaced, not for a moment', async () => {
  const { database, standby, failOver } = await openPair();
  const eventstore = await startEventstoredb();
  stack.defer(() => eventstore.close());
  const place = { database, dataDir: await newFolder(), eventstoreUrl: eventstore.url };
  const env = { OCC_EVENTSTORE_URL: eventstore.url };
  const mara = { email: 'mara@example.test', password: 'correct horse battery' };

  const first = await start({ ...place, env: { ...env, EXUVIA_ROLES: 'api,projector' } });
  const [ended, kept] = [(await signInAsAdministrator(first)).cookie, (await signInAsAdministrator(first)).cookie];
  const { data: account } = (await (await post(first, 'accounts', mara, pageHeaders(kept))).json()) as { data: { id: string } };
  const hers = cookieOf((await post(first, 'sign-in/email', mara)).headers);
  expect(await Promise.all([ended, kept, hers].map((cookie) => statusOf(first, cookie)))).toEqual([200, 200, 200]);
  await standby.caughtUp();
  await first.close();

  const api = await start({ ...place, env: { ...env, EXUVIA_ROLES: 'api' }, log: telling().log });
  await standby.cutOff();
  await signOut(api, ended);
  const resetPassword = async () => {
    expect(await exuvia(['admin', 'reset-password', '--email', mara.email], environmentOf(place))).toMatchObject({ code: 0, err: '' });
    return JSON.parse(await readFile(join(place.dataDir, `${account.id}.json`), 'utf8')) as typeof mara;
  };
  const lost = await resetPassword();
  expect(await Promise.all([ended, kept, hers].map((cookie) => statusOf(api, cookie)))).toEqual([401, 200, 401]);
  await failOver();

  // Nobody has compared the sessions with the history yet, so nobody knows which of them are over.
  const told = await eventually('an API that says so', () => readiness(api), ({ status, degraded }) => status === 200 && degraded.length > 0);
  expect(told.degraded[0]).toMatch(/^Another server took the place of the database/);
  expect((await database.pool.query<{ count: number }>('select count(*)::integer as count from session')).rows).toEqual([{ count: 3 }]);
  expect(await Promise.all([ended, kept, hers].map((cookie) => statusOf(api, cookie)))).toEqual([503, 503, 503]);
  expect((await api.client.rest('GET', '/namespaces')).status).toBe(200);
  expect([(await post(api, 'sign-in/email', mara)).status, (await post(api, 'sign-in/email', lost)).status]).toEqual([401, 401]);

  const projector = telling();
  await start({ database, dataDir: await newFolder(), key: first.key, env: { ...env, EXUVIA_ROLES: 'projector' }, log: projector.log });
  await eventually('the session that nobody ended', () => statusOf(api, kept), (status) => status === 200);
  expect(await Promise.all([ended, hers].map((cookie) => statusOf(api, cookie)))).toEqual([401, 401]);
  expect(projector.handedOver()).toMatchObject([{ endedSessions: 1 }]);
  const [{ from = '', to = '' }] = projector.handedOver() as [{ from?: string; to?: string }];
  expect([from.split('.')[1], to.split('.')]).toEqual(['00000001', [from.split('.')[0], '00000002']]);
  expect((await post(api, 'sign-in/email', await resetPassword())).status).toBe(200);
  await eventually('nothing to tell any more', () => readiness(api), ({ degraded }) => degraded.length === 0);
});

it('scenario 9: a switch-over that lost nothing ends no session', async () => {
  const { database, failOver } = await openPair();
  const eventstore = await startEventstoredb();
  stack.defer(() => eventstore.close());
  const { log, handedOver } = telling();
  const server = await start({ database, dataDir: await newFolder(), env: { OCC_EVENTSTORE_URL: eventstore.url, EXUVIA_ROLES: 'api,projector' }, log });
  const [ended, kept] = [(await signInAsAdministrator(server)).cookie, (await signInAsAdministrator(server)).cookie];
  await signOut(server, ended);
  await failOver();
  await eventually('the session that nobody ended', () => statusOf(server, kept), (status) => status === 200);
  expect(await statusOf(server, ended)).toBe(401);
  expect(handedOver()).toMatchObject([{ endedSessions: 0 }]);
});

it('scenario 9: a standby that is not promoted yet makes sessions and sign-ins unavailable, and they come back with it', async () => {
  const { database, standby, leadToStandby } = await openPair();
  const eventstore = await startEventstoredb();
  stack.defer(() => eventstore.close());
  const server = await start({ database, dataDir: await newFolder(), env: { OCC_EVENTSTORE_URL: eventstore.url, EXUVIA_ROLES: 'api,projector' }, log: telling().log });
  const { cookie } = await signInAsAdministrator(server);
  const mara = { email: 'mara@example.test', password: 'correct horse battery' };
  expect((await post(server, 'accounts', mara, pageHeaders(cookie))).status).toBe(201);
  await standby.caughtUp();
  await leadToStandby();
  const statuses = async () => [await statusOf(server, cookie), (await post(server, 'sign-in/email', mara)).status];
  await eventually('a server that reads from the standby', async () => (await server.client.rest('GET', '/namespaces')).status, (status) => status === 200);
  expect(await statuses()).toEqual([503, 503]);
  await standby.promote();
  await eventually('sessions and sign-ins', statuses, (found) => found.every((status) => status === 200));
});

it('scenario 9: where the history is in the same database, both forget the same seconds and agree', async () => {
  const { database, standby, failOver } = await openPair();
  const { log, handedOver } = telling();
  const server = await start({ database, dataDir: await newFolder(), env: { EXUVIA_ROLES: 'api,projector' }, log });
  const [ended, kept] = [(await signInAsAdministrator(server)).cookie, (await signInAsAdministrator(server)).cookie];
  await standby.caughtUp();
  await standby.cutOff();
  await signOut(server, ended);
  expect(await statusOf(server, ended)).toBe(401);
  await failOver();
  await eventually('both sessions', () => Promise.all([statusOf(server, ended), statusOf(server, kept)]), ([one, other]) => one === 200 && other === 200);
  expect((await storedEvents(database.pool)).filter(({ type }) => type === 'SignedOut')).toEqual([]);
  expect(handedOver()).toMatchObject([{ endedSessions: 0 }]);
});
