/** Failure scenarios of the worker: lost claims, crashes, late effects, unreadable settings. */
import { once } from 'node:events';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { agents, iam, namespaces } from '../../src/aggregates.ts';
import type { PresentAgent } from '../../src/agent/agent.ts';
import type { RevisionSettings } from '../../src/agent-revision/messages.ts';
import { unavailable } from '../../src/kernel/errors.ts';
import type { Streams } from '../../src/runtime/streams.ts';
import { newId } from '../../src/kernel/ids.ts';
import { isRegistered } from '../../src/namespace/namespace.ts';
import { sweepOwned } from '../../src/reconcile/sweep.ts';
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

const types = () => world.eventsOf(agent.agentId).slice(1).map(({ type }) => type);
const count = (type: string) => types().filter((seen) => seen === type).length;
const idle = (worker: { running(): number }) => until('the pass to end', () => worker.running(), (running) => running === 0);

/** Grants the actor `delete` by an exact binding only, which the removal itself takes away. */
const bindExactly = async (): Promise<void> => {
  const roleId = newId('role');
  const exact = { bindingId: newId('bnd'), subjectKind: 'identity', subjectId: actor.principalId, roleId, resourceKind: 'agent', resourceId: agent.agentId } as const;
  await world.happened(iam, '', [
    { type: 'AccessBindingDeleted', data: { bindingId: world.bindingId } },
    { type: 'RoleCreated', data: { roleId, permissions: [{ action: 'delete', resourceKind: 'agent' }] } },
    { type: 'AccessBindingCreated', data: { ...exact, namespaceId: world.namespaceId } },
    { type: 'RestrictionCreated', data: { restrictionId: newId('rst'), action: 'read', resourceKind: 'agent', resourceId: agent.agentId } },
  ]);
};

describe('scenario 4: a worker that lost its claim publishes nothing', () => {
  it('although its lease check was still good when it froze', async () => {
    const { key, revisionId } = await world.deploy(agent);
    const { promise: thaw, resolve: warm } = Promise.withResolvers<void>();
    let isFrozen = false;
    world.driver.before = async (verb) => {
      if (verb !== 'prepareRevision' || isFrozen) return;
      isFrozen = true;
      await thaw;
      throw new Error('the call had failed meanwhile');
    };
    const frozen = world.startWorker({
      concurrency: 1,
      through: (queue) => ({
        ...queue,
        renew: (claim) => (isFrozen ? world.held.then(() => false) : queue.renew(claim)),
        verify: async (claim) => (isFrozen ? { remainingMs: 1_000, ageMs: 0 } : queue.verify(claim)),
        requeue: () => Promise.reject(new Error('a lost claim settles no row')),
      }),
    });
    await until('the freeze', () => isFrozen, Boolean);
    await world.expireClaims();
    world.startWorker();
    expect(await world.untilFinished(key)).toMatchObject({ code: 'REVISION_ACTIVATED' });
    warm();
    await idle(frozen);
    expect(types()).toEqual(['AgentRevisionAdmitted', 'WorkClaimExpired', 'AgentRevisionSelected', 'DeploymentActivated']);
    expect((await world.agentOf(agent.agentId)).activeRevisionId).toBe(revisionId);
  });

  it('nor does one whose renewal never answers: its pass is aborted when the last confirmed lease ends', async () => {
    const { key } = await world.deploy(agent);
    let aborted: unknown;
    let isMute = false;
    world.driver.before = (verb, _, { signal }) =>
      verb === 'prepareRevision' && aborted === undefined
        ? ((isMute = true), once(signal, 'abort').then(() => Promise.reject((aborted = signal.reason as Error))))
        : undefined;
    world.startWorker({
      leaseDurationMs: 200,
      through: (queue) => ({
        ...queue,
        claim: async () => (isMute ? undefined : queue.claim()),
        renew: (claim) => (isMute ? world.held.then(() => false) : queue.renew(claim)),
      }),
    });
    expect(await until('the abort', () => aborted, Boolean)).toMatchObject({ name: 'ClaimLost' });
    world.startWorker();
    expect(await world.untilFinished(key)).toMatchObject({ code: 'REVISION_ACTIVATED' });
  });
});

