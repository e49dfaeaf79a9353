/** Service keys over both edges: who may issue and revoke them, for whom, and what is left when a step fails. (iam-auth-audit 1.6, rest-contract 3.10) */
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { iam } from '../../src/aggregates.ts';
import { systemContext } from '../../src/installation/bootstrap.ts';
import { startTestApplication, type TestApplication } from '../support/app.ts';
import { openOperator, permissionOf, type TestOperator, type TestPrincipal } from '../support/principals.ts';
import { auditOf, eventsOf } from '../support/request-events.ts';
import { edges, send, useCases as use, type Answer, type EdgeName, type UseCase } from '../support/use-cases.ts';
import { until } from '../support/until.ts';
import { openReplica, type Replica } from '../scenarios/replica.ts';

let application: TestApplication;
let operator: TestOperator;
let replica: Replica;
let served: Awaited<ReturnType<Replica['serve']>>;
let namespaceId: string;
/** May administer the Installation, and read Agents in the Namespace. */
let issuer: TestPrincipal;
/** May do nothing. */
let human: string;

beforeAll(async () => {
  application = await startTestApplication({ env: { EXUVIA_ROLES: 'api,projector' } });
  operator = await openOperator(application);
  replica = await openReplica(application);
  served = await replica.serve();
  namespaceId = replica.installation.defaultNamespaceId;
  issuer = await operator.principal();
  human = (await operator.person()).id;
  await issuer.grant([permissionOf('installation:administer')]);
  await issuer.grant([permissionOf('agent:read')], { namespaceId });
});
afterAll(async () => {
  await served?.close();
  await replica?.close();
  await operator?.close();
  await application?.close();
});

interface Key {
  readonly id: string;
  readonly servicePrincipalId: string;
  readonly namespaceId?: string | null;
  readonly name: string;
  readonly expiresAt: string;
  readonly key: string;
}

const invalid = (path: string, code = 'INVALID_VALUE') => ({ code: 'INVALID_REQUEST', status: 400, details: [{ path, code }] });
const keyRows = async (): Promise<readonly string[]> => (await application.database.pool.query<{ key_id: string }>('select key_id from service_key order by key_id')).rows.map(({ key_id }) => key_id);
const records = async ({ requestId }: Answer) => auditOf(await eventsOf(application.database, requestId));

