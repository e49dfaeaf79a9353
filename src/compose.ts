/** Puts the product together from its settings: the only file that chooses adapters. */
import { setTimeout as delay } from 'node:timers/promises';
import type { Pool } from 'pg';
import { createReads, productEvents } from '../projections/index.ts';
import { approvedHarnesses } from './agent/harness.ts';
import { createAuditLog } from './audit/audit-log.ts';
import type { ComputeDriver } from './compute/driver.ts';
import { processAdmission } from './compute/process/admission.ts';
import { createProcessDriver } from './compute/process/process-driver.ts';
import type { Config } from './config.ts';
import { consumers } from './consumers.ts';
import type { Position } from './event-store/event-store.ts';
import { createGraphqlHandler } from './http/graphql.ts';
import type { Timers } from './http/native-admin/lease.ts';
import { createHttpServer, type Health } from './http/server.ts';
import { createAuthenticate } from './iam/authenticate.ts';
import { createAuthorizer } from './iam/authorizer.ts';
import { createDenialLimit } from './iam/denial-limit.ts';
import { createKeys } from './iam/keys.ts';
import { bootstrapInstallation, systemContext } from './installation/bootstrap.ts';
import { computeRoot, openDatabase, openEventStore } from './open-stores.ts';
import { createDatabaseClock } from './postgres/clock.ts';
import { createAccountRows, createInstallationRow, createKeyRows, createSessionRows, createWaysIn, keyErasedChannel } from './postgres/private-rows.ts';
import { createStoreIdentityRow } from './postgres/store-identity-row.ts';
import { createReconciler } from './reconcile/reconciler.ts';
import { resumeSelected, sweepOwned } from './reconcile/sweep.ts';
import { checkpointChannel, HistoryMismatch } from './runtime/consumer-checkpoint.ts';
import { readConsumerHealth } from './runtime/consumer-health.ts';
import { runConsumers, type RunningConsumers } from './runtime/consumer-runner.ts';
import type { Core } from './core.ts';
import { createHistoryGate } from './runtime/history-gate.ts';
import { listen } from './runtime/notifications.ts';
import { createReadYourWrite } from './runtime/read-your-write.ts';
import { createStreams } from './runtime/streams.ts';
import { claimChannel, createWorkQueue, workChannel } from './runtime/work-queue.ts';
import { startWorker, type Worker } from './runtime/worker.ts';
import { startHeartbeat } from './telemetry/heartbeat.ts';
import type { Log } from './telemetry/logger.ts';
import { measured } from './telemetry/measured-store.ts';
import { createMetrics } from './telemetry/metrics.ts';
import { readStanding } from './telemetry/standing.ts';
import type { Gateways } from './native-admin/service.ts';
import { createServices, type Services, type SignInParts } from './services.ts';
import { endSessionsSince } from './sign-in/ended-sessions.ts';
import { createSignInLimits } from './sign-in/limits.ts';
import { sweepOrphans } from './sign-in/orphans.ts';
import { createPasswords } from './sign-in/passwords.ts';
import { createRecognition } from './store-identity/recognition.ts';

export interface Application {
  /** Where it listens, for example `http://127.0.0.1:4000`; undefined without the `api` role. */
  readonly origin: string | undefined;
  readonly services: Services;
  /** Resolves once this replica is ready, as `/readyz` says, or is asked to stop before that. */
  ready(): Promise<void>;
  /** Settled with what went wrong when a part the process cannot live without has ended by itself. */
  readonly broken: Promise<Error>;
  /** Stops taking requests, ends every loop, and closes everything in the reverse order of its start. */
  close(): Promise<void>;
}

/** Places where a test may take part. */
export interface Seams {
  /** Called at the named points of every pass of the worker. */
  readonly onPoint?: (name: string) => Promise<void>;
  /** Tells where gateways are, in place of the driver of this process. */
  readonly gateways?: Gateways;
  /** How time passes for those who have a native admin UI open. */
  readonly timers?: Timers;
}

