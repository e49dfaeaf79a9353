/** The rule of the last administrator, on PostgreSQL and over HTTP: who holds everything and cannot come in does not count. (iam-auth-audit 4.4) */
import { afterAll, beforeAll, expect, it } from 'vitest';
import { iam } from '../../src/aggregates.ts';
import { createOperator, type Operator } from '../../src/iam/operator.ts';
import { everyPermission } from '../../src/iam/permissions.ts';
import { systemContext } from '../../src/installation/bootstrap.ts';
import { newId } from '../../src/kernel/ids.ts';
import { createKeyRows, createWaysIn } from '../../src/postgres/private-rows.ts';
import { startTestApplication, type TestApplication } from '../support/app.ts';
import { createClient } from '../support/client.ts';
import { openOperator, type TestOperator } from '../support/principals.ts';

const hourMs = 3_600_000;
const last = { code: 'RESOURCE_CONFLICT', message: 'The last administrator stays: nobody with a password or a usable key would hold installation:administer any more' };

let application: TestApplication;
/** Does what it is told. */
let unguarded: TestOperator;
let guarded: Operator;
let roleId: string;
let human: { readonly id: string; readonly bindingId: string };
let machine: { readonly id: string; readonly bindingId: string; readonly keyId: string };
beforeAll(async () => {
  application = await startTestApplication({ env: { EXUVIA_ROLES: 'api,projector' } });
  unguarded = await openOperator(application);
  const { pool } = application.database;
  const { streams, installationId } = unguarded;
  guarded = createOperator({ streams, keyRows: createKeyRows(pool), waysIn: createWaysIn(pool), clock: { now: () => Date.now() }, installationId });
  const { administrator, servicePrincipal, role, bindings, serviceKey } = (await streams.load(iam, '')).state.installation!;
  roleId = role.roleId;
  const bindingOf = (id: string) => bindings.find(({ subjectId }) => subjectId === id)!.bindingId;
  human = { id: administrator.principalId, bindingId: bindingOf(administrator.principalId) };
  machine = { id: servicePrincipal.servicePrincipalId, bindingId: bindingOf(servicePrincipal.servicePrincipalId), keyId: serviceKey.keyId };
});
afterAll(async () => {
  await unguarded?.close();
  await application?.close();
});

const withAdministrator = async (id: string, act: (bindingId: string) => Promise<void>) => {
  const bindingId = await unguarded.bind(id, roleId, {});
  await act(bindingId);
  await unguarded.unbind(bindingId);
};
const revoke = (key: string, keyId: string) => createClient(application.origin, key).rest('DELETE', `/api/auth/service-keys/${keyId}`);

it('the first human and the first key stand for each other, and the last of them stays', async () => {
  await guarded.unbind(human.bindingId);
  await expect(guarded.unbind(machine.bindingId)).rejects.toMatchObject(last);
  await expect(guarded.revokeKey(machine.keyId)).rejects.toMatchObject(last);
  await expect(guarded.restrict({ action: 'administer', resourceKind: 'installation' }, {})).rejects.toMatchObject(last);
  expect((await application.client.rest('GET', '/installation')).status).toBe(200);
});

it.each<readonly [string, () => Promise<string>]>([
  ['a service principal without a key', () => unguarded.createServicePrincipal()],
  [
    'one whose only key has expired',
    async () => {
      const id = await unguarded.createServicePrincipal();
      await unguarded.issueKey(id, { name: 'old', lifetimeMs: -hourMs });
      return id;
    },
  ],
  [
    'one whose only key lost its row',
    async () => {
      const { id, keyId } = await unguarded.principal();
      await createKeyRows(application.database.pool).erase(keyId);
      return id;
    },
  ],
  [
    'one whose only key is revoked',
    async () => {
      const { id, keyId } = await unguarded.principal();
      await unguarded.revokeKey(keyId);
      return id;
    },
  ],
  [
    'a human without an account',
    async () => {
      const principalId = newId('prn');
      await unguarded.streams.execute(iam, '', { type: 'CreatePrincipal', principalId, issuer: 'local', subject: newId('usr') }, systemContext(unguarded.installationId));
      return principalId;
    },
  ],
  [
    'a human whose password the history does not name',
    async () => {
      const { id } = await unguarded.person();
      await unguarded.streams.execute(iam, '', { type: 'ReplacePassword', principalId: id, passwordId: newId('pwd') }, systemContext(unguarded.installationId));
      return id;
    },
  ],
])('%s does not stand for it', async (_, make) => {
  await withAdministrator(await make(), async () => {
    await expect(guarded.unbind(machine.bindingId)).rejects.toMatchObject(last);
    await expect(guarded.revokeKey(machine.keyId)).rejects.toMatchObject(last);
  });
});

it.each<readonly [string, () => Promise<string>]>([
  ['a person with an account', async () => (await unguarded.person()).id],
  ['a service principal with a key', async () => (await unguarded.principal()).id],
])('%s stands for it', async (_, make) => {
  await withAdministrator(await make(), async (bindingId) => {
    await guarded.unbind(machine.bindingId);
    await expect(guarded.unbind(bindingId)).rejects.toMatchObject(last);
    machine = { ...machine, bindingId: await unguarded.bind(machine.id, roleId, {}) };
  });
});

it('the last member of a Group that administers stays in it', async () => {
  const groupId = await unguarded.createGroup('administrators');
  const people = [(await unguarded.person()).id, (await unguarded.person()).id] as const;
  for (const id of people) await unguarded.addMember(groupId, id);
  const bindingId = await unguarded.bind(groupId, roleId, {});
  await guarded.unbind(machine.bindingId);
  await guarded.removeMember(groupId, people[0]);
  await expect(guarded.removeMember(groupId, people[1])).rejects.toMatchObject(last);
  machine = { ...machine, bindingId: await guarded.bind(machine.id, roleId, {}) };
  await guarded.unbind(bindingId);
});

it('over HTTP the key of the last administrator revokes itself only when another can come in', async () => {
  const refused = await revoke(application.key, machine.keyId);
  expect(refused).toMatchObject({ status: 409, error: last });
  const { keyId, text } = await guarded.issueKey(machine.id, { name: 'another', lifetimeMs: hourMs });
  expect((await revoke(application.key, machine.keyId)).status).toBe(200);
  expect(await revoke(text, keyId)).toMatchObject({ status: 409, error: last });
  await guarded.bind(human.id, await guarded.createRole(everyPermission), {});
  expect((await revoke(text, keyId)).status).toBe(200);
});

it('where nobody can come in already nothing is refused, and the operator makes a way back', async () => {
  const { bindings } = (await unguarded.streams.load(iam, '')).state;
  for (const { bindingId } of bindings.values()) await unguarded.unbind(bindingId);
  await guarded.deleteRole(roleId);
  const id = await guarded.createServicePrincipal();
  const { text } = await guarded.issueKey(id, { name: 'back', lifetimeMs: hourMs });
  await guarded.bind(id, await guarded.createRole(everyPermission), {});
  expect((await createClient(application.origin, text).rest('GET', '/installation')).status).toBe(200);
});
