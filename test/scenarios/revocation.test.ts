/** Scenario 3: two administrators race on two servers; once a revocation is answered, its subject changes policy no more, and every change tells by which policy it was judged. */
import { afterAll, beforeAll, expect, it, vi } from 'vitest';
import { iam } from '../../src/aggregates.ts';
import { everyPermission } from '../../src/iam/permissions.ts';
import { systemContext } from '../../src/installation/bootstrap.ts';
import type { Metadata } from '../../src/kernel/event.ts';
import { startTestApplication, type TestApplication } from '../support/app.ts';
import { createClient, type Client } from '../support/client.ts';
import { openOperator, permissionOf, type TestOperator, type TestPrincipal } from '../support/principals.ts';
import { pageHeaders } from '../support/sign-in.ts';
import { openReplica, type Replica } from './replica.ts';

let application: TestApplication;
let operator: TestOperator;
let replica: Replica;
let replicaServer: Awaited<ReturnType<Replica['serve']>>;
let namespaceId: string;
let roleId: string;

/** By how much time is ahead in this process; it never goes back. */
let aheadMs = 0;
const now = performance.now.bind(performance);

beforeAll(async () => {
  vi.spyOn(performance, 'now').mockImplementation(() => now() + aheadMs);
  application = await startTestApplication();
  operator = await openOperator(application);
  replica = await openReplica(application);
  replicaServer = await replica.serve();
  namespaceId = replica.installation.defaultNamespaceId;
  const created = await application.client.rest<{ id: string }>('POST', `/namespaces/${namespaceId}/iam/roles`, { permissions: [{ action: 'read', resourceKind: 'namespace' }] });
  roleId = created.data.id;
});
afterAll(async () => {
  vi.restoreAllMocks();
  await replicaServer?.close();
  await replica?.close();
  await operator?.close();
  await application?.close();
});

/** B, an administrator whose `namespace:read` in the Namespace A can take away over HTTP, as a client of the replica. */
const administratorB = async (): Promise<{ readonly principal: TestPrincipal; readonly client: Client; readonly bindingId: string }> => {
  const principal = await operator.principal();
  await principal.grant([permissionOf('installation:administer')]);
  const bindingId = await operator.bind(principal.id, await operator.createRole([permissionOf('namespace:read')]), { namespaceId, resourceKind: 'namespace', resourceId: namespaceId });
  return { principal, client: createClient(replicaServer.origin, principal.key), bindingId };
};

const somebody = () => ({ subjectKind: 'identity', subjectId: replica.installation.administrator.principalId, roleId, resourceKind: 'namespace', resourceId: namespaceId });
const bindSomebody = (client: Client) => client.rest<{ id: string }>('POST', `/namespaces/${namespaceId}/iam/access-bindings`, somebody());
const revokeByA = (bindingId: string) => application.client.rest('DELETE', `/namespaces/${namespaceId}/iam/access-bindings/${bindingId}`);

/** Events that carry a text, in the order of their streams. */
const eventsWith = async (text: string) => {
  const { rows } = await application.database.pool.query<{ type: string; revision: number; metadata: string }>('select type, revision::integer, metadata from event where metadata like $1 or data like $1 order by position', [`%${text}%`]);
  return rows.map(({ metadata, ...row }) => ({ ...row, metadata: JSON.parse(metadata) as Metadata }));
};
const revocationOf = async (bindingId: string) => (await eventsWith(bindingId)).find(({ type }) => type === 'AccessBindingDeleted')!;

it('scenario 3: a binding that was on its way when its maker was revoked is judged again, and refused', async () => {
  const { client, bindingId } = await administratorB();
  const held = replica.holdNext('AccessBindingCreated');
  const binding = bindSomebody(client);
  await held.reached;
  expect((await revokeByA(bindingId)).status).toBe(204);
  held.release();
  const { status, error, requestId } = await binding;
  expect({ status, code: error.code }).toEqual({ status: 403, code: 'FORBIDDEN' });
  const [denial, ...more] = await eventsWith(requestId);
  expect({ type: denial?.type, more }).toEqual({ type: 'AuthorizationDenied', more: [] });
  expect(denial!.metadata.policyRevision).toBeGreaterThanOrEqual((await revocationOf(bindingId)).revision);
});

const revokeKeyByA = ({ keyId }: TestPrincipal) => application.client.rest('DELETE', `/api/auth/service-keys/${keyId}`);

it('scenario 3: a binding that was on its way when the key it was asked for with was revoked is not made', async () => {
  const { principal, client } = await administratorB();
  const held = replica.holdNext('AccessBindingCreated');
  const binding = bindSomebody(client);
  await held.reached;
  expect((await revokeKeyByA(principal)).status).toBe(200);
  held.release();
  const { status, requestId } = await binding;
  expect(status).toBe(401);
  expect(await eventsWith(requestId)).toEqual([]);
});

