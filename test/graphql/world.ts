/** The GraphQL edge over real stores and read models, without worker and children: what an Agent becomes is told by the test. */
import { randomUUID } from 'node:crypto';
import { createServer, type Server } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { promisify } from 'node:util';
import { print } from 'graphql';
import type { TypedDocumentNode } from '@graphql-typed-document-node/core';
import type pg from 'pg';
import { createReads } from '../../projections/index.ts';
import { iam, namespaces } from '../../src/aggregates.ts';
import { createAuditLog } from '../../src/audit/audit-log.ts';
import type { EventStore } from '../../src/event-store/event-store.ts';
import { createPostgresEventStore } from '../../src/event-store/postgres.ts';
import { createGraphqlHandler } from '../../src/http/graphql.ts';
import { createAuthenticate } from '../../src/iam/authenticate.ts';
import { createAuthorizer } from '../../src/iam/authorizer.ts';
import { createKeys, newKey } from '../../src/iam/keys.ts';
import type { Metadata } from '../../src/kernel/event.ts';
import { newId } from '../../src/kernel/ids.ts';
import { workKey } from '../../src/kernel/work.ts';
import { createDatabaseClock } from '../../src/postgres/clock.ts';
import { createAccountRows, createKeyRows, createSessionRows, createWaysIn } from '../../src/postgres/private-rows.ts';
import { createStoreIdentityRow } from '../../src/postgres/store-identity-row.ts';
import { openPool } from '../../src/postgres/pool.ts';
import { checkpointChannel } from '../../src/runtime/consumer-checkpoint.ts';
import { listen } from '../../src/runtime/notifications.ts';
import { createReadYourWrite } from '../../src/runtime/read-your-write.ts';
import { createStreams, type CommandContext } from '../../src/runtime/streams.ts';
import { createWorkQueue, workChannel } from '../../src/runtime/work-queue.ts';
import { createServices } from '../../src/services.ts';
import { newSession, sessionCookieName, sessionLifetimeMs } from '../../src/sign-in/sessions.ts';
import { createLogger } from '../../src/telemetry/logger.ts';
import { createMetrics } from '../../src/telemetry/metrics.ts';
import { productConsumers, startConsumers } from '../support/consumers.ts';
import { createDatabase } from '../support/database.ts';
import { createFakeDriver } from '../support/fake-driver.ts';
import { prefix } from '../support/write-history.ts';
import { signInParts } from '../support/sign-in.ts';

export const installationId = prefix.slice(0, -1);
const context: CommandContext = { actor: { principalId: 'system', kind: 'system' }, requestId: null, correlationId: 'test', causationId: null, policyRevision: null };

export interface Answer<T> {
  readonly data: T;
  readonly errors?: readonly { readonly message: string; readonly path?: readonly (string | number)[]; readonly extensions: { readonly code: string; readonly status: number; readonly requestId: string; readonly details?: unknown } }[];
}

/** A permission, and what it covers: one resource, one Namespace, or without a place everything. */
export interface GrantSpec {
  readonly action: string;
  readonly resourceKind: string;
  readonly namespaceId?: string;
  readonly resourceId?: string;
}

const nativeAdmin = { domain: 'agents.example.com', consoleOrigin: 'https://console.example.com', cookieDomain: 'example.com' };

/** Counts the statements that go through a pool, until asked. */
const counted = (pool: pg.Pool) => {
  let count = 0;
  const query = pool.query.bind(pool) as (...args: unknown[]) => unknown;
  const counting = new Proxy(pool, {
    get: (target, name) => (name === 'query' ? (...args: unknown[]) => (count++, query(...args)) : (Reflect.get(target, name, target) as unknown)),
  });
  return { pool: counting, take: () => [count, (count = 0)][0] };
};

/** Counts the reads that a store is asked for, until asked. */
const readsCounted = (store: EventStore) => {
  let count = 0;
  const counting = (name: 'readStream' | 'readStreams' | 'readAll' | 'readAt') => ({ [name]: (...args: never[]) => (count++, (store[name] as (...args: never[]) => unknown)(...args)) });
  return { store: { ...store, ...counting('readStream'), ...counting('readStreams'), ...counting('readAll'), ...counting('readAt') }, take: () => [count, (count = 0)][0] };
};

