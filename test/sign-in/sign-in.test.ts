/** Signing in and out over real HTTP: the cookie, what a session opens, and what it leaves in the history. (iam-auth-audit 1.2 to 1.5, rest-contract 3.10) */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createLogger } from '../../src/telemetry/logger.ts';
import { startTestApplication, type TestApplication } from '../support/app.ts';
import { openOperator, type TestOperator } from '../support/principals.ts';
import { auditOf, eventsOf } from '../support/request-events.ts';
import { consoleOrigin, cookieOf, pageHeaders } from '../support/sign-in.ts';
import { send, useCases as use } from '../support/use-cases.ts';
import { browserOf } from './browser.ts';

type Sent = Readonly<Record<string, string>>;

const lines: string[] = [];
let application: TestApplication;
let operator: TestOperator;
let ask: ReturnType<typeof browserOf>;
let administrator: { readonly email: string; readonly password: string };
beforeAll(async () => {
  application = await startTestApplication({ env: { EXUVIA_ROLES: 'api,projector' }, log: createLogger({ level: 'trace', to: { write: (line) => void lines.push(line) } }) });
  operator = await openOperator(application);
  ask = browserOf(application.origin);
  administrator = JSON.parse(await readFile(join(application.dataDir, 'admin.json'), 'utf8')) as typeof administrator;
});
afterAll(async () => {
  await operator?.close();
  await application?.close();
});

const signIn = (credentials: object = administrator, headers: Sent = {}) => ask('POST', '/api/auth/sign-in/email', headers, credentials);
const session = (headers: Sent = {}) => ask('GET', '/api/auth/session', headers);
const signOut = (headers: Sent, body?: unknown) => ask('POST', '/api/auth/sign-out', headers, body);
const list = (headers: Sent) => ask('GET', '/namespaces', headers);
const isAlive = async (cookie: string): Promise<boolean> => (await list({ cookie })).status === 200;
const everyEvent = async (): Promise<string> => JSON.stringify((await application.database.pool.query('select * from event')).rows);
const countEvents = async (): Promise<number> => (await application.database.pool.query('select from event')).rowCount!;

describe('signing in', () => {
  it('sets the cookie, and says nothing of it in the answer', async () => {
    const answer = await signIn();
    expect(answer).toMatchObject({ status: 200, data: { authenticated: true } });
    expect(answer.headers.get('set-cookie')).toMatch(/^openclaw_occ\.session_token=[A-Za-z0-9_-]{43}; Max-Age=604800; Path=\/; HttpOnly; SameSite=Lax$/);
    const events = await eventsOf(application.database, answer.requestId);
    expect(events).toMatchObject([{ type: 'SignedIn', metadata: { actor: { kind: 'principal' }, audit: { action: 'authentication.login', outcome: 'success' } } }]);
  });

  it('opens both edges to the person', async () => {
    const cookie = cookieOf((await signIn({ ...administrator, email: administrator.email.toUpperCase() })).headers);
    expect((await list({ cookie })).data).toContainEqual(expect.objectContaining({ name: 'default' }));
    expect(await send('GraphQL', application.origin, use.getInstallation(), pageHeaders(cookie))).toMatchObject({ code: null });
    const created = await send('REST', application.origin, use.createNamespace({ name: 'by a person' }), pageHeaders(cookie));
    expect(created.status).toBe(201);
    const [{ metadata } = { metadata: undefined }] = await eventsOf(application.database, created.requestId);
    expect(metadata!.actor).toEqual({ kind: 'principal', principalId: expect.stringMatching(/^prn_/) as string });
  });

  it('with a wrong password or an unknown email is refused in the same words, and audited', async () => {
    const answers = [await signIn({ ...administrator, password: 'wrong horse battery' }), await signIn({ email: 'nobody@example.test', password: 'wrong horse battery' })];
    for (const { status, code, message, requestId, headers } of answers) {
      expect({ status, code, message }).toEqual({ status: 401, code: 'UNAUTHENTICATED', message: answers[0]!.message });
      expect(headers.has('set-cookie')).toBe(false);
      expect(auditOf(await eventsOf(application.database, requestId))).toMatchObject([{ action: 'authentication.login', outcome: 'denied', reasonCode: 'INVALID_CREDENTIALS' }]);
    }
  });

  it.each([
    ['a page that is trusted', { origin: consoleOrigin }, 200],
    ['a page that is trusted, from another site', { origin: consoleOrigin, 'sec-fetch-site': 'cross-site' }, 200],
    ['no browser', {}, 200],
    ['no browser, with a cookie', { cookie: 'openclaw_occ.session_token=old' }, 200],
    ['another page of this host', { origin: 'http://localhost:1' }, 403],
    ['an origin that is none', { origin: 'localhost:3000' }, 403],
    ['another site that hides its origin', { 'sec-fetch-site': 'cross-site' }, 403],
    ['the same site', { 'sec-fetch-site': 'same-site' }, 200],
  ])('from %s', async (_, headers, status) => {
    const answer = await signIn(administrator, headers);
    expect({ status: answer.status, cookie: answer.headers.has('set-cookie') }).toEqual({ status, cookie: status === 200 });
  });

  it.each([
    [{ email: 'a@b', password: 'short' }, [{ path: '/password', code: 'INVALID_VALUE' }]],
    [{ email: 'a@b', password: 'x'.repeat(129) }, [{ path: '/password', code: 'TOO_LONG' }]],
    [{ email: 'ab', password: 'twelve chars' }, [{ path: '/email', code: 'INVALID_VALUE' }]],
    [{ ...{ email: 'a@b', password: 'twelve chars' }, rememberMe: true }, [{ path: '/rememberMe', code: 'UNKNOWN_FIELD' }]],
  ])('takes no %j', async (body, details) => {
    expect(await signIn(body)).toMatchObject({ status: 400, code: 'INVALID_REQUEST', details });
  });
});

