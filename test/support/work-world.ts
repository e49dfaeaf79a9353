/** A small world for passes: real rows in PostgreSQL, streams in memory, a fake driver, and people with bindings. */
import { agents, iam, namespaces, revisions } from '../../src/aggregates.ts';
import type { PresentAgent } from '../../src/agent/agent.ts';
import type { AgentEvent } from '../../src/agent/messages.ts';
import type { AgentRevisionSnapshotted } from '../../src/agent-revision/messages.ts';
import { canonicalText } from '../../src/kernel/canonical.ts';
import type { Message } from '../../src/kernel/decider.ts';
import type { Actor, Metadata } from '../../src/kernel/event.ts';
import { newId } from '../../src/kernel/ids.ts';
import { workKey } from '../../src/kernel/work.ts';
import { createReconciler } from '../../src/reconcile/reconciler.ts';
import type { ReconcileDependencies } from '../../src/reconcile/ports.ts';
import { createStreams, type Aggregate, type CommandContext, type Streams } from '../../src/runtime/streams.ts';
import { createWorkQueue, type WorkItem, type WorkQueue } from '../../src/runtime/work-queue.ts';
import { startWorker, type Worker } from '../../src/runtime/worker.ts';
import type { TestDatabase } from './database.ts';
import { createFakeDriver } from './fake-driver.ts';
import { createInMemoryEventStore, createLog } from './in-memory-event-store.ts';
import { until } from './until.ts';

const prefix = 'ins_test.';
export const settings = { pollIntervalMs: 20, leaseDurationMs: 10_000, maxAttempts: 3, convergenceTimeoutMs: 60_000, concurrency: 4 };
type Settings = typeof settings;

export interface Row {
  readonly state: string;
  readonly code: string | null;
  readonly attempts: number;
}

export interface TestWorker extends Worker {
  stop(): Promise<void>;
}

export interface WorkerOptions extends Partial<Settings> {
  readonly onPoint?: (name: string) => Promise<void>;
  /** Stands between this worker and the rows. */
  readonly through?: (queue: WorkQueue) => WorkQueue;
  readonly deps?: Partial<ReconcileDependencies>;
}

export const actor: Actor = { principalId: newId('prn'), kind: 'principal' };
const context: CommandContext = { actor, requestId: null, correlationId: 'test', causationId: null, policyRevision: null };

