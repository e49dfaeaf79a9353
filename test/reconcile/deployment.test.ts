/** Deployment passes end to end: real rows, a fake driver, every outcome as events. */
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { agents, iam, namespaces } from '../../src/aggregates.ts';
import type { PresentAgent } from '../../src/agent/agent.ts';
import { ActivationFailed, ActivationPending, TransientDependency } from '../../src/compute/driver.ts';
import { resumeSelected } from '../../src/reconcile/sweep.ts';
import { createDatabase, type TestDatabase } from '../support/database.ts';
import { until } from '../support/until.ts';
import { actor, createWorld, type World } from '../support/work-world.ts';

let database: TestDatabase | undefined;
let world: World;
let agent: PresentAgent;

beforeEach(async () => {
  database ??= await createDatabase();
  await database.pool.query('delete from work_item');
  world = await createWorld(database);
  agent = await world.createAgent();
});
afterEach(() => world.stopWorkers());

const events = () => world.eventsOf(agent.agentId).slice(1);
const types = () => events().map(({ type }) => type);
const closing = () => events().at(-1);
const denied = () => world.happened(iam, '', [{ type: 'AccessBindingDeleted', data: { bindingId: world.bindingId } }]);

describe('a deployment', () => {
  it('is prepared, selected, activated and completed', async () => {
    const { revisionId, key } = await world.deploy(agent);
    world.startWorker();
    expect(await world.untilFinished(key)).toEqual({ state: 'succeeded', code: 'REVISION_ACTIVATED', attempts: 1 });
    expect(types()).toEqual(['AgentRevisionAdmitted', 'AgentRevisionSelected', 'DeploymentActivated']);
    expect((await world.agentOf(agent.agentId)).activeRevisionId).toBe(revisionId);
    expect(world.driver.calls).toEqual([`bindAgent ${agent.agentId}`, `prepareRevision ${revisionId}`, `activateRevision ${revisionId}`]);
    expect(world.metadataOf(agent.agentId, 'DeploymentActivated')).toMatchObject([
      {
        actor,
        correlationId: key,
        policyRevision: 3,
        work: { key },
        audit: { kind: 'mutation', action: 'openclaw.agents.lifecycle.activate', outcome: 'success', reasonCode: 'REVISION_ACTIVATED' },
      },
    ]);
    expect(world.faults).toEqual([]);
  });

  it('waits for readiness, says so once, and goes on the moment the driver reports a change', async () => {
    let isReady = false;
    world.driver.observe = () => ({ ready: isReady });
    const { key } = await world.deploy(agent);
    const worker = world.startWorker();
    world.driver.onChange(({ agentId }) => worker.laneChanged(agentId));
    await until('first deferral', types, (seen) => seen.includes('WorkDeferred'));
    isReady = true;
    world.driver.changed(agent);
    expect(await world.untilFinished(key)).toEqual({ state: 'succeeded', code: 'REVISION_ACTIVATED', attempts: 1 });
    expect(types()).toEqual(['AgentRevisionAdmitted', 'WorkDeferred', 'AgentRevisionSelected', 'DeploymentActivated']);
  });

  it('is due at once when the change came while its pass was ending', async () => {
    let isReady = false;
    const { key } = await world.deploy(agent);
    const worker = world.startWorker({ pollIntervalMs: 60_000 });
    world.driver.observe = () => {
      const ready = isReady;
      isReady = true;
      worker.laneChanged(agent.agentId);
      return { ready };
    };
    expect(await world.untilFinished(key)).toMatchObject({ code: 'REVISION_ACTIVATED' });
  });

  it('ends at once on a failure the runtime holds, with the evidence of a failed model probe', async () => {
    const runtimeFailure = { component: 'gateway', check: 'model probe', checkedAt: '2026-01-02T03:04:05Z', code: 'MODEL_PROBE_FAILED', cause: { kind: 'PROCESS_EXIT', detail: 'exit-1' } } as const;
    world.driver.observe = () => ({ ready: false, runtimeFailure });
    const { key, revisionId } = await world.deploy(agent);
    world.startWorker();
    expect(await world.untilFinished(key)).toEqual({ state: 'failed_permanent', code: 'RUNTIME_MODEL_PROBE_FAILED', attempts: 1 });
    expect(closing()).toMatchObject({ type: 'DeploymentFailed', data: { data: { runtimeFailure: { ...runtimeFailure, check: 'UNRECOGNIZED' } } } });
    expect(world.driver.running).toContain(revisionId);
  });

  it('ends at the convergence deadline, or with the code of the dependency that held it up', async () => {
    world.driver.observe = () => ({ ready: false });
    const { key } = await world.deploy(agent);
    world.startWorker({ convergenceTimeoutMs: 1 });
    expect(await world.untilFinished(key)).toMatchObject({ code: 'CONVERGENCE_DEADLINE_EXCEEDED' });
    expect(closing()).toMatchObject({ data: { data: { timeoutMs: 1 } } });
    world.driver.before = (verb) => {
      if (verb === 'prepareRevision') throw new TransientDependency('KUBERNETES_API_UNAVAILABLE');
    };
    const second = await world.deploy(agent);
    expect(await world.untilFinished(second.key)).toMatchObject({ code: 'KUBERNETES_API_UNAVAILABLE' });
  });

  it('spends attempts on unexplained driver errors and then fails, leaving the pointer alone', async () => {
    world.driver.before = (verb) => {
      if (verb === 'prepareRevision') throw new Error('boom');
    };
    const { key } = await world.deploy(agent);
    world.startWorker();
    expect(await world.untilFinished(key)).toEqual({ state: 'failed_permanent', code: 'DEPENDENCY_UNAVAILABLE', attempts: 3 });
    expect(types()).toEqual(['AgentRevisionAdmitted', 'WorkRetryScheduled', 'WorkRetryScheduled', 'DeploymentFailed']);
    expect((await world.agentOf(agent.agentId)).activeRevisionId).toBeNull();
  });

  it('stays selected when its activation is refused for good, and finishes later when it was only pending', async () => {
    let failure: Error | undefined = new ActivationPending('WORKSPACE_NODE_BINDING_PENDING');
    world.driver.before = (verb) => {
      if (verb === 'activateRevision' && failure !== undefined) throw failure;
    };
    const first = await world.deploy(agent);
    world.startWorker();
    await until('pending activation', types, (seen) => seen.includes('WorkDeferred'));
    failure = undefined;
    expect(await world.untilFinished(first.key)).toMatchObject({ code: 'REVISION_ALREADY_ACTIVE' });
    failure = new ActivationFailed();
    const second = await world.deploy(agent);
    expect(await world.untilFinished(second.key)).toMatchObject({ code: 'AGENT_GATEWAY_UNAUTHORIZED' });
    expect((await world.agentOf(agent.agentId)).activeRevisionId).toBe(second.revisionId);
  });

  it('replaces its predecessor only after it is selected, or stops it first where Compute wants that', async () => {
    const first = await world.deploy(agent);
    world.startWorker();
    await world.untilFinished(first.key);
    const second = await world.deploy(agent);
    await world.untilFinished(second.key);
    expect(world.driver.calls.slice(3)).toEqual([
      `bindAgent ${agent.agentId}`,
      `prepareRevision ${second.revisionId}`,
      `activateRevision ${second.revisionId}`,
      `retireRevision ${first.revisionId}`,
    ]);
    expect(closing()).toMatchObject({ type: 'DeploymentActivated', data: { previousRevisionId: first.revisionId } });
    world.driver.isExclusive = true;
    world.driver.calls.length = 0;
    const third = await world.deploy(agent);
    await world.untilFinished(third.key);
    expect(world.driver.calls.slice(0, 4)).toEqual([
      `bindAgent ${agent.agentId}`,
      `stopRevision ${first.revisionId}`,
      `stopRevision ${second.revisionId}`,
      `prepareRevision ${third.revisionId}`,
    ]);
  });

  it('is superseded by a newer exclusive revision and by a newer selected one, without touching Compute', async () => {
    const first = await world.deploy(agent);
    world.driver.isExclusive = true;
    const second = await world.deploy(agent);
    world.startWorker({ concurrency: 1 });
    expect(await world.untilFinished(first.key)).toMatchObject({ state: 'succeeded', code: 'REVISION_SUPERSEDED' });
    expect(await world.untilFinished(second.key)).toMatchObject({ code: 'REVISION_ACTIVATED' });
    expect(world.driver.calls).not.toContain(`prepareRevision ${first.revisionId}`);
  });

  it('stands down when the Agent was stopped before, and when it is stopped while it is prepared', async () => {
    const { key, revisionId } = await world.deploy(agent);
    let stopKey: string | undefined;
    world.driver.before = async (verb) => {
      if (verb === 'prepareRevision') stopKey ??= await world.stop(agent);
    };
    world.startWorker();
    expect(await world.untilFinished(key)).toMatchObject({ state: 'succeeded', code: 'REVISION_STOPPED' });
    expect(world.driver.running).not.toContain(revisionId);
    expect(await world.untilFinished(stopKey!)).toMatchObject({ code: 'AGENT_ALREADY_STOPPED' });
    expect(types()).not.toContain('AgentRevisionSelected');
  });

  it('is refused without a driver call when its actor lost the grant, and the denial is the same append as the result', async () => {
    const { key } = await world.deploy(agent);
    await denied();
    world.startWorker();
    expect(await world.untilFinished(key)).toMatchObject({ state: 'failed_permanent', code: 'AUTHORIZATION_DENIED' });
    expect(world.driver.calls).toEqual([]);
    expect(types()).toEqual(['AgentRevisionAdmitted', 'DeploymentFailed']);
    expect(world.metadataOf(agent.agentId, 'DeploymentFailed')).toMatchObject([
      {
        audit: {
          kind: 'authorization_denial',
          action: 'openclaw.agents.deploy',
          outcome: 'denied',
          reasonCode: 'AUTHORIZATION_DENIED',
          authorization: { principalId: actor.principalId, action: 'deploy', resource: { kind: 'agent', id: agent.agentId } },
          details: { workId: key, final: true },
        },
      },
    ]);
  });

  it('stops a refused candidate before it tells the refusal, for as long as that takes', async () => {
    let stops = 0;
    world.driver.observe = () => ({ ready: false });
    world.driver.before = (verb) => {
      if (verb === 'stopRevision' && ++stops < 3) throw new Error('not yet');
    };
    const { key, revisionId } = await world.deploy(agent);
    world.startWorker();
    await until('a prepared candidate', types, (seen) => seen.includes('WorkDeferred'));
    await denied();
    await world.makeDue();
    await until('a pending stop', events, (seen) => seen.some(({ data }) => 'refusal' in data && data.refusal === 'AUTHORIZATION_DENIED'));
    await until('the end', async () => (await world.makeDue(), types()), (seen) => seen.includes('DeploymentFailed'));
    const pendings = events().filter(({ data }) => 'code' in data && data.code === 'REFUSED_CANDIDATE_STOP_PENDING');
    expect(pendings).toHaveLength(2);
    expect(await world.untilFinished(key)).toEqual({ state: 'failed_permanent', code: 'AUTHORIZATION_DENIED', attempts: 1 });
    expect(world.driver.running).not.toContain(revisionId);
  });

  it('retries while policy cannot be read, which is no denial', async () => {
    const { key } = await world.deploy(agent);
    let outages = 1;
    world.startWorker({
      deps: {
        policy: {
          current: () => (outages-- > 0 ? Promise.reject(new Error('the policy stream does not answer')) : world.streams.load(iam, '')),
        },
      },
    });
    expect(await world.untilFinished(key)).toMatchObject({ code: 'REVISION_ACTIVATED' });
    expect(events()[1]).toMatchObject({ type: 'WorkRetryScheduled', data: { code: 'DEPENDENCY_UNAVAILABLE', attempt: 1 } });
  });

  it.each([
    ['COMPUTE_DRIVER_MISMATCH', { compute: { id: 'elsewhere', implementation: 'x' } }],
    ['INVALID_ADMITTED_REVISION', { servicePrincipalId: 'spn_other' }],
    ['BACKEND_UNAVAILABLE', { backendId: 'bck_1' }],
  ])('fails with %s', async (code, change) => {
    const { key } = await world.deploy(agent, change);
    world.startWorker();
    expect(await world.untilFinished(key)).toMatchObject({ state: 'failed_permanent', code });
    expect(world.driver.calls).toEqual([]);
  });

  it('fails with RUNTIME_STARTUP_FAILED where plugins are enabled and no plugin driver is', async () => {
    const settings = { harnessAuth: { method: 'runtime' as const }, configuration: {}, credentialSources: [], plugins: { notes: { enabled: true } } };
    const { key } = await world.deploy(agent, { settings });
    world.startWorker();
    expect(await world.untilFinished(key)).toMatchObject({ code: 'RUNTIME_STARTUP_FAILED' });
  });

  it('fails with NAMESPACE_NOT_READY in a Namespace that is going', async () => {
    const { key } = await world.deploy(agent);
    await world.happened(namespaces, world.namespaceId, [{ type: 'NamespaceDeletionRequested', data: { namespaceId: world.namespaceId } }]);
    world.startWorker();
    expect(await world.untilFinished(key)).toMatchObject({ code: 'NAMESPACE_NOT_READY' });
  });

  it('is granted one more attempt when its last one was lost after publication, and only one', async () => {
    const { key, revisionId } = await world.deploy(agent);
    world.startWorker({ maxAttempts: 1, ...world.dying('deployment:selected') });
    await until('selection', types, (seen) => seen.includes('AgentRevisionSelected'));
    await world.expireClaims();
    let isPreparing = false;
    world.driver.before = async (verb) => {
      if (verb !== 'prepareRevision') return;
      isPreparing = true;
      await world.held;
    };
    world.startWorker({ maxAttempts: 1 });
    await until('recovery', events, (seen) => seen.some(({ type, data }) => type === 'WorkClaimExpired' && data.code === 'ACTIVE_REVISION_RECOVERY'));
    await until('the granted attempt', () => isPreparing, Boolean);
    await world.expireClaims();
    expect(await world.untilFinished(key)).toMatchObject({ state: 'failed_permanent', code: 'LEASE_EXPIRED' });
    expect((await world.agentOf(agent.agentId)).activeRevisionId).toBe(revisionId);
    expect(types()).toEqual(['AgentRevisionAdmitted', 'AgentRevisionSelected', 'WorkClaimExpired', 'DeploymentFailed']);
  });

  it('is brought back up after a restart without a new revision or a result', async () => {
    const { key, revisionId } = await world.deploy(agent);
    world.startWorker();
    await world.untilFinished(key);
    const before = world.eventsOf(agent.agentId);
    world.driver.running.clear();
    world.driver.serving.clear();
    await resumeSelected({ streams: world.streams, driver: world.driver, log: { warn: () => {} } }, world.queue);
    await until('serving again', () => world.driver.serving.get(agent.agentId), (serving) => serving === revisionId);
    expect(world.eventsOf(agent.agentId)).toEqual(before);
    expect((await world.streams.load(agents, agent.agentId)).state).toMatchObject({ activeRevisionId: revisionId });
  });
});
