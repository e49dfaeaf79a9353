/** `exuvia iam` and `exuvia key` as the operator runs them: processes of their own, beside a running server and without one. (iam-auth-audit 4.2, 4.4, 8.1) */
import { mkdtemp, readFile, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import type { Metadata } from '../../src/kernel/event.ts';
import { newId } from '../../src/kernel/ids.ts';
import { startTestApplication, type TestApplication } from '../support/app.ts';
import { createClient } from '../support/client.ts';
import { openOperator, type TestOperator } from '../support/principals.ts';
import { runToEnd, startServer, type Environment } from '../support/server.ts';

// Each command is a Node process of its own.
vi.setConfig({ testTimeout: 60_000, hookTimeout: 60_000 });

let application: TestApplication;
let operator: TestOperator;
let env: Environment;
let namespaceId: string;
let administrator: string;
let human: string;
let readerRole: string;

const run = (...args: string[]) => runToEnd(args, env);
/** What a command answers to a program. */
const ask = async <T = Record<string, string>>(...args: string[]): Promise<T> => {
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
  readonly principals: readonly { id: string; kind: string }[];
  readonly groups: readonly { groupId: string; principalIds: readonly string[] }[];
  readonly roles: readonly { roleId: string; name?: string; permissions: readonly object[] }[];
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
  readerRole = (await ask('iam', 'role', 'create', 'namespace:read', 'installation:read', '--name', 'reader')).roleId!;
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
    const { bindingId } = await ask('iam', 'bind', id, readerRole, ...scope());
    expect(await seen()).toEqual(statuses);
    expect((await run('iam', 'unbind', bindingId!)).stdout).toBe(`${bindingId} is deleted\n`);
    expect(await seen()).toEqual([403, 403]);
  });

  it('a Restriction denies everybody until it is deleted', async () => {
    const { restrictionId } = await ask('iam', 'restrict', 'namespace:read', '--on', `namespace:${namespaceId}`);
    expect(await statusOf(application.key, `/namespaces/${namespaceId}`)).toBe(403);
    await ask('iam', 'unrestrict', restrictionId!);
    expect(await statusOf(application.key, `/namespaces/${namespaceId}`)).toBe(200);
  });

  it('a Group is made, filled, bound, emptied and deleted', async () => {
    const [{ groupId }, { roleId }] = await Promise.all([ask('iam', 'group', 'create', 'readers', '--namespace', namespaceId), ask('iam', 'role', 'create', 'agent:create', '--namespace', namespaceId)]);
    await ask('iam', 'group', 'add', groupId!, human);
    const { bindingId } = await ask('iam', 'bind', groupId!, roleId!, '--namespace', namespaceId);
    const { groups, bindings } = await ask<Overview>('iam', 'list', '--namespace', namespaceId);
    expect(groups).toEqual([{ groupId, name: 'readers', namespaceId, principalIds: [human] }]);
    expect(bindings).toEqual([{ bindingId, subjectKind: 'group', subjectId: groupId, roleId, namespaceId }]);
    expect(await refusal('iam', 'group', 'delete', groupId!)).toEqual(sentence('The Group is still bound'));
    await ask('iam', 'unbind', bindingId!);
    await ask('iam', 'group', 'remove', groupId!, human);
    await ask('iam', 'group', 'delete', groupId!);
    await ask('iam', 'role', 'delete', roleId!);
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

  it('a name cannot write over what is listed beside it', async () => {
    const { id } = await operator.principal();
    const issued = await application.client.rest<{ id: string }>('POST', '/api/auth/service-keys', { servicePrincipalId: id, name: 'ci\n\u001b[2K' });
    const { stdout } = await run('iam', 'list');
    expect(stdout).toContain(`${issued.data.id}  ci\ufffd\ufffd[2K of ${id}`);
  });

  it('every change is an audited event of the operator, and no key is in it', async () => {
    const { servicePrincipalId } = await ask('iam', 'principal', 'create', '--namespace', namespaceId);
    const { id, key } = await ask('key', 'issue', servicePrincipalId!);
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
    const nobody = sentence('exuvia: Nobody would hold installation:administer any more\n');
    expect(await refusal('iam', 'restrict', 'installation:administer')).toEqual(nobody);
    const { restrictionId } = await ask('iam', 'restrict', 'installation:administer', '--force');
    await ask('iam', 'unrestrict', restrictionId!);
    const { bindings } = await ask<Overview>('iam', 'list');
    expect(bindings.filter(({ subjectId }) => subjectId === administrator)).toHaveLength(1);
  });

  const unknown = newId('ns');
  it.each<readonly [string, readonly string[], string]>([
    ['a permission without an action', ['iam', 'role', 'create', 'agent'], 'written kind:action'],
    ['an unknown kind', ['iam', 'role', 'create', 'robot:read'], 'There is no kind "robot"'],
    ['an action that nothing checks', ['iam', 'role', 'create', 'configuration:deploy'], 'No operation checks configuration:deploy; on configuration there are create, read, update, delete'],
    ['a malformed id', ['iam', 'unbind', 'bnd_1'], 'bnd_ and a lower-case UUID'],
    ['a malformed target', ['iam', 'bind', newId('spn'), newId('role'), '--on', 'agent'], 'written kind:id'],
    ['a Namespace there is not', ['iam', 'principal', 'create', '--namespace', unknown], `There is no Namespace ${unknown}`],
    ['a subject there is not', ['iam', 'bind', newId('spn'), newId('role')], 'The subject cannot be bound here'],
    ['a service account where a principal is meant', ['iam', 'bind', 'sa_1', newId('role')], 'prn_ or spn_ or grp_'],
    ['a Restriction on another kind', ['iam', 'restrict', 'agent:read', '--on', `namespace:${unknown}`], 'cannot be restricted on a resource of kind namespace'],
    ['a Role with a name that no route takes', ['iam', 'role', 'create', 'agent:read', '--name', ' reader'], 'no white space around it'],
    ['a Group without a name', ['iam', 'group', 'create', ''], 'from 1 to 200 characters'],
    ['a key for nobody', ['key', 'issue'], '--admin'],
    ['a key that lives too long', ['key', 'issue', '--admin', '--days', '366'], 'from 1 to 365 days'],
    ['a key there is not', ['key', 'revoke', newId('key')], 'The service key was not found'],
  ])('%s', async (_, args, expected) => {
    const { code, stdout, stderr } = await run(...args);
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
