/** Namespace passes: a place on Compute is made, and taken away once. */
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { iam, namespaces } from '../../src/aggregates.ts';
import { newId } from '../../src/kernel/ids.ts';
import { workKey } from '../../src/kernel/work.ts';
import { createDatabase, type TestDatabase } from '../support/database.ts';
import { until } from '../support/until.ts';
import { createWorld, type World } from '../support/work-world.ts';

let database: TestDatabase | undefined;
let world: World;

beforeEach(async () => {
  database ??= await createDatabase();
  await database.pool.query('delete from work_item');
  world = await createWorld(database);
});
afterEach(() => world.stopWorkers());

const statusOf = async (namespaceId: string) => (await world.streams.load(namespaces, namespaceId)).state.status;

const create = async () => {
  const namespaceId = newId('ns');
  await world.happened(namespaces, namespaceId, [{ type: 'NamespaceCreated', data: { namespaceId, name: 'second' } }]);
  const key = await world.offer({ key: workKey.namespaceReady(namespaceId), lane: namespaceId, kind: 'namespace-ready', namespaceId });
  return { namespaceId, key };
};

const remove = async () => {
  const { namespaceId } = world;
  await world.happened(namespaces, namespaceId, [{ type: 'NamespaceDeletionRequested', data: { namespaceId } }]);
  return world.offer({ key: workKey.namespaceDeletion(namespaceId), lane: namespaceId, kind: 'namespace-deletion' });
};

describe('a new Namespace', () => {
  it('becomes ready', async () => {
    const { namespaceId, key } = await create();
    world.startWorker();
    expect(await world.untilFinished(key)).toMatchObject({ state: 'succeeded', code: 'NAMESPACE_READY' });
    expect(await statusOf(namespaceId)).toBe('ready');
  });

  it('fails for good when Compute refuses it, and when its attempts are used up', async () => {
    world.driver.ensureNamespace = async (namespaceId) => ({ namespaceId, done: false, failure: 'permanent' });
    const refused = await create();
    world.startWorker();
    expect(await world.untilFinished(refused.key)).toMatchObject({ state: 'failed_permanent', code: 'NAMESPACE_REFUSED' });
    expect(await statusOf(refused.namespaceId)).toBe('failed');
    world.driver.ensureNamespace = async (namespaceId) => ({ namespaceId, done: false, failure: 'retryable' });
    const unlucky = await create();
    expect(await world.untilFinished(unlucky.key)).toEqual({ state: 'failed_permanent', code: 'DEPENDENCY_UNAVAILABLE', attempts: 3 });
    expect(await statusOf(unlucky.namespaceId)).toBe('failed');
  });

  it('fails when the last attempt at it was lost, before its row ends', async () => {
    world.driver.ensureNamespace = () => world.held.then(() => Promise.reject(new Error('late')));
    const { namespaceId, key } = await create();
    world.startWorker({ maxAttempts: 1 });
    await world.untilRow(key, 'claimed', (row) => row?.state === 'claimed');
    await until('the end', async () => (await world.expireClaims(), world.rowOf(key)), (row) => row?.state === 'failed_permanent');
    expect(await world.rowOf(key)).toMatchObject({ code: 'LEASE_EXPIRED' });
    expect(await statusOf(namespaceId)).toBe('failed');
  });
});

describe('a Namespace that is to be deleted', () => {
  it('goes, with the policy that named it', async () => {
    const key = await remove();
    world.startWorker();
    expect(await world.untilFinished(key)).toMatchObject({ code: 'NAMESPACE_DELETED' });
    expect(await statusOf(world.namespaceId)).toBe('removed');
    expect((await world.streams.load(iam, '')).state.removed.has(world.namespaceId)).toBe(true);
  });

  it('goes all the same when its policy was removed and the process died before the end', async () => {
    const key = await remove();
    world.startWorker(world.dying('namespace-deletion:unbound'));
    await until('the policy gone', async () => (await world.streams.load(iam, '')).state.removed.has(world.namespaceId), Boolean);
    await world.happened(iam, '', [{ type: 'AccessBindingDeleted', data: { bindingId: world.bindingId } }]);
    await world.expireClaims();
    world.startWorker();
    expect(await world.untilFinished(key)).toMatchObject({ code: 'NAMESPACE_DELETED' });
  });

  it('takes its service principals and their keys along, also when the process dies half way', async () => {
    const { namespaceId } = world;
    const [mine, other] = [newId('spn'), newId('spn')];
    const keyOf = (servicePrincipalId: string, place: object) => ({ keyId: newId('key'), servicePrincipalId, name: 'k', expiresAt: '2030-01-01T00:00:00.000Z', ...place });
    const many = Array.from({ length: 150 }, () => newId('spn'));
    await world.happened(iam, '', [
      ...[mine, ...many].map((servicePrincipalId) => ({ type: 'ServicePrincipalCreated', data: { servicePrincipalId, namespaceId } }) as const),
      { type: 'ServiceKeyIssued', data: keyOf(mine, { namespaceId }) },
      { type: 'ServicePrincipalCreated', data: { servicePrincipalId: other } },
      { type: 'ServiceKeyIssued', data: keyOf(other, {}) },
    ]);
    const erased: string[] = [];
    const erasePrincipalRows = async (id: string) => void erased.push(id);
    const key = await remove();
    world.startWorker({ ...world.dying('namespace-deletion:rows-erased'), deps: { erasePrincipalRows } });
    await until('the first rows erased', () => Promise.resolve(erased.length), (count) => count === 100);
    await world.expireClaims();
    world.startWorker({ deps: { erasePrincipalRows } });
    expect(await world.untilFinished(key)).toMatchObject({ code: 'NAMESPACE_DELETED' });
    const { identities, keys, breaches } = (await world.streams.load(iam, '')).state;
    expect([...identities.values()].filter((identity) => identity.namespaceId === namespaceId)).toEqual([]);
    expect([...keys.values()].map(({ servicePrincipalId }) => servicePrincipalId)).toContain(other);
    expect([...keys.values()].map(({ servicePrincipalId }) => servicePrincipalId)).not.toContain(mine);
    expect(new Set(erased)).toEqual(new Set([mine, ...many]));
    expect(breaches.isEmpty()).toBe(true);
  });

  it('stays deleting when its actor may not delete it any more', async () => {
    const key = await remove();
    await world.happened(iam, '', [{ type: 'AccessBindingDeleted', data: { bindingId: world.bindingId } }]);
    world.startWorker();
    expect(await world.untilFinished(key)).toMatchObject({ state: 'failed_permanent', code: 'AUTHORIZATION_DENIED' });
    expect(await statusOf(world.namespaceId)).toBe('deleting');
  });
});