describe('who is signed in', () => {
  it('is nobody without a session, whatever else is sent', async () => {
    const { cookie } = await operator.administrator();
    const nobody: readonly Sent[] = [{}, { cookie: 'openclaw_occ.session_token=junk' }, { 'x-api-key': application.key }, { cookie, 'x-api-key': application.key }, { cookie, authorization: 'Bearer x' }, { cookie, 'x-occ-cli-session': 'occcli_x' }];
    for (const headers of nobody) expect(await session(headers)).toMatchObject({ status: 200, data: null });
  });

  it('is told with a key that is stable for a session and differs between sessions', async () => {
    const [first, second] = [cookieOf((await signIn()).headers), cookieOf((await signIn()).headers)];
    const { data } = await session({ cookie: first });
    expect(data).toEqual({ authenticated: true, sessionKey: expect.stringMatching(/^[A-Za-z0-9_-]+$/) as string, user: { id: expect.stringMatching(/^usr_/) as string, email: administrator.email, name: 'Administrator' } });
    expect((await session({ cookie: first })).data).toEqual(data);
    const { sessionKey } = (await session({ cookie: second })).data as { sessionKey: string };
    expect(sessionKey).not.toBe((data as { sessionKey: string }).sessionKey);
    expect(first).not.toContain((data as { sessionKey: string }).sessionKey);
    expect(await session({ cookie: first, 'x-occ-session-key': sessionKey })).toMatchObject({ status: 401, code: 'UNAUTHENTICATED' });
  });

  it('ends seven days after the sign-in, used or not', async () => {
    const { cookie, sessionKey } = await operator.administrator();
    const lifetime = async () => (await application.database.pool.query<{ days: number }>('select extract(epoch from expires_at - created_at)::float / 86400 as days from session where session_key = $1', [sessionKey])).rows[0]!.days;
    expect(await lifetime()).toBeCloseTo(7, 5);
    expect(await isAlive(cookie)).toBe(true);
    expect(await lifetime()).toBeCloseTo(7, 5);
    await application.database.pool.query('update session set expires_at = clock_timestamp() where session_key = $1', [sessionKey]);
    expect(await isAlive(cookie)).toBe(false);
    expect((await session({ cookie })).data).toBeNull();
  });

  it('can sign in by password alone', async () => {
    expect(await ask('GET', '/api/auth/providers')).toMatchObject({ status: 200, data: { github: false, google: false, oidc: false, password: true, sessionBinding: true } });
  });
});

