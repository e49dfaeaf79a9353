/** Accounts: made by people who administer the Installation, one per email, and named by the history before they count. (iam-auth-audit 1.8, failure scenario 19) */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { iam } from '../../src/aggregates.ts';
import { systemContext } from '../../src/installation/bootstrap.ts';
import { createAccountRows } from '../../src/postgres/private-rows.ts';
import { startTestApplication, type TestApplication } from '../support/app.ts';
import { openOperator, type TestOperator, type TestPerson } from '../support/principals.ts';
import { eventsOf } from '../support/request-events.ts';
import { cookieOf, pageHeaders } from '../support/sign-in.ts';
import { browserOf } from './browser.ts';

type Sent = Readonly<Record<string, string>>;
interface Created {
  readonly id: string;
  readonly principalId: string;
}

let application: TestApplication;
let operator: TestOperator;
let administrator: TestPerson;
let ask: ReturnType<typeof browserOf>;
beforeAll(async () => {
  application = await startTestApplication({ env: { EXUVIA_ROLES: 'api,projector' } });
  operator = await openOperator(application);
  administrator = await operator.administrator();
  ask = browserOf(application.origin);
});
afterAll(async () => {
  await operator?.close();
  await application?.close();
});

const password = 'correct horse battery';
const create = (body: unknown, headers: Sent = pageHeaders(administrator.cookie)) => ask('POST', '/api/auth/accounts', headers, body);
const signIn = (email: string) => ask('POST', '/api/auth/sign-in/email', {}, { email, password });
const administratorRole = async () => (await operator.streams.load(iam, '')).state.installation!.role.roleId;

describe('an account', () => {
  it('is made without any grant; account and Principal are one event without the email, and its person signs in', async () => {
    const answer = await create({ email: 'First@Example.test', password });
    expect(answer).toMatchObject({ status: 201, data: { email: 'first@example.test', name: 'first@example.test' } });
    const { id, principalId } = answer.data as Created;
    const events = await eventsOf(application.database, answer.requestId);
    expect(events).toMatchObject([{ stream: expect.stringMatching(/\.iam$/) as string, type: 'PrincipalCreated', data: { principalId, issuer: 'local', subject: id }, metadata: { audit: { action: 'openclaw.auth.accounts.create', outcome: 'success', details: { principalId, userId: id } } } }]);
    expect(JSON.stringify(events)).not.toMatch(/example\.test|horse/i);
    const cookie = cookieOf((await signIn('FIRST@example.test')).headers);
    expect(await ask('GET', '/namespaces', { cookie })).toMatchObject({ status: 200, data: [] });
    expect((await ask('GET', '/installation', { cookie })).status).toBe(403);
  });

  it('with a Role of the Installation is bound to it in the same append', async () => {
    const answer = await create({ email: 'second@example.test', password, name: 'Second', roleId: await administratorRole() });
    expect(answer).toMatchObject({ status: 201, data: { name: 'Second' } });
    const { principalId } = answer.data as Created;
    expect((await eventsOf(application.database, answer.requestId)).map(({ type, data }) => [type, data['subjectId'] ?? data['principalId']])).toEqual([
      ['PrincipalCreated', principalId],
      ['AccessBindingCreated', principalId],
    ]);
    const cookie = cookieOf((await signIn('second@example.test')).headers);
    expect((await ask('GET', '/installation', { cookie })).status).toBe(200);
  });

  it('needs a Role of the Installation, and leaves nothing when it has none', async () => {
    const { id: namespaceId } = (await application.client.rest<{ id: string }>('POST', '/namespaces', { name: 'roles' })).data;
    const ofNamespace = await operator.createRole([{ action: 'read', resourceKind: 'agent' }], { namespaceId });
    const maker = await operator.person();
    await maker.grant([{ action: 'administer', resourceKind: 'installation' }]);
    for (const roleId of ['role_unknown', ofNamespace])
      for (const by of [undefined, pageHeaders(maker.cookie)])
        expect(await create({ email: 'third@example.test', password, roleId }, by)).toMatchObject({ status: 400, code: 'INVALID_REQUEST', details: [{ path: '/roleId', code: 'INVALID_VALUE' }] });
    expect(await signIn('third@example.test')).toMatchObject({ status: 401 });
    expect(await create({ email: 'third@example.test', password })).toMatchObject({ status: 201 });
  });

  it('with a Role that may do more than its maker is refused, and audited as such', async () => {
    const maker = await operator.person();
    await maker.grant([{ action: 'administer', resourceKind: 'installation' }]);
    const body = { email: 'eighth@example.test', password, roleId: await administratorRole() };
    const answer = await create(body, pageHeaders(maker.cookie));
    expect(answer).toMatchObject({ status: 403, code: 'FORBIDDEN' });
    expect(await eventsOf(application.database, answer.requestId)).toMatchObject([{ type: 'AuthorizationDenied', metadata: { audit: { reasonCode: 'ACCOUNT_PRINCIPAL_GRANTS_NOT_COVERED', details: { roleId: body.roleId } } } }]);
    expect(await create({ ...body, roleId: await operator.createRole([{ action: 'administer', resourceKind: 'installation' }]) }, pageHeaders(maker.cookie))).toMatchObject({ status: 201 });
  });

  it('is refused for its Role before anything is told of its email', async () => {
    const maker = await operator.person();
    await maker.grant([{ action: 'administer', resourceKind: 'installation' }]);
    const taken = 'admin@exuvia.local';
    expect(await create({ email: taken, password, roleId: await administratorRole() }, pageHeaders(maker.cookie))).toMatchObject({ status: 403 });
    expect(await create({ email: taken, password, roleId: 'role_unknown' }, pageHeaders(maker.cookie))).toMatchObject({ status: 400, details: [{ path: '/roleId' }] });
  });

  it('has its email alone, however it is written and however many ask at once', async () => {
    expect(await create({ email: 'fourth@example.test', password })).toMatchObject({ status: 201 });
    expect(await create({ email: 'FOURTH@example.test', password })).toMatchObject({ status: 409, code: 'RESOURCE_CONFLICT' });
    expect(await create({ email: 'admin@exuvia.local', password })).toMatchObject({ status: 409 });
    const answers = await Promise.all(Array.from({ length: 4 }, () => create({ email: 'fifth@example.test', password })));
    expect(answers.map(({ status }) => status).toSorted()).toEqual([201, 409, 409, 409]);
  });

  it('that never came to be gives its email away, and its late Principal is refused', async () => {
    const lost = { userId: 'usr_lost', principalId: 'prn_lost', email: 'sixth@example.test', name: 'Lost', passwordHash: 'none' };
    await createAccountRows(application.database.pool).insert(lost);
    expect(await create({ email: lost.email, password })).toMatchObject({ status: 201 });
    const late = operator.streams.execute(iam, '', { type: 'CreatePrincipal', principalId: lost.principalId, issuer: 'local', subject: lost.userId }, systemContext(operator.installationId));
    await expect(late).rejects.toMatchObject({ code: 'RESOURCE_CONFLICT' });
    expect(await signIn(lost.email)).toMatchObject({ status: 200 });
  });

  it.each([
    [{ email: 'no-address', password }, '/email'],
    [{ email: 'a@b', password: 'short' }, '/password'],
    [{ email: 'a@b', password, name: '' }, '/name'],
    [{ email: 'a@b', password, github: { subject: '0' } }, '/github/subject'],
    [{ email: 'a@b', password, admin: true }, '/admin'],
  ])('%j is refused by its shape', async (body, path) => expect(await create(body)).toMatchObject({ status: 400, details: [{ path }] }));

  it('for GitHub is a conflict: nobody signs in that way here', async () => expect(await create({ email: 'a@b', password, github: { subject: '1' } })).toMatchObject({ status: 409, code: 'RESOURCE_CONFLICT' }));
});