describe('scenario 8: a deletion', () => {
  it.each([
    'deletion:retired',
    'deletion:erased',
    'deletion:finished',
    'deletion:unbound',
    'deletion:rows-erased',
    'deletion:removed',
    'deletion:unrestricted',
    'deletion:released',
  ])('cut off at %s ends removed all the same, whoever holds delete by then', async (point) => {
    await bindExactly();
    const key = await world.remove(agent);
    let isDead = false;
    const { onPoint, through } = world.dying(point);
    world.startWorker({ ...(through && { through }), onPoint: async (name) => ((isDead ||= name === point), onPoint?.(name)) });
    await until(`death at ${point}`, () => isDead, Boolean);
    await world.expireClaims();
    world.startWorker();
    await world.untilRow(key, 'gone', (row) => row === undefined);
    expect((await world.streams.load(agents, agent.agentId)).state).toMatchObject({ phase: 'removed' });
    const { state: policy } = await world.streams.load(iam, '');
    expect(policy.restrictions.size).toBe(0);
    expect(policy.bindings.size).toBe(0);
    expect(policy.identities.has(agent.servicePrincipalId)).toBe(false);
    const { state: namespace } = await world.streams.load(namespaces, world.namespaceId);
    expect(isRegistered(namespace, { kind: 'agent', id: agent.agentId })).toBe(false);
    expect(count('AgentTeardownFinished')).toBe(1);
    expect(count('AgentRemoved')).toBe(1);
  });

  it('is refused before its teardown is finished when its actor lost delete, and stays deleting', async () => {
    const key = await world.remove(agent);
    await world.happened(iam, '', [{ type: 'AccessBindingDeleted', data: { bindingId: world.bindingId } }]);
    world.startWorker();
    expect(await world.untilFinished(key)).toMatchObject({ state: 'failed_permanent', code: 'AUTHORIZATION_DENIED' });
    expect((await world.agentOf(agent.agentId)).deletion).toMatchObject({ failedCode: 'AUTHORIZATION_DENIED' });
    expect(world.metadataOf(agent.agentId, 'AgentTeardownFailed')).toMatchObject([{ audit: { kind: 'authorization_denial', action: 'openclaw.agents.delete' } }]);
    expect(world.driver.calls).toEqual([]);
  });

  it('never fails once its teardown is finished', async () => {
    const key = await world.remove(agent);
    let failures = 5;
    world.startWorker({ deps: { erasePrincipalRows: () => (failures-- > 0 ? Promise.reject(new Error('no')) : Promise.resolve()) } });
    await world.untilRow(key, 'gone', (row) => row === undefined);
    expect(count('AgentTeardownFailed')).toBe(0);
  });

  it('is not held up after its teardown by work that may write nothing any more', async () => {
    const key = await world.remove(agent);
    let failures = 1;
    const erase = () => {
      if (failures-- <= 0) return Promise.resolve();
      return world.deploy(agent).then(() => Promise.reject(new Error('no')));
    };
    world.startWorker({ deps: { erasePrincipalRows: erase } });
    await world.untilRow(key, 'gone', (row) => row === undefined);
    expect(count('AgentRemoved')).toBe(1);
  });

  it('that finishes its teardown with the last attempt is removed with another', async () => {
    const key = await world.remove(agent);
    let [teardowns, removals] = [2, 1];
    world.driver.before = (verb) => (verb === 'deleteAgent' && teardowns-- > 0 ? Promise.reject(new Error('no')) : undefined);
    world.startWorker({ deps: { erasePrincipalRows: () => (removals-- > 0 ? Promise.reject(new Error('no')) : Promise.resolve()) } });
    await world.untilRow(key, 'gone', (row) => row === undefined);
    expect((await world.streams.load(agents, agent.agentId)).state).toMatchObject({ phase: 'removed' });
  });
});