describe('beside the cookie of a session', () => {
  const refused = (name: string, more: (person: { readonly cookie: string; readonly sessionKey: string }) => Sent) =>
    it(`${name}: 401, and no event`, async () => {
      const person = await operator.administrator();
      const before = await countEvents();
      expect(await list({ cookie: person.cookie, ...more(person) })).toMatchObject({ status: 401, code: 'UNAUTHENTICATED' });
      expect(await countEvents()).toBe(before);
      expect(await isAlive(person.cookie)).toBe(true);
    });

  refused('an authorization header', () => ({ authorization: 'Basic Og==' }));
  refused('an invalid key', () => ({ 'x-api-key': 'exk.no.key' }));
  refused('a blank key', () => ({ 'x-api-key': '' }));
  refused('a session of the command line', () => ({ 'x-occ-cli-session': 'occcli_any' }));
  refused('a session of the command line and a key', () => ({ 'x-occ-cli-session': 'occcli_any', 'x-api-key': application.key }));
  refused('the key of a session that is none', () => ({ 'x-occ-session-key': 'lobster' }));
  refused('a blank session key', () => ({ 'x-occ-session-key': '' }));
  refused('its own session key twice', ({ sessionKey }) => ({ 'x-occ-session-key': `${sessionKey}, ${sessionKey}` }));
  refused('the same cookie', ({ cookie }) => ({ cookie: `${cookie}; ${cookie}` }));
  refused('another cookie of the name', ({ cookie }) => ({ cookie: `openclaw_occ.session_token=planted; ${cookie}` }));

  it('its own session key, and cookies of other names, change nothing', async () => {
    const { cookie, sessionKey } = await operator.administrator();
    expect((await list({ cookie: `a=b; ${cookie};x_openclaw_occ.session_token=c`, 'x-occ-session-key': sessionKey })).status).toBe(200);
  });

  it('a valid key decides alone', async () => {
    const { cookie } = await operator.administrator();
    const { requestId } = await ask('POST', '/namespaces', { cookie, 'x-api-key': application.key }, { name: 'by the key' });
    expect((await eventsOf(application.database, requestId))[0]!.metadata.actor).toMatchObject({ kind: 'service_principal' });
  });
});

describe('signing out', () => {
  it('ends this session alone, clears the cookie, and is audited', async () => {
    const [person, another] = [await operator.administrator(), await operator.administrator()];
    const answer = await signOut(pageHeaders(person.cookie));
    expect(answer).toMatchObject({ status: 200, data: { success: true } });
    expect(answer.headers.get('set-cookie')).toBe('openclaw_occ.session_token=; Max-Age=0; Path=/; HttpOnly; SameSite=Lax');
    expect(await eventsOf(application.database, answer.requestId)).toMatchObject([{ type: 'SignedOut', data: { principalId: person.id }, metadata: { audit: { action: 'authentication.session.end', outcome: 'success' } } }]);
    expect([await isAlive(person.cookie), await isAlive(another.cookie)]).toEqual([false, true]);
    expect(await signOut(pageHeaders(person.cookie))).toMatchObject({ status: 401 });
    expect(await signOut(pageHeaders(another.cookie), {})).toMatchObject({ status: 200 });
  });

  it.each([
    ['without an Origin', ({ cookie }: { cookie: string }) => ({ cookie }), 403],
    ['from another page', ({ cookie }: { cookie: string }) => ({ cookie, origin: 'http://localhost:1' }), 403],
    ['with the key of another session', ({ cookie }: { cookie: string }) => ({ ...pageHeaders(cookie), 'x-occ-session-key': 'lobster' }), 401],
    ['with a service key', ({ cookie }: { cookie: string }) => ({ ...pageHeaders(cookie), 'x-api-key': application.key }), 401],
  ])('%s ends and clears nothing', async (_, headersOf, status) => {
    const person = await operator.administrator();
    const answer = await signOut(headersOf(person));
    expect({ status: answer.status, cleared: answer.headers.has('set-cookie') }).toEqual({ status, cleared: false });
    expect(await isAlive(person.cookie)).toBe(true);
  });
});

describe('a session', () => {
  it('is judged by the policy of each request', async () => {
    const person = await operator.person();
    const installation = () => ask('GET', '/installation', { cookie: person.cookie });
    expect((await installation()).status).toBe(403);
    const revoke = await person.grant([{ action: 'read', resourceKind: 'installation' }]);
    expect((await installation()).status).toBe(200);
    await revoke();
    expect((await installation()).status).toBe(403);
  });

  it('of an account the history does not know is nobody, also where a list would be empty', async () => {
    const { cookie } = await operator.person({ known: false });
    const answer = await list({ cookie });
    expect(answer).toMatchObject({ status: 403, code: 'FORBIDDEN' });
    expect(await eventsOf(application.database, answer.requestId)).toMatchObject([{ type: 'AuthorizationDenied', metadata: { actor: { principalId: 'unresolved', unresolved: true }, audit: { action: 'openclaw.namespaces.list' } } }]);
  });

  it('is kept by its hash alone; passwords, cookies and emails are in no event and no log', async () => {
    const [token] = [cookieOf((await signIn()).headers).split('=')[1]!];
    const rows = JSON.stringify((await application.database.pool.query("select session_key, encode(token_hash, 'escape') as hash, user_id from session")).rows);
    expect(rows).not.toContain(token);
    const written = (await everyEvent()) + lines.join('\n');
    for (const secret of [token, administrator.password, administrator.email, 'nobody@example.test', 'wrong horse battery']) expect(written).not.toContain(secret);
  });
});