export interface StartOptions extends Seams {
  /** Aborted when the process is asked to stop while it still starts: then nothing is waited for. */
  readonly stopping?: AbortSignal;
}

const sweepEveryMs = 300_000;
const lookEveryMs = 50;
/** How often every process recognises the history by itself. */
const recogniseEveryMs = 5_000;
const stalledAfterMs = 120_000;

/** Waits until every consumer of this build has once stood at the end of the store, and has passed `head` where one is given. */
const untilCaughtUp = async (pool: Pool, head: Position | null, signal: AbortSignal): Promise<void> => {
  const behind = async () => {
    const { rows } = await pool.query<{ count: number }>(
      `select count(*)::integer as count from unnest($1::text[], $2::integer[]) as wanted (name, version)
         left join consumer_checkpoint as place using (name, version)
        where place.caught_up_at is null or ($3::text is not null and (place.position is null or place.position < $3))`,
      [consumers.map(({ name }) => name), consumers.map(({ version }) => version), head],
    );
    return rows[0]!.count > 0;
  };
  while (!signal.aborted && (await behind())) await delay(lookEveryMs);
};

/** Recognises the history again and again: the leader of the projector is another process, perhaps. */
const watchHistory = async (recogniseHistory: () => Promise<void>, signal: AbortSignal): Promise<void> => {
  while (!signal.aborted) {
    await delay(recogniseEveryMs, undefined, { signal }).catch(() => undefined);
    if (!signal.aborted) await recogniseHistory().catch(() => undefined); // a store that does not answer says nothing about its history
  }
};

interface WorkerParts {
  readonly config: Config;
  readonly log: Log;
  readonly pool: Pool;
  readonly core: Core;
  readonly driver: ComputeDriver;
  readonly wakeOnWork: (wake: () => void) => () => void;
  readonly signal: AbortSignal;
  readonly seams: Seams;
}

const runWorker = async ({ config, log, pool, core, driver, wakeOnWork, signal, seams }: WorkerParts): Promise<Worker> => {
  const { streams, authorizer } = core;
  const queue = createWorkQueue(pool, config.worker);
  const runner = createReconciler({
    streams,
    driver,
    policy: { current: () => authorizer.current() },
    approvesHarness: ({ id, version }) => Object.hasOwn(approvedHarnesses, id) && approvedHarnesses[id as keyof typeof approvedHarnesses] === version,
    erasePrincipalRows: createKeyRows(pool).eraseOfPrincipal,
    settings: config.worker,
    log,
    random: Math.random,
    ...seams,
  });
  const worker = startWorker({ queue, runner, settings: config.worker, log, signal });
  const silence = [wakeOnWork(worker.wake), driver.onChange(({ agentId }) => worker.laneChanged(agentId))];
  signal.addEventListener('abort', () => silence.forEach((end) => end()), { once: true });
  await resumeSelected({ streams, driver, log }, queue);
  const sweep = () => void sweepOwned({ streams, driver, log }, signal).catch((error: unknown) => log.warn({ error }, 'sweep failed'));
  sweep();
  const timer = setInterval(sweep, sweepEveryMs);
  signal.addEventListener('abort', () => clearInterval(timer), { once: true });
  return worker;
};

/**
 * Starts every role of the process.
 * @throws Fault whose one sentence names what is wrong: a taken port, an unwritable folder, an unreachable database
 */