export const createWorld = async ({ pool }: TestDatabase) => {
  const log = createLog();
  const clock = { now: () => Date.now() };
  const openStreams = (): Streams => createStreams({ store: createInMemoryEventStore(log), clock, prefix });
  const streams = openStreams();
  const driver = createFakeDriver();
  const faults: object[] = [];
  const warnings: object[] = [];
  const workLog = { error: (facts: object) => void faults.push(facts), warn: (facts: object) => void warnings.push(facts) };
  const namespaceId = newId('ns');
  const roleId = newId('role');
  const bindingId = newId('bnd');

  /** Writes history as it happened elsewhere. */
  const happened = async <S, C, E extends Message>(aggregate: Aggregate<S, C, E>, id: string, events: readonly E[]): Promise<void> => {
    await streams.execute(aggregate, id, () => events, context);
  };

  await happened(iam, '', [
    { type: 'PrincipalCreated', data: { principalId: actor.principalId, issuer: 'test', subject: 'someone' } },
    {
      type: 'RoleCreated',
      data: {
        roleId,
        permissions: [
          ...['deploy', 'operate', 'delete'].map((action) => ({ action, resourceKind: 'agent' })),
          { action: 'read', resourceKind: 'configuration' },
          { action: 'delete', resourceKind: 'namespace' },
        ],
      },
    },
    { type: 'AccessBindingCreated', data: { bindingId, subjectKind: 'identity', subjectId: actor.principalId, roleId } },
  ]);
  await happened(namespaces, namespaceId, [
    { type: 'NamespaceCreated', data: { namespaceId, name: 'default' } },
    { type: 'NamespaceBecameReady', data: { namespaceId } },
  ]);

  const queueWith = (changed: Partial<Settings>): WorkQueue => createWorkQueue(pool, { ...settings, ...changed });
  const queue = queueWith({});

  const offer = async (item: Pick<WorkItem, 'key' | 'lane' | 'kind'> & Partial<WorkItem>): Promise<string> => {
    const blank = { namespaceId, agentId: null, revisionId: null, operationId: null };
    await queue.offer({ ...blank, ...item }, canonicalText(actor), 0);
    return item.key;
  };

  const createAgent = async (): Promise<PresentAgent> => {
    const agentId = newId('agt');
    const servicePrincipalId = newId('spn');
    await happened(iam, '', [{ type: 'ServicePrincipalCreated', data: { servicePrincipalId, namespaceId, agentId } }]);
    await happened(namespaces, namespaceId, [{ type: 'ResourceAdmitted', data: { kind: 'agent', id: agentId, name: agentId, refersTo: [] } }]);
    const binding = { configurationId: newId('cfg'), executionMode: 'embedded', backendId: null } as const;
    const bound = { harnessAuth: { method: 'runtime' }, credentialSources: [] } as const;
    await happened(agents, agentId, [
      { type: 'AgentCreated', data: { agentId, namespaceId, name: agentId, servicePrincipalId, ...binding, settings: { ...bound, credentialSources: [] } } },
    ]);
    return agentOf(agentId);
  };

  const agentOf = async (agentId: string): Promise<PresentAgent> => {
    const { state } = await streams.load(agents, agentId);
    if (state.phase !== 'present') throw new Error(`The Agent is ${state.phase}`);
    return state;
  };

  const admit = async (agent: PresentAgent, change: Partial<AgentRevisionSnapshotted['data']> = {}): Promise<string> => {
    const { agentId, servicePrincipalId, revisions: earlier } = await agentOf(agent.agentId);
    const revisionId = newId('rev');
    const number = (earlier.at(-1)?.number ?? 0) + 1;
    const shared = { revisionId, number, configurationId: newId('cfg'), configurationGeneration: 1, compute: { id: driver.id, implementation: driver.implementation } };
    const data: AgentRevisionSnapshotted['data'] = {
      ...shared,
      namespaceId,
      agentId,
      servicePrincipalId,
      backendId: null,
      harness: { id: 'openclaw', version: '1', mode: 'embedded' },
      settings: { harnessAuth: { method: 'runtime' }, configuration: {}, credentialSources: [] },
      ...change,
    };
    const snapshotted: AgentRevisionSnapshotted = { type: 'AgentRevisionSnapshotted', data };
    await happened(revisions, revisionId, [snapshotted]);
    await happened(agents, agentId, [
      { type: 'AgentRevisionAdmitted', data: { ...shared, compute: data.compute, agentId, namespaceId, digest: 'digest', exclusive: driver.isExclusive } },
    ]);
    return revisionId;
  };

  /** Admits a revision and queues its deployment; answers revision and work key. */
  const deploy = async (agent: PresentAgent, change: Partial<AgentRevisionSnapshotted['data']> = {}) => {
    const { agentId } = agent;
    const revisionId = await admit(agent, change);
    const key = await offer({ key: workKey.deployment(revisionId), lane: agentId, kind: 'deployment', agentId, revisionId });
    return { revisionId, key };
  };

  const stop = async ({ agentId }: PresentAgent): Promise<string> => {
    const operationId = newId('opr');
    await happened(agents, agentId, [{ type: 'AgentStopRequested', data: { agentId, namespaceId, operationId } }]);
    return offer({ key: workKey.stop(agentId, operationId), lane: agentId, kind: 'stop', agentId, operationId });
  };

  const remove = async ({ agentId }: PresentAgent): Promise<string> => {
    await happened(agents, agentId, [{ type: 'AgentDeletionRequested', data: { agentId, namespaceId, accessBindingIds: [], restrictionIds: [] } }]);
    return offer({ key: workKey.deletion(agentId), lane: agentId, kind: 'deletion', agentId });
  };

  const rowOf = async (key: string): Promise<Row | undefined> =>
    (await pool.query<Row>('select state, reason_code as code, attempt_count as attempts from work_item where key = $1', [key])).rows[0];

  const { promise: held, resolve: release } = Promise.withResolvers<void>();

  /** Dies at a named point: from there it neither goes on nor renews its lease, until the test is over. */
  const dying = (at: string): Pick<WorkerOptions, 'onPoint' | 'through'> => {
    let isDead = false;
    return {
      onPoint: async (name) => {
        if (name !== at) return;
        isDead = true;
        await held;
      },
      through: (queue) =>
        new Proxy(queue, {
          get: (target, method: keyof WorkQueue) => async (...input: never[]) => {
            if (isDead) await held.then(() => Promise.reject(new Error('This worker is dead')));
            return (target[method] as (...input: never[]) => unknown)(...input);
          },
        }),
    };
  };

  const workers: TestWorker[] = [];
  const startTestWorker = ({ onPoint, through = (plain) => plain, deps, ...changed }: WorkerOptions = {}): TestWorker => {
    const own = openStreams();
    const stopping = new AbortController();
    const runner = createReconciler({
      streams: own,
      driver,
      policy: { current: () => own.load(iam, '') },
      approvesHarness: () => true,
      erasePrincipalRows: async () => {},
      settings: { ...settings, ...changed },
      log: workLog,
      random: () => 0,
      ...(onPoint && { onPoint }),
      ...deps,
    });
    const worker = startWorker({ queue: through(queueWith(changed)), runner, settings: { ...settings, ...changed }, log: workLog, signal: stopping.signal });
    const running = { ...worker, stop: () => (stopping.abort(), worker.done) };
    workers.push(running);
    return running;
  };

  return {
    namespaceId,
    bindingId,
    pool,
    queue,
    streams,
    driver,
    faults,
    warnings,
    happened,
    offer,
    createAgent,
    agentOf,
    deploy,
    stop,
    remove,
    rowOf,
    startWorker: startTestWorker,
    dying,
    /** Settled when the test is over: what waits for it is held up until then. */
    held,
    stopWorkers: () => {
      const stopped = workers.map((worker) => worker.stop());
      release();
      return Promise.all(stopped);
    },
    /** Ends the leases of all claims, as time would. */
    expireClaims: () => pool.query(`update work_item set lease_expires_at = clock_timestamp() where state = 'claimed'`),
    makeDue: () => pool.query(`update work_item set available_at = clock_timestamp() where state = 'queued'`),
    untilRow: (key: string, expected: string, wanted: (row: Row | undefined) => boolean) => until(`${key}: ${expected}`, () => rowOf(key), wanted),
    untilFinished: (key: string) => until(`${key} finished`, () => rowOf(key), (row) => row?.state === 'succeeded' || row?.state === 'failed_permanent'),
    eventsOf: (agentId: string): readonly AgentEvent[] =>
      (log.streams.get(`${prefix}agent-${agentId}`) ?? []).map((stored) => agents.codec.decode(stored).event),
    metadataOf: (agentId: string, type: string): readonly Metadata[] =>
      (log.streams.get(`${prefix}agent-${agentId}`) ?? []).filter((stored) => stored.type === type).map(({ metadata }) => JSON.parse(metadata) as Metadata),
  };
};

export type World = Awaited<ReturnType<typeof createWorld>>;