export const createWorld = async ({ mode = 'development' }: { readonly mode?: 'development' | 'production' } = {}) => {
  const database = await createDatabase();
  const { url } = database;
  const background = openPool({ url });
  // Without it sessions open nothing: they were not compared with any history.
  await createStoreIdentityRow(background).insert(randomUUID());
  const store = createPostgresEventStore({ pool: background, url });
  const consumers = startConsumers(database, store);
  const notifications = listen(url, [checkpointChannel, workChannel]);
  const clock = await createDatabaseClock(background);
  const log: Record<string, unknown>[] = [];

  /** A whole API process, its caches cold. */
  const openEdge = async () => {
    const { pool, take } = counted(database.pool);
    const { store: edgeStore, take: takeStoreReads } = readsCounted(createPostgresEventStore({ pool, url }));
    const streams = createStreams({ store: edgeStore, clock, prefix });
    const audit = createAuditLog(streams);
    const authorizer = createAuthorizer({ streams, audit, denialLimit: { take: () => {} } });
    const core = { streams, authorizer, audit, waitFor: createReadYourWrite(background, productConsumers, notifications).waitFor };
    const reads = createReads(pool);
    const driver = createFakeDriver();
    let watches = 0;
    const timers = new Map<() => void, number>();
    const metrics = createMetrics();
    const keys = createKeys(createKeyRows(pool));
    const signIn = signInParts(pool);
    const services = createServices({ core, reads, compute: driver, diagnosing: () => driver, nativeAdmin: { settings: nativeAdmin, gateways: () => driver }, keys, waysIn: createWaysIn(pool), clock, signIn, installationId });
    const handler = createGraphqlHandler({
      services,
      core,
      reads,
      metrics,
      authenticate: createAuthenticate({ authorizer, keys, sessionRows: signIn.sessionRows, clock }),
      log: createLogger({ level: 'warn', to: { write: (line) => void log.push(JSON.parse(line) as Record<string, unknown>) } }),
      settings: { mode },
      changes: {
        subscribe: (listener) => {
          watches++;
          const ends = [checkpointChannel, workChannel].map((channel) => notifications.on(channel, listener));
          return () => {
            watches--;
            ends.forEach((end) => end());
          };
        },
      },
      every: (ms, listener) => {
        timers.set(listener, ms);
        return () => timers.delete(listener);
      },
    });
    const server: Server = createServer((request, response) => void handler(request, response));
    const sockets = new Set<Socket>();
    server.on('connection', (socket) => {
      sockets.add(socket);
      socket.once('close', () => sockets.delete(socket));
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const endpoint = `http://127.0.0.1:${(server.address() as AddressInfo).port}/graphql`;
    return {
      endpoint,
      handler,
      streams,
      core,
      services,
      metrics,
      takeStatements: take,
      takeStoreReads,
      /** Whether anything is watched for subscriptions. */
      isWatching: () => watches > 0,
      /** What is held for subscriptions and connections. */
      held: async () => ({
        watches,
        timers: timers.size,
        connections: await promisify<number>(server.getConnections.bind(server))(),
        busy: database.pool.totalCount - database.pool.idleCount,
        waiting: database.pool.waitingCount,
      }),
      /** Bytes that wait until their clients read. */
      unsent: () => [...sockets].reduce((sum, { writableLength }) => sum + writableLength, 0),
      /** How often subscribers are judged although nothing changes, in milliseconds. */
      intervals: () => [...timers.values()],
      /** Lets one interval pass. */
      tick: () => [...timers.keys()].forEach((listener) => listener()),
      close: async () => {
        handler.close();
        server.closeIdleConnections();
        await new Promise((resolve) => server.close(resolve));
        await edgeStore.close();
      },
    };
  };
  const edge = await openEdge();
  const { streams } = edge;

  const grantTo = async (subjectId: string, grants: readonly GrantSpec[]): Promise<readonly string[]> => {
    const bindingIds: string[] = [];
    for (const { action, resourceKind, namespaceId, resourceId } of grants) {
      const roleId = newId('role');
      const bindingId = newId('bnd');
      await streams.execute(iam, '', { type: 'CreateRole', role: { roleId, permissions: [{ action, resourceKind }] } }, context);
      await streams.execute(
        iam,
        '',
        {
          type: 'CreateAccessBinding',
          binding: { bindingId, subjectKind: 'identity', subjectId, roleId, ...(namespaceId !== undefined && { namespaceId }), ...(resourceId !== undefined && { resourceKind, resourceId }) },
        },
        context,
      );
      bindingIds.push(bindingId);
    }
    return bindingIds;
  };

  /** A person with these grants who has signed in. */
  const addPerson = async (grants: readonly GrantSpec[]) => {
    const principalId = newId('prn');
    const userId = randomUUID();
    const passwordHash = 'none';
    await streams.execute(iam, '', { type: 'CreatePrincipal', principalId, issuer: 'local', subject: userId }, context);
    await grantTo(principalId, grants);
    await createAccountRows(background).insert({ userId, principalId, email: `${userId}@example.test`, name: 'Person', passwordHash });
    const { token, tokenHash, sessionKey } = newSession();
    const sessions = createSessionRows(background);
    await sessions.insert({ sessionKey, tokenHash, userId, passwordHash }, sessionLifetimeMs);
    return { cookie: `${sessionCookieName}=${token}`, endSession: () => sessions.erase(sessionKey) };
  };

  /** A service principal with these grants and a key of its own. */
  const addPrincipal = async (grants: readonly GrantSpec[]) => {
    const servicePrincipalId = newId('spn');
    const { keyId, text, secretHash } = newKey();
    await streams.execute(iam, '', { type: 'CreateServicePrincipal', servicePrincipalId }, context);
    const bindingIds = await grantTo(servicePrincipalId, grants);
    await createKeyRows(background).insert(keyId, servicePrincipalId, secretHash);
    await streams.execute(iam, '', { type: 'IssueServiceKey', key: { keyId, servicePrincipalId, name: 'test', expiresAt: '2999-01-01T00:00:00.000Z' } }, context);
    return {
      key: text,
      servicePrincipalId,
      revokeKey: () => streams.execute(iam, '', { type: 'RevokeServiceKey', keyId }, context),
      removeGrant: (index: number) => streams.execute(iam, '', { type: 'DeleteAccessBinding', bindingId: bindingIds[index]! }, context),
    };
  };

  const everything = ['installation', 'namespace', 'configuration', 'agent', 'agent_revision', 'audit'];
  const actions = ['create', 'read', 'update', 'delete', 'deploy', 'operate', 'administer'];
  const administrator = newId('spn');
  const key = newKey();
  const roleId = newId('role');
  await streams.execute(
    iam,
    '',
    {
      type: 'BootstrapInstallation',
      data: {
        installationId,
        name: 'Exuvia',
        administrator: { principalId: newId('prn'), issuer: 'local', subject: 'admin' },
        servicePrincipal: { servicePrincipalId: administrator },
        role: { roleId, name: 'Administrator', permissions: everything.flatMap((resourceKind) => actions.map((action) => ({ action, resourceKind }))) },
        bindings: [{ bindingId: newId('bnd'), subjectKind: 'identity', subjectId: administrator, roleId }],
        serviceKey: { keyId: key.keyId, servicePrincipalId: administrator, name: 'bootstrap', expiresAt: '2999-01-01T00:00:00.000Z' },
        defaultNamespaceId: newId('ns'),
      },
    },
    context,
  );
  await createKeyRows(background).insert(key.keyId, administrator, key.secretHash);

  const queue = createWorkQueue(background, { leaseDurationMs: 1_500, maxAttempts: 4 });

  const send = async <Result, Variables>(document: TypedDocumentNode<Result, Variables>, variables: Variables, as: string = key.text, endpoint: string = edge.endpoint): Promise<Answer<Result>> => {
    const response = await fetch(endpoint, {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'x-api-key': as },
      body: JSON.stringify({ query: print(document), variables }),
    });
    return (await response.json()) as Answer<Result>;
  };

  return {
    edge,
    openEdge,
    store,
    retryParked: () => consumers.retryParked(),
    /** From now on the rows of this read model are not the last word. */
    holdBack: ({ name, version }: { readonly name: string; readonly version: number }) =>
      background.query(`insert into parked_stream (name, version, stream, revision, reason) values ($1, $2, 'held-back', 0, 'by a test')`, [name, version]),
    log,
    streams,
    services: edge.services,
    queue,
    adminKey: key.text,
    addPrincipal,
    addPerson,
    /** Nobody may do this any more, not even an administrator. */
    restrict: (restriction: GrantSpec) => streams.execute(iam, '', { type: 'CreateRestriction', restriction: { restrictionId: newId('rst'), ...restriction } }, context),
    send,
    /** Actions that were denied to a request, in order. */
    denialsOf: async (requestId: string) => {
      const { events } = await store.readAll(null, { streamPrefix: `${prefix}audit-` }, 1_000);
      const records = events.filter(({ type }) => type === 'AuthorizationDenied').map(({ metadata }) => JSON.parse(metadata) as Metadata);
      return records.filter((record) => record.requestId === requestId).map(({ audit }) => audit?.action);
    },
    /** What the worker would say once Compute has made the Namespace. */
    makeReady: (namespaceId: string) =>
      streams.execute(namespaces, namespaceId, { type: 'MarkNamespaceReady', namespaceId, claim: { workKey: workKey.namespaceReady(namespaceId), claimToken: 'test' } }, context),
    close: async () => {
      await edge.close();
      await notifications.close();
      await consumers.stop();
      clock.close();
      await store.close();
      await background.end();
    },
  };
};

export type World = Awaited<ReturnType<typeof createWorld>>;