export const startApplication = async (config: Config, log: Log, { stopping, ...seams }: StartOptions = {}): Promise<Application> => {
  const stack = new AsyncDisposableStack();
  try {
    const { url, pool, ended } = await openDatabase(config, log, stack);
    const clock = await createDatabaseClock(pool);
    stack.defer(() => clock.close());
    const metrics = createMetrics();
    metrics.watch(() => readStanding(pool, config.dataDir));
    const installationId = await createInstallationRow(pool).id();
    const prefix = `${installationId}.`;
    const store = measured(await openEventStore(config.eventstoreUrl ?? url, stack, { url, pool }, installationId), metrics);

    const notifications = listen(url, [checkpointChannel, workChannel, claimChannel, keyErasedChannel]);
    stack.defer(() => notifications.close());
    const readYourWrite = createReadYourWrite(pool, consumers, notifications);
    const gate = createHistoryGate(store);
    const streams = createStreams({ store: gate.store, clock, prefix });
    const audit = createAuditLog(streams);
    const denialLimit = createDenialLimit({
      audit,
      clock,
      installationId,
      onSuppressed: metrics.denialSuppressed,
      onError: (error) => log.warn({ error }, 'suppressed denials are not recorded yet'),
    });
    stack.defer(() => denialLimit.close());
    const authorizer = createAuthorizer({ streams, audit, denialLimit });
    const keyRows = createKeyRows(pool);
    const keys = createKeys(keyRows);
    notifications.on(keyErasedChannel, keys.forget);
    const core: Core = { streams, authorizer, audit, waitFor: readYourWrite.waitFor };
    const reads = createReads(pool);
    const signIn: SignInParts = {
      accountRows: createAccountRows(pool),
      sessionRows: createSessionRows(pool),
      passwords: createPasswords(),
      cookieName: config.sessionCookie.name,
      limits: createSignInLimits({ now: () => performance.now(), onLimit: (limited) => log.warn(limited, 'sign-in limited') }),
      denialLimit,
    };

    const loops = new AbortController();
    const recognition = createRecognition({
      streams,
      store,
      row: createStoreIdentityRow(pool),
      installationId,
      // Only the database remembers sessions, and one that ended since then would live again.
      onWentBack: async (facts) => log.error({ ...facts, endedSessions: await signIn.sessionRows.eraseAll() }, 'the database went back to an older state'),
      endSince: endSessionsSince({ store, prefix, sessionRows: signIn.sessionRows }),
      onHandedOver: (facts) => log.warn(facts, 'another server took the place of the database: sessions were compared with the history, and passwords and keys count as the history names them'),
    });
    const giveUp = (mismatch: string): void => {
      if (gate.mismatch !== undefined) return;
      log.error({ mismatch }, 'the history is not the one this database has followed');
      gate.close(mismatch);
      loops.abort();
    };
    const recogniseHistory = () =>
      recognition.check().catch((error: unknown) => {
        if (!(error instanceof HistoryMismatch)) throw error;
        giveUp(error.message);
      });
    await recogniseHistory();
    let running: RunningConsumers | undefined;
    if (config.roles.includes('projector')) {
      running = runConsumers({
        url,
        store,
        consumers,
        prefix,
        codec: productEvents,
        signal: loops.signal,
        onTakeOver: recognition.openDatabase,
        onBatch: readYourWrite.note,
        onFault: (error) => log.error({ error }, 'the projector was interrupted'),
      });
      const runner = running;
      stack.defer(() => runner.done);
      // It ends by itself only when the history is not the one it knew: then nobody may work on it either.
      void runner.done.then(() => runner.state.historyMismatch !== undefined && giveUp(runner.state.historyMismatch));
    }
    void watchHistory(recogniseHistory, loops.signal);
    stack.defer(() => loops.abort());

    const isApi = config.roles.includes('api');
    let driver: ComputeDriver | undefined;
    const services = createServices({ core, reads, compute: processAdmission, diagnosing: () => driver, nativeAdmin: { settings: config.nativeAdmin, gateways: seams.gateways ?? (() => driver) }, keys, waysIn: createWaysIn(pool), clock, signIn, installationId });
    // Whoever serves is where the operator looks for the first key, so only there it is written.
    if (isApi && gate.mismatch === undefined) {
      const born = await bootstrapInstallation({
        installationId,
        streams,
        clock,
        keyRows,
        accountRows: signIn.accountRows,
        passwords: signIn.passwords,
        dataDir: config.dataDir,
        administratorEmail: config.administratorEmail,
      });
      await services.namespaces.ensureDefault(born.defaultNamespaceId, systemContext(installationId));
    }

    if (isApi) {
      const sweep = async (): Promise<void> => {
        if (gate.mismatch !== undefined) return;
        const erased = await sweepOrphans({ streams, accountRows: signIn.accountRows, keyRows: keys, installationId });
        if (erased.accounts + erased.keys > 0) log.warn(erased, 'erased private rows that the history never named');
      };
      const sweepOrLog = () => void sweep().catch((error: unknown) => log.warn({ error }, 'private rows could not be swept'));
      sweepOrLog();
      const timer = setInterval(sweepOrLog, sweepEveryMs);
      loops.signal.addEventListener('abort', () => clearInterval(timer), { once: true });
    }

    const isWorker = config.roles.includes('worker');
    // Workers claim only after the sagas have passed everything that was in the store at their start. (failure scenario 31)
    const waiting = stopping === undefined ? loops.signal : AbortSignal.any([loops.signal, stopping]);
    await untilCaughtUp(pool, isWorker ? await store.head({ streamPrefix: prefix }) : null, waiting);
    let worker: Worker | undefined;
    if (isWorker && gate.mismatch === undefined) {
      const workloads = createProcessDriver({ root: computeRoot(config), log });
      driver = workloads;
      stack.defer(() => workloads.close({ stopWorkloads: isApi }));
      worker = await runWorker({ config, log, pool, core, driver: workloads, wakeOnWork: (wake) => notifications.on(workChannel, wake), signal: loops.signal, seams });
      const { done } = worker;
      stack.defer(async () => {
        loops.abort();
        await done;
      });
    }

    const health: Health = {
      stalled: () => {
        if (gate.mismatch !== undefined) return [];
        const turned: readonly (readonly [string, number | undefined])[] = [
          ['projector', running === undefined ? undefined : performance.now() - running.state.turnedAt],
          ['worker', worker?.idleMs()],
        ];
        return turned.flatMap(([name, idleMs]) => (idleMs !== undefined && idleMs > stalledAfterMs ? [name] : []));
      },
      readiness: async () => {
        if (gate.mismatch !== undefined) return { ready: false, degraded: [gate.mismatch] };
        const [{ hasCaughtUp, degraded }, wentBack] = await Promise.all([readConsumerHealth(pool, consumers), recognition.degraded(), store.head({ streamPrefix: prefix })]);
        return { ready: hasCaughtUp, degraded: [...wentBack, ...degraded] };
      },
    };

    let origin: string | undefined;
    if (isApi) {
      const authenticate = createAuthenticate({ authorizer, keys, sessionRows: signIn.sessionRows, cookieName: config.sessionCookie.name, clock });
      const changes = {
        subscribe: (listener: () => void) => {
          const ends = [checkpointChannel, workChannel, claimChannel].map((channel) => notifications.on(channel, listener));
          return () => ends.forEach((end) => end());
        },
      };
      const graphql = createGraphqlHandler({ services, core, reads, authenticate, metrics, log, settings: config, changes });
      const server = createHttpServer({ services, authenticate, health, metrics, log, graphql, settings: config, timers: seams.timers });
      origin = await server.listen(config.host, config.port);
      stack.defer(() => server.close());
      stack.defer(() => graphql.close());
    } else {
      const isWell = async () => health.stalled().length === 0 && (await health.readiness()).ready;
      stack.defer(await startHeartbeat(config.dataDir, isWell));
    }
    const ready = async (): Promise<void> => {
      for (let told = ''; stopping?.aborted !== true; await delay(lookEveryMs)) {
        const state = await health.readiness().catch(() => ({ ready: false, degraded: ['a store does not answer'] }));
        if (state.ready) return;
        const reasons = state.degraded.join('; ');
        if (reasons !== told) log.warn({ reasons }, 'not ready yet');
        told = reasons;
      }
    };
    return { origin, services, ready, broken: ended, close: () => stack.disposeAsync() };
  } catch (error) {
    await stack.disposeAsync();
    throw error;
  }
};