describe('scenario 18: unreadable settings never prevent stop, delete or retirement', () => {
  it('of a revision, which itself cannot be deployed', async () => {
    const { key: first } = await world.deploy(agent);
    world.startWorker();
    await world.untilFinished(first);
    const settings = { harnessAuth: { method: 'retired-method' }, configuration: {}, credentialSources: [] } as unknown as RevisionSettings;
    const broken = await world.deploy(agent, { settings });
    expect(await world.untilFinished(broken.key)).toMatchObject({ code: 'INVALID_ADMITTED_REVISION' });
    const stopKey = await world.stop(agent);
    expect(await world.untilFinished(stopKey)).toMatchObject({ code: 'AGENT_STOPPED' });
    expect(world.driver.calls).toContain(`stopRevision ${broken.revisionId}`);
    const good = await world.deploy(agent);
    expect(await world.untilFinished(good.key)).toMatchObject({ code: 'REVISION_ACTIVATED' });
    expect(world.driver.calls).toContain(`retireRevision ${broken.revisionId}`);
    const deletion = await world.remove(agent);
    await world.untilRow(deletion, 'gone', (row) => row === undefined);
    expect(world.faults).toEqual([]);
  });
});

describe('scenario 21: a stop sweeps revisions admitted before it in the stream, whatever the clocks say', () => {
  it('and a deployment admitted after it wins', async () => {
    const first = await world.deploy(agent);
    const stopKey = await world.stop(agent);
    const second = await world.deploy(agent);
    world.startWorker();
    expect(await world.untilFinished(first.key)).toMatchObject({ code: 'REVISION_ACTIVATED' });
    expect(await world.untilFinished(stopKey)).toMatchObject({ state: 'succeeded', code: 'STOP_SUPERSEDED' });
    expect(await world.untilFinished(second.key)).toMatchObject({ code: 'REVISION_ACTIVATED' });
    expect(world.driver.calls).not.toContain(`stopRevision ${second.revisionId}`);
  });

  it('the selected one first, then failed candidates and predecessors, and never one that is admitted while it runs', async () => {
    world.driver.observe = ({ number }) => (number === 2 ? { ready: false, runtimeFailure: { component: 'gateway', check: 'x', checkedAt: '2026-01-01T00:00:00Z', code: 'UNAVAILABLE' } } : { ready: true });
    const first = await world.deploy(agent);
    world.startWorker();
    await world.untilFinished(first.key);
    const failed = await world.deploy(agent);
    expect(await world.untilFinished(failed.key)).toMatchObject({ code: 'RUNTIME_STARTUP_FAILED' });
    world.driver.calls.length = 0;
    const stopKey = await world.stop(agent);
    expect(await world.untilFinished(stopKey)).toMatchObject({ code: 'AGENT_STOPPED' });
    expect(world.driver.calls).toEqual([`bindAgent ${agent.agentId}`, `stopRevision ${first.revisionId}`, `stopRevision ${failed.revisionId}`]);
    expect((await world.agentOf(agent.agentId)).activeRevisionId).toBeNull();
  });
});

describe('scenario 24: a late effect after the end', () => {
  it('is refused by its fencing number, and the sweep retires what slipped through', async () => {
    const { revisionId } = await world.deploy(agent);
    const { promise: thaw, resolve: warm } = Promise.withResolvers<void>();
    let late: Promise<void> | undefined;
    world.driver.before = (verb) => (verb === 'prepareRevision' && late === undefined ? (late = thaw) : undefined);
    const frozen = world.startWorker({
      leaseDurationMs: 1_000,
      concurrency: 1,
      through: (queue) => ({
        ...queue,
        expired: async () => [],
        renew: (claim) => (late === undefined ? queue.renew(claim) : world.held.then(() => false)),
      }),
    });
    await until('a call on the wire', () => late !== undefined, Boolean);
    const deletion = await world.remove(agent);
    world.startWorker();
    await world.untilRow(deletion, 'gone', (row) => row === undefined);
    warm();
    await idle(frozen);
    expect(world.driver.running).not.toContain(revisionId);
    world.driver.calls.length = 0;
    world.driver.ownedAgents = async () => [agent, { namespaceId: world.namespaceId, agentId: newId('agt') }];
    await sweepOwned({ streams: world.streams, driver: world.driver, log: { warn: () => {} } }, new AbortController().signal);
    expect(world.driver.calls).toEqual([`retireRevision ${revisionId}`, `deleteAgent ${agent.agentId}`]);
  });
});

