/** A second replica's services over the database of a running application, whose appends a test may hold up or refuse. */
import { createReads } from '../../projections/index.ts';
import { iam } from '../../src/aggregates.ts';
import { createAuditLog } from '../../src/audit/audit-log.ts';
import { createProcessDriver } from '../../src/compute/process/process-driver.ts';
import { StoreUnavailable, type EventStore } from '../../src/event-store/event-store.ts';
import { createPostgresEventStore } from '../../src/event-store/postgres.ts';
import { createGraphqlHandler } from '../../src/http/graphql.ts';
import { createHttpServer } from '../../src/http/server.ts';
import { createAuthenticate } from '../../src/iam/authenticate.ts';
import { createAuthorizer } from '../../src/iam/authorizer.ts';
import type { Caller } from '../../src/iam/caller.ts';
import { createDenialLimit } from '../../src/iam/denial-limit.ts';
import { createKeys } from '../../src/iam/keys.ts';
import { createDatabaseClock } from '../../src/postgres/clock.ts';
import { createInstallationRow, createKeyRows, createWaysIn } from '../../src/postgres/private-rows.ts';
import { createStreams } from '../../src/runtime/streams.ts';
import { createServices } from '../../src/services.ts';
import { hostCookie } from '../../src/sign-in/sessions.ts';
import { createLogger } from '../../src/telemetry/logger.ts';
import { createMetrics } from '../../src/telemetry/metrics.ts';
import type { TestApplication } from '../support/app.ts';
import { consoleOrigin, signInParts } from '../support/sign-in.ts';

/** An append that has been asked for and does not get through before it is released. */
export interface Held {
  /** Settled when the append waits. */
  readonly reached: Promise<void>;
  release(): void;
}

/** Another API process, over its own part of the database of a running application. */
export const openApi = async ({ database, dataDir }: TestApplication, name: string, installationId: string) => {
  const { pool, url } = database;
  const store = createPostgresEventStore({ pool, url });
  const clock = await createDatabaseClock(pool);
  const prefix = `${installationId}.`;
  const holds: { readonly type: string; readonly reach: () => void; readonly released: Promise<void> }[] = [];

  let failing: string | undefined;

  const slow: EventStore = {
    ...store,
    append: async (stream, revision, events) => {
      const hold = holds.find(({ type }) => events.some((event) => event.type === type));
      if (hold !== undefined) {
        holds.splice(holds.indexOf(hold), 1);
        hold.reach();
        await hold.released;
      }
      if (events.some(({ type }) => type === failing)) throw new StoreUnavailable('Refused by a test');
      return store.append(stream, revision, events);
    },
  };
  const streams = createStreams({ store: slow, clock, prefix });
  const audit = createAuditLog(streams);
  const authorizer = createAuthorizer({ streams, audit, denialLimit: { take: () => {} } });
  const log = { info: () => {}, warn: () => {}, error: () => {} };
  const compute = createProcessDriver({ root: `${dataDir}/${name}`, log });
  const keys = createKeys(createKeyRows(pool));
  const core = { streams, authorizer, audit, waitFor: () => Promise.resolve() };
  const reads = createReads(pool);
  // Time stands still for it: what is used up stays so, however slow the requests are.
  const openedAt = clock.now();
  const denialLimit = createDenialLimit({ audit, clock: { now: () => openedAt }, installationId });
  const signIn = { ...signInParts(pool), denialLimit };
  const services = createServices({
    core,
    reads,
    compute,
    diagnosing: () => compute,
    nativeAdmin: { settings: undefined, gateways: () => compute },
    keys,
    waysIn: createWaysIn(pool),
    clock,
    signIn,
    installationId,
  });

  return {
    services,
    streams,
    /** Of the sign-ins. */
    denialLimit,
    /** Serves both edges on a free port. */
    serve: async (): Promise<{ readonly origin: string; close(): Promise<void> }> => {
      const authenticate = createAuthenticate({ authorizer, keys, sessionRows: signIn.sessionRows, clock });
      const silent = createLogger({ level: 'silent' });
      const metrics = createMetrics();
      const graphql = createGraphqlHandler({ services, core, reads, authenticate, metrics, log: silent, settings: { mode: 'production' }, changes: { subscribe: () => () => {} } });
      const health = { stalled: () => [], readiness: async () => ({ ready: true, degraded: [] }) };
      const settings = { mode: 'production', trustedOrigins: [consoleOrigin], trustedProxies: [], sessionCookie: hostCookie(true) } as const;
      const server = createHttpServer({ services, authenticate, health, metrics, log: silent, graphql, settings });
      return { origin: await server.listen('127.0.0.1', 0), close: () => server.close(0) };
    },
    /** While something is done, the store refuses every append that carries an event of this type. */
    failing: async <T>(type: string, act: () => Promise<T>): Promise<T> => {
      failing = type;
      try {
        return await act();
      } finally {
        failing = undefined;
      }
    },
    /** Holds up the next append that carries an event of this type. */
    holdNext: (type: string): Held => {
      const reached = Promise.withResolvers<void>();
      const released = Promise.withResolvers<void>();
      holds.push({ type, reach: reached.resolve, released: released.promise });
      return { reached: reached.promise, release: released.resolve };
    },
    close: async () => {
      await denialLimit.close();
      await compute.close({ stopWorkloads: false });
      clock.close();
      await store.close();
    },
  };
};

export const openReplica = async (application: TestApplication, name = 'replica') => {
  const replica = await openApi(application, name, await createInstallationRow(application.database.pool).id());
  const installation = (await replica.streams.load(iam, '')).state.installation!;
  const { servicePrincipalId } = installation.serviceKey;
  return {
    ...replica,
    installation,
    /** The Installation's administrator, with a request of its own. */
    caller: (): Caller => ({
      actor: { principalId: servicePrincipalId, kind: 'service_principal' },
      keyNamespaceId: undefined,
      arrivedAt: performance.now(),
      requestId: 'req_of-the-slow-replica',
    }),
  };
};

export type Replica = Awaited<ReturnType<typeof openReplica>>;
