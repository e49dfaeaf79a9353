/** `exuvia iam` and `exuvia key` as the operator runs them: processes of their own, beside a running server and without one. (iam-auth-audit 4.2, 4.4, 8.1) */
import { mkdtemp, readFile, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Metadata } from '../../src/kernel/event.ts';
import { newId } from '../../src/kernel/ids.ts';
import { startTestApplication, type TestApplication } from '../support/app.ts';
import { createClient } from '../support/client.ts';
import { openOperator, type TestOperator } from '../support/principals.ts';
import { runToEnd, startServer, type Environment } from '../support/server.ts';

// Each command is a Node process of its own.

let application: TestApplication;
let operator: TestOperator;
let env: Environment;
let namespaceId: string;
let administrator: string;
let human: string;
let readerRole: string;
let elsewhere: string;

const run = (...args: string[]) => runToEnd(args, env);
/** What a command answers to a program. */
const ask = async <T = { readonly id: string; readonly key?: string }>(...args: string[]): Promise<T> => {
  const { code, stdout, stderr } = await run(...args, '--json');
  if (code !== 0) throw new Error(`exuvia ${args.join(' ')} ended with ${code}: ${stderr}`);
  return JSON.parse(stdout) as T;
};
const refusal = async (...args: string[]) => {
  const { code, stdout, stderr } = await run(...args);
  return { code, stdout, stderr };
};
const sentence = (text: string) => ({ code: 1, stdout: '', stderr: expect.stringContaining(text) as string });
const statusOf = async (key: string, path: string): Promise<number> => (await createClient(application.origin, key).rest('GET', path)).status;

interface Overview {
  readonly principals: readonly { id: string; kind: string; email?: string }[];
  readonly groups: readonly { id: string; principalIds: readonly string[] }[];
  readonly roles: readonly { id: string; name?: string; permissions: readonly object[] }[];
  readonly bindings: readonly Record<string, string>[];
  readonly restrictions: readonly Record<string, string>[];
  readonly keys: readonly Record<string, string>[];
}

beforeAll(async () => {
  application = await startTestApplication();
  operator = await openOperator(application);
  env = { OCC_DATABASE_URL: application.database.url, EXUVIA_DATA_DIR: application.dataDir };
  namespaceId = (await application.client.rest<{ id: string }[]>('GET', '/namespaces')).data[0]!.id;
  const { principals } = await ask<Overview>('iam', 'list');
  administrator = principals.find(({ kind }) => kind === 'service_principal')!.id;
  human = principals.find(({ kind }) => kind === 'principal')!.id;
  readerRole = (await ask('iam', 'role', 'create', 'namespace:read', 'installation:read', '--name', 'reader')).id;
  elsewhere = await operator.createGroup('everywhere');
});
afterAll(async () => {
  await operator?.close();
  await application?.close();
});