const controls: readonly [method: string, path: string, body: object | undefined][] = [
  ['GET', '/api/auth/accounts/usr_1', undefined],
  ['POST', '/api/auth/accounts/usr_1/disable', { expectedVersion: 1 }],
  ['POST', '/api/auth/accounts/usr_1/enable', { expectedVersion: 1 }],
  ['POST', '/api/auth/accounts/usr_1/enrol', undefined],
  ['POST', '/api/auth/accounts/usr_1/revoke', { expectedVersion: 1 }],
  ['POST', '/api/auth/accounts/usr_1/methods/password/detach', { expectedVersion: 1 }],
  ['POST', '/api/auth/accounts/usr_1/providers/github', { expectedVersion: 1, subject: '1' }],
  ['GET', '/api/auth/recovery', undefined],
  ['POST', '/api/auth/recovery', { expectedVersion: 1 }],
];

describe('whoever administers accounts', () => {
  const requests: typeof controls = [['POST', '/api/auth/accounts', { email: 'seventh@example.test', password }], ...controls];

  it.each(requests)('%s %s is for people on a trusted page who administer the Installation', async (method, path, body) => {
    const person = await operator.person();
    expect(await ask(method, `${path}?a=1`, { 'x-api-key': application.key }, body), 'a key').toMatchObject({ status: 401, code: 'UNAUTHENTICATED' });
    expect(await ask(method, path, {}, body), 'nobody').toMatchObject({ status: 401 });
    expect(await ask(method, path, { cookie: administrator.cookie }, body), 'no Origin').toMatchObject({ status: 403, message: 'A trusted browser origin is required' });
    const denied = await ask(method, path, pageHeaders(person.cookie), body);
    expect(denied).toMatchObject({ status: 403, code: 'FORBIDDEN' });
    expect(await eventsOf(application.database, denied.requestId)).toMatchObject([{ type: 'AuthorizationDenied', metadata: { audit: { authorization: { principalId: person.id, action: 'administer' } } } }]);
  });

  it.each(controls)('%s %s needs external sign-in', async (method, path, body) => {
    expect(await ask(method, path, pageHeaders(administrator.cookie), body)).toMatchObject({ status: 409, code: 'RESOURCE_CONFLICT' });
  });
});