describe.each(edges)('over %s', (edge: EdgeName) => {
  const ask = (useCase: UseCase, key = issuer.key, origin = application.origin) => send(edge, origin, useCase, key);
  const issue = async (input: object, key?: string): Promise<Key> => {
    const { code, message, data } = await ask(use.issueServiceKey(input), key);
    expect({ code, message }).toEqual({ code: null, message: null });
    return data as Key;
  };
  const lets = async (key: string): Promise<string | null> => (await ask(use.getAgent({ namespaceId, agentId: 'agt_00000000-0000-4000-8000-000000000000' }), key)).code;
  let target: string;
  beforeEach(async () => {
    target = await operator.createServicePrincipal({ namespaceId });
    await operator.bind(target, await operator.createRole([permissionOf('agent:read')], { namespaceId }), { namespaceId });
  });

  it('a key works at once as its principal, until it is revoked', async () => {
    const input = { servicePrincipalId: target, namespaceId, name: 'ci', expiresIn: 86_400 };
    const answer = await ask(use.issueServiceKey(input));
    const key = answer.data as Key;
    expect(key).toEqual({ id: key.id, servicePrincipalId: target, namespaceId, name: 'ci', expiresAt: key.expiresAt, key: key.key });
    const remainingMs = Date.parse(key.expiresAt) - Date.now();
    expect(Math.abs(remainingMs - 86_400_000)).toBeLessThan(60_000);
    expect(await records(answer)).toEqual([
      {
        kind: 'mutation',
        outcome: 'success',
        action: 'openclaw.auth.service-keys.create',
        resource: { kind: 'namespace', id: namespaceId, namespaceId },
        authorization: { principalId: issuer.id, action: 'administer', resource: { kind: 'installation', id: operator.installationId } },
        details: { keyId: key.id, servicePrincipalId: target, expiresAt: key.expiresAt },
      },
    ]);
    expect(await lets(key.key)).toBe('NOT_FOUND');
    const revoked = await ask(use.revokeServiceKey(key.id));
    expect(revoked.code).toBeNull();
    if (edge === 'REST') expect(revoked).toMatchObject({ status: 200, data: { id: key.id, revoked: true } });
    expect(await records(revoked)).toMatchObject([{ action: 'openclaw.auth.service-keys.revoke', outcome: 'success', details: { keyId: key.id, servicePrincipalId: target } }]);
    expect(await lets(key.key)).toBe('UNAUTHENTICATED');
    expect(await keyRows()).not.toContain(key.id);
    expect(await ask(use.revokeServiceKey(key.id))).toMatchObject({ code: 'NOT_FOUND', status: 404 });
  });

  it('the text of a key is in that one answer and nowhere else', async () => {
    const { key } = await issue({ servicePrincipalId: target, namespaceId, name: 'ci' });
    const secret = key.split('.').at(-1)!;
    const { rows } = await application.database.pool.query<{ found: boolean }>(`select exists (select from event where data like $1 or metadata like $1) as found`, [`%${secret}%`]);
    expect(rows).toEqual([{ found: false }]);
  });

  it('without a lifetime it lasts 30 days, and an Installation-wide principal has an Installation-wide key', async () => {
    const key = await issue({ servicePrincipalId: issuer.id, name: 'mine' });
    expect(key.namespaceId ?? undefined).toBeUndefined();
    expect(Math.abs(Date.parse(key.expiresAt) - Date.now() - 30 * 86_400_000)).toBeLessThan(60_000);
    expect((await ask(use.revokeServiceKey(key.id), key.key)).code).toBeNull();
  });

  it.each([
    ['an unknown principal', () => ({ servicePrincipalId: 'spn_1' }), '/servicePrincipalId'],
    ['a human', () => ({ servicePrincipalId: human, namespaceId: undefined }), '/servicePrincipalId'],
    ['a principal of a Namespace that is not named', () => ({ namespaceId: undefined }), '/namespaceId'],
    ['a principal of another scope', () => ({ servicePrincipalId: issuer.id }), '/namespaceId'],
    ['a principal of another Namespace', () => ({ namespaceId: 'ns_00000000-0000-4000-8000-000000000000' }), '/namespaceId'],
    ['a lifetime under a day', () => ({ expiresIn: 86_399 }), '/expiresIn'],
    ['a lifetime over a year', () => ({ expiresIn: 31_536_001 }), '/expiresIn'],
    ['an empty name', () => ({ name: '' }), '/name'],
  ])('no key for %s', async (_, more, path) => {
    const rows = await keyRows();
    const answer = await ask(use.issueServiceKey({ servicePrincipalId: target, namespaceId, name: 'ci', ...more() }));
    expect(answer).toMatchObject({ code: 'INVALID_REQUEST', status: 400 });
    expect(answer.details[0]).toEqual(invalid(path).details[0]);
    expect(await records(answer)).toEqual([]);
    expect(await keyRows()).toEqual(rows);
  });

  it.each([
    ['a blank name', { name: '  ' }, '/name', 'INVALID_FORMAT'],
    ['a name of 33 characters', { name: 'n'.repeat(33) }, '/name', 'TOO_LONG'],
  ])('no key with %s', async (_, more, path, code) => {
    expect(await ask(use.issueServiceKey({ servicePrincipalId: target, namespaceId, ...more }))).toMatchObject(invalid(path, code));
  });

  it('whoever does not hold all that the principal may do neither issues nor revokes its keys', async () => {
    const key = await issue({ servicePrincipalId: target, namespaceId, name: 'ci' });
    await operator.bind(target, await operator.createRole([permissionOf('agent:deploy')], { namespaceId }), { namespaceId });
    for (const [verb, useCase] of [['create', use.issueServiceKey({ servicePrincipalId: target, namespaceId, name: 'ci' })], ['revoke', use.revokeServiceKey(key.id)]] as const) {
      const answer = await ask(useCase);
      expect(answer).toMatchObject({ code: 'FORBIDDEN', status: 403, message: 'You do not have permission for this operation', details: [] });
      expect(await records(answer)).toMatchObject([
        {
          kind: 'authorization_denial',
          outcome: 'denied',
          action: `openclaw.auth.service-keys.${verb}`,
          reasonCode: 'SERVICE_PRINCIPAL_GRANTS_NOT_COVERED',
          resource: { kind: 'installation', id: operator.installationId },
          authorization: { principalId: issuer.id, action: 'administer' },
          details: { servicePrincipalId: target },
        },
      ]);
    }
    expect(await lets(key.key)).toBe('NOT_FOUND');
  });

  it('a key of a Namespace never manages keys, whatever its principal may do', async () => {
    const local = await operator.principal({ namespaceId });
    await operator.bind(local.id, await operator.createRole([permissionOf('installation:administer')], { namespaceId }), { namespaceId });
    for (const useCase of [use.issueServiceKey({ servicePrincipalId: local.id, namespaceId, name: 'ci' }), use.revokeServiceKey(local.keyId)]) {
      expect(await ask(useCase, local.key)).toMatchObject({ code: 'FORBIDDEN', status: 403 });
    }
  });

  it('a key whose principal has another scope by now is refused, lists included', async () => {
    const { id, key } = await operator.principal();
    await operator.bind(id, await operator.createRole([permissionOf('namespace:read'), permissionOf('agent:read')], { namespaceId }), { namespaceId });
    expect([await lets(key), (await ask(use.listNamespaces(), key)).data]).toMatchObject(['NOT_FOUND', [{ id: namespaceId }]]);
    const moved = { type: 'ServicePrincipalCreated', data: { servicePrincipalId: id, namespaceId } } as const;
    await operator.streams.append(iam, await operator.streams.load(iam, ''), [moved], systemContext(operator.installationId));
    for (const useCase of [use.listNamespaces(), use.getAgent({ namespaceId, agentId: 'agt_00000000-0000-4000-8000-000000000000' })]) {
      const answer = await ask(useCase, key);
      expect(answer).toMatchObject({ code: 'FORBIDDEN', status: 403 });
      expect(await records(answer)).toMatchObject([{ kind: 'authorization_denial', details: { decisionReason: 'The principal has another scope than the key' } }]);
    }
  });

  it('AZ-202: a key whose issue cannot be recorded is not shown, and no row of it is left', async () => {
    const rows = await keyRows();
    const useCase = use.issueServiceKey({ servicePrincipalId: target, namespaceId, name: 'unrecorded' });
    const { requestId: _, ...answer } = await replica.failing('ServiceKeyIssued', () => ask(useCase, issuer.key, served.origin));
    expect(answer).toEqual({ status: 503, code: 'DEPENDENCY_UNAVAILABLE', message: 'A required dependency is unavailable', details: [], data: null });
    expect(await keyRows()).toEqual(rows);
  });

  it('a key whose revocation cannot be recorded is of no use either, and is revoked when asked again', async () => {
    const key = await issue({ servicePrincipalId: target, namespaceId, name: 'doomed' });
    const asKey = async () => (await ask(use.getNamespace(namespaceId), key.key, served.origin)).code;
    expect([await asKey(), await lets(key.key)]).toEqual(['FORBIDDEN', 'NOT_FOUND']);
    expect(await replica.failing('ServiceKeyRevoked', () => ask(use.revokeServiceKey(key.id), issuer.key, served.origin))).toMatchObject({ status: 503, code: 'DEPENDENCY_UNAVAILABLE' });
    expect(await asKey()).toBe('UNAUTHENTICATED');
    await until('the key to be of no use on the other server', () => lets(key.key), (code) => code === 'UNAUTHENTICATED');
    expect((await ask(use.revokeServiceKey(key.id), issuer.key, served.origin)).code).toBeNull();
  });
});