describe('beside a running server', () => {
  it.each<readonly [string, () => readonly string[], namespace: number, installation: number]>([
    ['everywhere', () => [], 200, 200],
    ['in a Namespace', () => ['--namespace', namespaceId], 200, 403],
    ['on a resource of a Namespace', () => ['--namespace', namespaceId, '--on', `namespace:${namespaceId}`], 200, 403],
    ['on a resource of any Namespace', () => ['--on', `namespace:${namespaceId}`], 200, 403],
  ])('a Role is granted %s, and the very next request sees it come and go', async (_, scope, ...statuses) => {
    const { id, key } = await operator.principal();
    const seen = async () => [await statusOf(key, `/namespaces/${namespaceId}`), await statusOf(key, '/installation')];
    expect(await seen()).toEqual([403, 403]);
    const { id: bindingId } = await ask('iam', 'bind', id, readerRole, ...scope());
    expect(await seen()).toEqual(statuses);
    expect((await run('iam', 'unbind', bindingId)).stdout).toBe(`${bindingId} is deleted\n`);
    expect(await seen()).toEqual([403, 403]);
  });

  it('a Restriction denies everybody until it is deleted', async () => {
    const { id } = await ask('iam', 'restrict', 'namespace:read', '--on', `namespace:${namespaceId}`);
    expect(await statusOf(application.key, `/namespaces/${namespaceId}`)).toBe(403);
    await ask('iam', 'unrestrict', id);
    expect(await statusOf(application.key, `/namespaces/${namespaceId}`)).toBe(200);
  });

  it('a Group is made, filled, bound, emptied and deleted', async () => {
    const [{ id: groupId }, { id: roleId }] = await Promise.all([ask('iam', 'group', 'create', 'readers', '--namespace', namespaceId), ask('iam', 'role', 'create', 'agent:create', '--namespace', namespaceId)]);
    await ask('iam', 'group', 'add', groupId, human);
    const { id: bindingId } = await ask('iam', 'bind', groupId, roleId, '--namespace', namespaceId);
    const { groups, bindings } = await ask<Overview>('iam', 'list', '--namespace', namespaceId);
    expect(groups).toEqual([{ id: groupId, name: 'readers', namespaceId, principalIds: [human] }]);
    expect(bindings).toEqual([{ id: bindingId, subjectKind: 'group', subjectId: groupId, roleId, namespaceId }]);
    expect(await refusal('iam', 'group', 'delete', groupId)).toEqual(sentence('The Group is still bound'));
    await ask('iam', 'unbind', bindingId);
    await ask('iam', 'group', 'remove', groupId, human);
    await ask('iam', 'group', 'delete', groupId);
    await ask('iam', 'role', 'delete', roleId);
    expect(await ask<Overview>('iam', 'list', '--namespace', namespaceId)).toMatchObject({ groups: [], bindings: [], roles: [] });
  });

  it('an auditor is made in one line, and once', async () => {
    const { id, client } = await operator.principal();
    const first = await ask('iam', 'auditor', id);
    expect(await ask('iam', 'auditor', id)).toEqual(first);
    const { data, errors } = await client.graphql<{ eventHistory: { nodes: readonly unknown[] } }>('{ eventHistory(first: 1) { nodes { type } } }');
    expect(errors).toBeUndefined();
    expect(data.eventHistory.nodes).toHaveLength(1);
  });

  it('an administrator key is shown once, or written to a new file of its owner, and ends when it is revoked', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'exuvia-key-'));
    const file = join(folder, 'key.json');
    const [shown, told] = await Promise.all([run('key', 'issue', '--admin'), run('key', 'issue', '--admin', '--file', file)]);
    const { data } = JSON.parse(await readFile(file, 'utf8')) as { data: { id: string; key: string } };
    expect((await stat(file)).mode & 0o777).toBe(0o600);
    expect(told.stdout).toContain(data.id);
    expect(told.stdout + told.stderr + shown.stderr).not.toContain(data.key);
    expect(shown.stdout).toMatch(/^exk\.key_[0-9a-f-]{36}\.[\w-]{43}\n$/);
    for (const key of [shown.stdout.trim(), data.key]) expect((await createClient(application.origin, key).rest('POST', '/namespaces', { name: `by-${key.slice(8, 16)}` })).status).toBe(201);
    expect(await refusal('key', 'issue', '--admin', '--file', file)).toEqual(sentence(`${file} exists already`));
    await ask('key', 'revoke', data.id);
    expect(await statusOf(data.key, '/installation')).toBe(401);
    await rm(folder, { recursive: true });
  });

  it('lists tell everything in the order of its creation, and people by their email', async () => {
    const order = async (make: () => Promise<string>, count: number) => {
      const ids: string[] = [];
      while (ids.length < count) ids.push(await make());
      return ids;
    };
    const at = { namespaceId: (await application.client.rest<{ id: string }>('POST', '/namespaces', { name: `listed-${newId('ns').slice(3, 11)}` })).data.id };
    const made = {
      principals: await order(() => operator.createServicePrincipal(at), 10),
      groups: await order(() => operator.createGroup('a group', at), 10),
      roles: await order(() => operator.createRole([{ action: 'read', resourceKind: 'agent' }], at), 10),
      restrictions: await order(() => operator.restrict({ action: 'read', resourceKind: 'agent' }, at), 10),
    };
    const keys = await order(async () => (await operator.issueKey(made.principals[0]!, { name: 'k', lifetimeMs: 3_600_000 })).keyId, 10);
    const bindings = await order(() => operator.bind(made.principals[0]!, made.roles[0]!, at), 10);
    const listed = await ask<Readonly<Record<string, readonly { id: string }[]>>>('iam', 'list', '--namespace', at.namespaceId);
    const everything = Object.entries({ ...made, keys, bindings });
    expect(Object.fromEntries(everything.map(([kind]) => [kind, listed[kind]!.map(({ id }) => id)]))).toEqual(Object.fromEntries(everything));

    const person = await operator.person();
    const row = (await ask<Overview>('iam', 'list')).principals.find(({ id }) => id === person.id);
    expect(row).toEqual({ id: person.id, kind: 'principal', email: expect.stringMatching(/^usr_.*@example\.test$/) as string, name: 'A person' });
    const { stdout } = await run('iam', 'principals');
    expect(stdout).toContain(`${person.id}  ${row!.email!}, A person\n`);
    expect(stdout).toContain(`${human}  admin@exuvia.local, Administrator\n`);
  });

  it('a name cannot write over what is listed beside it', async () => {
    const { id } = await operator.principal();
    const issued = await application.client.rest<{ id: string }>('POST', '/api/auth/service-keys', { servicePrincipalId: id, name: 'ci\n\u001b[2K' });
    const { stdout } = await run('iam', 'list');
    expect(stdout).toContain(`${issued.data.id}  ci\ufffd\ufffd[2K of ${id}`);
  });

  it('every change is an audited event of the operator, and no key is in it', async () => {
    const { id: servicePrincipalId } = await ask('iam', 'principal', 'create', '--namespace', namespaceId);
    const { id, key } = await ask('key', 'issue', servicePrincipalId);
    const { rows } = await application.database.pool.query<{ type: string; metadata: string; data: string }>(`select type, metadata, data from event where stream like '%.iam' and data like $1`, [`%${servicePrincipalId}%`]);
    expect(rows.map(({ type }) => type)).toEqual(['ServicePrincipalCreated', 'ServiceKeyIssued']);
    for (const { metadata, data } of rows) {
      const { actor, audit } = JSON.parse(metadata) as Metadata;
      expect(actor).toEqual({ principalId: 'operator', kind: 'system' });
      expect(audit).toMatchObject({ kind: 'mutation', outcome: 'success', resource: { kind: 'namespace', id: namespaceId } });
      expect(metadata + data).not.toContain(key!.split('.').at(-1));
    }
    expect(rows[1]!.data).toContain(id);
  });
});