it('scenario 3: a binding that was on its way when the password of its maker was replaced is not made', async () => {
  const person = await operator.person();
  await person.grant([permissionOf('installation:administer'), permissionOf('namespace:read')]);
  const held = replica.holdNext('AccessBindingCreated');
  const binding = fetch(`${replicaServer.origin}/namespaces/${namespaceId}/iam/access-bindings`, {
    method: 'POST',
    headers: { ...pageHeaders(person.cookie), 'content-type': 'application/json' },
    body: JSON.stringify(somebody()),
  });
  await held.reached;
  await operator.streams.execute(iam, '', { type: 'ReplacePassword', principalId: person.id, passwordId: 'pwd_2' }, systemContext(operator.installationId));
  held.release();
  const response = await binding;
  expect(response.status).toBe(401);
  expect(await eventsWith(response.headers.get('x-request-id')!)).toEqual([]);
});

it('scenario 3: a binding that was on its way when policy changed tells by which policy it was judged last', async () => {
  const { client } = await administratorB();
  const held = replica.holdNext('AccessBindingCreated');
  const binding = bindSomebody(client);
  await held.reached;
  await operator.createServicePrincipal();
  aheadMs += 251;
  held.release();
  const { status, requestId } = await binding;
  expect(status).toBe(201);
  const created = (await eventsWith(requestId)).find(({ type }) => type === 'AccessBindingCreated')!;
  expect(created.metadata.policyRevision).toBe(created.revision - 1);
});

it('scenario 3: racing freely, a binding precedes the revocation of its maker or is refused', async () => {
  for (let round = 0; round < 6; round++) {
    const { client, bindingId } = await administratorB();
    const [bound, revoked] = await Promise.all([bindSomebody(client), revokeByA(bindingId)]);
    expect(revoked.status).toBe(204);
    expect((await bindSomebody(client)).status).toBe(403);
    if (bound.status === 403) continue;
    expect(bound.status).toBe(201);
    const created = (await eventsWith(bound.requestId)).find(({ type }) => type === 'AccessBindingCreated')!;
    expect(created.revision).toBeLessThan((await revocationOf(bindingId)).revision);
  }
});

/** B, who may do everything, and how that ends. */
const omnipotentB = async () => {
  const principal = await operator.principal();
  const revoke = await principal.grant(everyPermission);
  return { client: createClient(replicaServer.origin, principal.key), principal, revoke };
};
const configure = (client: Client) => client.rest<{ id: string }>('POST', `/namespaces/${namespaceId}/configurations`, { kind: 'agent', values: {} });

it('scenario 3: a command on another stream is judged again before its append when the policy it was judged by is older than 250 ms', async () => {
  const { client, principal, revoke } = await omnipotentB();
  const held = replica.holdNext('ResourceAdmitted');
  const configured = configure(client);
  await held.reached;
  await revoke();
  aheadMs += 251;
  held.release();
  const { status, error } = await configured;
  expect({ status, code: error.code }).toEqual({ status: 403, code: 'FORBIDDEN' });
  const made = (await eventsWith(principal.id)).filter(({ type, metadata }) => type === 'ConfigurationCreated' && metadata.actor.principalId === principal.id);
  expect(made).toEqual([]);
});

it('scenario 3: a command on another stream goes no further with a key that was revoked more than 250 ms ago', async () => {
  const { client, principal } = await omnipotentB();
  const held = replica.holdNext('ResourceAdmitted');
  const configured = configure(client);
  await held.reached;
  expect((await revokeKeyByA(principal)).status).toBe(200);
  aheadMs += 251;
  held.release();
  const { status, requestId } = await configured;
  expect(status).toBe(401);
  expect((await eventsWith(requestId)).map(({ type }) => type)).toEqual(['ResourceAdmitted']);
});

it('scenario 3: a command that overlapped the revocation by its append tells that it was judged before it', async () => {
  const { client, revoke } = await omnipotentB();
  const held = replica.holdNext('ConfigurationCreated');
  const configured = configure(client);
  await held.reached;
  const { revision: judgedAt } = await operator.streams.load(iam, '');
  await revoke();
  held.release();
  const { status, requestId } = await configured;
  expect(status).toBe(201);
  const created = (await eventsWith(requestId)).find(({ type }) => type === 'ConfigurationCreated')!;
  expect(created.metadata.policyRevision).toBe(judgedAt);
  expect((await configure(client)).status).toBe(403);
});
