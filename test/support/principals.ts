/** The operator of a running application, as a process of its own beside it: makes further principals, and tells what the worker would have found. */
import { agents, iam, namespaces } from '../../src/aggregates.ts';
import { createPostgresEventStore } from '../../src/event-store/postgres.ts';
import { createOperator, type Operator, type Scope } from '../../src/iam/operator.ts';
import type { GrantedPermission } from '../../src/iam/permissions.ts';
import { systemContext } from '../../src/installation/bootstrap.ts';
import type { ResourceKind } from '../../src/kernel/event.ts';
import { newId } from '../../src/kernel/ids.ts';
import { workKey } from '../../src/kernel/work.ts';
import { createDatabaseClock } from '../../src/postgres/clock.ts';
import { createAccountRows, createInstallationRow, createKeyRows, createSessionRows, createWaysIn } from '../../src/postgres/private-rows.ts';
import { createStreams, type Streams } from '../../src/runtime/streams.ts';
import { newSession, sessionCookieName, sessionLifetimeMs } from '../../src/sign-in/sessions.ts';
import type { TestApplication } from './app.ts';
import { createClient, type Client } from './client.ts';

/** Somebody who has signed in. */
export interface TestPerson {
  readonly id: string;
  readonly sessionKey: string;
  /** What the browser keeps and sends. */
  readonly cookie: string;
  grant: TestPrincipal['grant'];
}

export interface TestPrincipal {
  readonly id: string;
  readonly key: string;
  readonly keyId: string;
  readonly client: Client;
  /** Grants through a Role and a binding of its own. Answers how to take the grant away again. */
  grant(permissions: readonly GrantedPermission[], scope?: Scope): Promise<() => Promise<void>>;
}

export interface TestOperator extends Operator {
  readonly installationId: string;
  readonly streams: Streams;
  /** A service principal that may do nothing yet, and its key. */
  principal(place?: { readonly namespaceId?: string | undefined }): Promise<TestPrincipal>;
  /** A person with an account and a session; may do nothing yet. One the history does not know has no Principal. */
  person(options?: { readonly known?: boolean }): Promise<TestPerson>;
  /** The first administrator with a session. */
  administrator(): Promise<TestPerson>;
  /** What the worker would say of a Namespace and of a deletion; for applications that run without one. */
  readonly tell: {
    namespaceReady(namespaceId: string): Promise<void>;
    namespaceFailed(namespaceId: string): Promise<void>;
    teardownFailed(agentId: string): Promise<void>;
  };
  close(): Promise<void>;
}

/** `agent:read` as the permission it stands for. */
export const permissionOf = (text: string): GrantedPermission => {
  const [resourceKind, action] = text.split(':');
  return { action: action as GrantedPermission['action'], resourceKind: resourceKind as ResourceKind };
};

/** Opens the operator of an application, or of an Installation beside it; close it before the application's database is dropped. */
export const openOperator = async ({ origin, database }: Pick<TestApplication, 'origin' | 'database'>, beside?: string): Promise<TestOperator> => {
  const { pool, url } = database;
  const clock = await createDatabaseClock(pool);
  const store = createPostgresEventStore({ pool, url });
  const installationId = beside ?? (await createInstallationRow(pool).id());
  const streams = createStreams({ store, clock, prefix: `${installationId}.` });
  const operator = createOperator({ streams, keyRows: createKeyRows(pool), waysIn: createWaysIn(pool), clock, installationId, mayLockOut: true });
  const context = systemContext(installationId);

  const granting = (id: string): TestPrincipal['grant'] => async (permissions, scope = {}) => {
    const bindingId = await operator.bind(id, await operator.createRole(permissions), scope);
    return () => operator.unbind(bindingId);
  };
  const withSession = async (principalId: string): Promise<TestPerson> => {
    const { userId, passwordHash } = (await createAccountRows(pool).byPrincipal(principalId))!;
    const { token, sessionKey, tokenHash } = newSession();
    await createSessionRows(pool).insert({ sessionKey, tokenHash, userId, passwordHash }, sessionLifetimeMs);
    return { id: principalId, sessionKey, cookie: `${sessionCookieName}=${token}`, grant: granting(principalId) };
  };

  return {
    ...operator,
    installationId,
    streams,
    person: async ({ known = true } = {}) => {
      const [principalId, userId] = [newId('prn'), newId('usr')];
      await createAccountRows(pool).insert({ userId, principalId, email: `${userId}@example.test`, name: 'A person', passwordHash: 'none' });
      if (known) await streams.execute(iam, '', { type: 'CreatePrincipal', principalId, issuer: 'local', subject: userId }, context);
      return withSession(principalId);
    },
    administrator: async () => withSession((await streams.load(iam, '')).state.installation!.administrator.principalId),
    principal: async (place) => {
      const id = await operator.createServicePrincipal(place);
      const { text: key, keyId } = await operator.issueKey(id, { name: 'test', lifetimeMs: 3_600_000 });
      return {
        id,
        key,
        keyId,
        client: createClient(origin, key),
        grant: granting(id),
      };
    },
    tell: {
      namespaceReady: async (namespaceId) => {
        const claim = { workKey: workKey.namespaceReady(namespaceId), claimToken: 'told' };
        await streams.execute(namespaces, namespaceId, { type: 'MarkNamespaceReady', namespaceId, claim }, context);
      },
      namespaceFailed: async (namespaceId) => {
        const claim = { workKey: workKey.namespaceReady(namespaceId), claimToken: 'told' };
        await streams.execute(namespaces, namespaceId, { type: 'FailNamespace', namespaceId, claim, code: 'PROVISIONING_REJECTED' }, context);
      },
      teardownFailed: async (agentId) => {
        const claim = { workKey: workKey.deletion(agentId), claimToken: 'told' };
        await streams.execute(agents, agentId, { type: 'FailTeardown', claim, code: 'MAX_ATTEMPTS_EXHAUSTED' }, context);
      },
    },
    close: async () => {
      clock.close();
      await store.close();
    },
  };
};