describe('the operator is told in one sentence', () => {
  it('what would lock everybody out, and does it only when he insists', async () => {
    const nobody = sentence('exuvia: The last administrator stays: nobody with a password or a usable key would hold installation:administer any more\n');
    expect(await refusal('iam', 'restrict', 'installation:administer')).toEqual(nobody);
    const { id } = await ask('iam', 'restrict', 'installation:administer', '--force');
    await ask('iam', 'unrestrict', id);
    const { bindings } = await ask<Overview>('iam', 'list');
    expect(bindings.filter(({ subjectId }) => subjectId === administrator)).toHaveLength(1);
  });

  const unknown = newId('ns');
  it.each<readonly [string, readonly string[] | (() => readonly string[]), string]>([
    ['a permission without an action', ['iam', 'role', 'create', 'agent'], 'written kind:action'],
    ['an unknown kind', ['iam', 'role', 'create', 'robot:read'], 'There is no kind "robot"'],
    ['an action that nothing checks', ['iam', 'role', 'create', 'configuration:deploy'], 'No operation checks configuration:deploy; on configuration there are create, read, update, delete'],
    ['a malformed id', ['iam', 'unbind', 'bnd_1'], 'bnd_ and a lower-case UUID'],
    ['a malformed target', ['iam', 'bind', newId('spn'), newId('role'), '--on', 'agent'], 'written kind:id'],
    ['a Namespace there is not', ['iam', 'principal', 'create', '--namespace', unknown], `There is no Namespace ${unknown}`],
    ['a subject there is not', ['iam', 'bind', newId('spn'), newId('role')], 'There is no such principal'],
    ['a Group where it does not belong', () => ['iam', 'bind', elsewhere, readerRole, '--namespace', namespaceId], 'A Group of the Installation is bound only there, not in ns_'],
    ['a service account where a principal is meant', ['iam', 'bind', 'sa_1', newId('role')], 'prn_ or spn_ or grp_'],
    ['a Restriction on another kind', ['iam', 'restrict', 'agent:read', '--on', `namespace:${unknown}`], 'cannot be restricted on a resource of kind namespace'],
    ['a Role with a name that no route takes', ['iam', 'role', 'create', 'agent:read', '--name', ' reader'], 'no white space around it'],
    ['a Group without a name', ['iam', 'group', 'create', ''], 'from 1 to 200 characters'],
    ['a key for nobody', ['key', 'issue'], '--admin'],
    ['a key that lives too long', ['key', 'issue', '--admin', '--days', '366'], 'from 1 to 365 days'],
    ['a key there is not', ['key', 'revoke', newId('key')], 'The service key was not found'],
  ])('%s', async (_, args, expected) => {
    const { code, stdout, stderr } = await run(...(typeof args === 'function' ? args() : args));
    expect({ code, stdout }).toEqual({ code: 1, stdout: '' });
    expect(stderr).toContain(expected);
    expect(stderr.trim().split('\n'), 'one line').toHaveLength(1);
  });
});

it('works on the embedded database while the server runs and when it is stopped', async () => {
  const dataDir = await mkdtemp(join(tmpdir(), 'exuvia-operator-'));
  const embedded = { EXUVIA_DATA_DIR: dataDir, PORT: '0' };
  const server = await startServer(embedded);
  const { stdout: key } = await runToEnd(['key', 'issue', '--admin'], embedded);
  expect((await createClient(server.origin, key.trim()).rest('GET', '/installation')).status).toBe(200);
  await server.stop();
  const { code, stdout, stderr } = await runToEnd(['iam', 'principals', '--json'], embedded);
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  expect((JSON.parse(stdout) as readonly { kind: string }[]).map(({ kind }) => kind).sort()).toEqual(['principal', 'service_principal', 'service_principal']);
  await rm(dataDir, { recursive: true });
});