describe('scenario 32: a denial and the result it causes', () => {
  it('are one append', async () => {
    const stopKey = await world.stop(agent);
    await world.happened(iam, '', [{ type: 'AccessBindingDeleted', data: { bindingId: world.bindingId } }]);
    world.startWorker();
    expect(await world.untilFinished(stopKey)).toMatchObject({ code: 'AUTHORIZATION_DENIED' });
    expect(types()).toEqual(['AgentStopRequested', 'AgentStopFailed']);
    expect(world.metadataOf(agent.agentId, 'AgentStopFailed')).toMatchObject([
      { audit: { kind: 'authorization_denial', action: 'openclaw.agents.stop', authorization: { action: 'operate' } } },
    ]);
  });
});

describe('scenario 33: a row finished without its event is never believed; recovery folds first', () => {
  it('closes the row of a pass that died after its closing event, with no sign of a lost lease', async () => {
    const { key } = await world.deploy(agent);
    world.startWorker({ through: (queue) => ({ ...queue, expired: async () => [], finish: () => world.held.then(() => false) }) });
    await until('the closing event', () => count('DeploymentActivated'), (seen) => seen === 1);
    await world.expireClaims();
    world.startWorker();
    expect(await world.untilFinished(key)).toEqual({ state: 'succeeded', code: 'REVISION_ACTIVATED', attempts: 1 });
    expect(count('WorkClaimExpired')).toBe(0);
  });

  it('writes the failure of a lost last attempt before the row ends', async () => {
    const { key } = await world.deploy(agent);
    let isDead = false;
    world.driver.before = () => ((isDead = true), world.held);
    world.startWorker({ maxAttempts: 1, through: (queue) => ({ ...queue, expired: async () => [] }) });
    await until('a pass', () => isDead, Boolean);
    await world.expireClaims();
    world.startWorker({ maxAttempts: 1, through: (queue) => ({ ...queue, finishExpired: () => world.held.then(() => false) }) });
    await until('the failure event', () => count('DeploymentFailed'), (seen) => seen === 1);
    expect(await world.rowOf(key)).toMatchObject({ state: 'claimed' });
    world.startWorker({ maxAttempts: 1 });
    expect(await world.untilFinished(key)).toMatchObject({ state: 'failed_permanent', code: 'LEASE_EXPIRED' });
  });

  it('runs no effect for a row that came back after its work was closed', async () => {
    const { key } = await world.deploy(agent);
    world.startWorker();
    await world.untilFinished(key);
    world.driver.calls.length = 0;
    await world.pool.query(`update work_item set state = 'queued', reason_code = null, attempt_count = 0`);
    expect(await world.untilFinished(key)).toMatchObject({ state: 'succeeded', code: 'REVISION_ACTIVATED' });
    expect(world.driver.calls).toEqual([]);
  });
});

it('an event store that does not answer spends no attempt', async () => {
  const { key } = await world.deploy(agent);
  let outages = 3;
  const load: Streams['load'] = (aggregate, id) => (outages-- > 0 ? Promise.reject(unavailable('event store')) : world.streams.load(aggregate, id));
  world.startWorker({ deps: { streams: { ...world.streams, load } } });
  await until('the outages', async () => (await world.makeDue(), outages), (left) => left <= 0);
  await world.makeDue();
  expect(await world.untilFinished(key)).toEqual({ state: 'succeeded', code: 'REVISION_ACTIVATED', attempts: 1 });
});

describe('a worker that is stopped', () => {
  it('aborts its passes, waits for them, and gives the attempt back', async () => {
    const { key } = await world.deploy(agent);
    let isPreparing = false;
    world.driver.before = async (verb, _, { signal }) => {
      if (verb !== 'prepareRevision') return;
      isPreparing = true;
      await once(signal, 'abort');
      signal.throwIfAborted();
    };
    const worker = world.startWorker();
    await until('a running pass', () => isPreparing, Boolean);
    await worker.stop();
    expect(worker.running()).toBe(0);
    expect(await world.rowOf(key)).toEqual({ state: 'queued', code: null, attempts: 0 });
  });
});
