/** The closed codes, deadlines and cadences of a pass. */
import { describe, expect, it } from 'vitest';
import { ActivationPending, TransientDependency, type RuntimeFailure } from '../../src/compute/driver.ts';
import { atDeadline, backoffMs, driverFailure, readinessRecheckMs, refusedStopRecheckMs, unready } from '../../src/reconcile/outcome.ts';

const seen = { namespaceId: 'ns', agentId: 'agt', revisionId: 'rev', ready: false };
const evidence = (code: string, more: Partial<RuntimeFailure> = {}): RuntimeFailure => ({ component: 'gateway', check: 'process-start', checkedAt: '2026-01-02T03:04:05.6Z', code, ...more });

describe('an observation that is not ready', () => {
  it.each([
    ['AUTHENTICATION_FAILED', 'RUNTIME_AUTHENTICATION_FAILED'],
    ['MODEL_PROBE_CPU_STARVED', 'RUNTIME_CPU_STARVED'],
    ['MODEL_PROBE_TIMEOUT', 'RUNTIME_MODEL_PROBE_TIMEOUT'],
    ['LOGIN_FAILED', 'RUNTIME_LOGIN_FAILED'],
    ['UNAVAILABLE', 'RUNTIME_STARTUP_FAILED'],
    ['INCOMPATIBLE_RESPONSE', 'RUNTIME_STARTUP_FAILED'],
    ['WORKSPACE_SETUP_REFUSED', 'WORKSPACE_SETUP_REFUSED'],
  ])('holding %s ends with %s and no data', (runtime, code) => {
    expect(unready({ ...seen, runtimeFailure: evidence(runtime) }).outcome).toEqual({ kind: 'permanent', code, data: undefined, refused: false });
  });

  it.each([
    [{}, 'REVISION_INCOMPLETE'],
    [{ pendingReason: 'WORKLOAD_UNSCHEDULABLE' as const }, 'REVISION_UNSCHEDULABLE'],
    [{ pendingReason: 'WORKSPACE_NODE_PENDING' as const }, 'WORKSPACE_NODE_PENDING'],
    [{ runtimeFailure: evidence('SOMETHING_ELSE') }, 'REVISION_INCOMPLETE'],
  ])('with %o waits as %s', (more, code) => {
    expect(unready({ ...seen, ...more }).outcome).toMatchObject({ kind: 'pending', code, cadence: 'readiness' });
  });

  it('keeps the evidence of a failed model probe, and drops a cause outside the vocabulary', () => {
    const dataOf = (more: Partial<RuntimeFailure>) => unready({ ...seen, runtimeFailure: evidence('MODEL_PROBE_FAILED', more) }).outcome;
    expect(dataOf({ cause: { kind: 'PROBE_STATUS', detail: 'billing' } })).toMatchObject({ data: { runtimeFailure: { cause: { kind: 'PROBE_STATUS', detail: 'billing' } } } });
    expect(dataOf({ cause: { kind: 'PROBE_STATUS', detail: 'sk-secret' } })).toEqual({
      kind: 'permanent',
      code: 'RUNTIME_MODEL_PROBE_FAILED',
      data: { runtimeFailure: evidence('MODEL_PROBE_FAILED') },
      refused: false,
    });
    expect(dataOf({ checkedAt: 'yesterday' })).toMatchObject({ data: undefined });
  });
});

describe('the convergence deadline', () => {
  const pending = { kind: 'pending', code: 'REVISION_INCOMPLETE', cadence: 'readiness' } as const;

  it('ends what waited too long, with the last evidence and without its cause', () => {
    const runtimeFailure = evidence('NOT_YET', { component: 'über', cause: { kind: 'WRAPPER_ERROR' } });
    expect(atDeadline(pending, 999, 1_000)).toBe(pending);
    expect(atDeadline(pending, 1_000, 1_000)).toMatchObject({ kind: 'permanent', code: 'CONVERGENCE_DEADLINE_EXCEEDED', data: { timeoutMs: 1_000 } });
    expect(atDeadline({ ...pending, runtimeFailure }, 1_000, 1_000)).toMatchObject({
      data: { timeoutMs: 1_000, runtimeFailure: { component: 'UNRECOGNIZED', check: 'process-start', checkedAt: '2026-01-02T03:04:05.6Z', code: 'NOT_YET' } },
    });
  });

  it('names the dependency that held it up, and spares stops of refused candidates and retries', () => {
    expect(atDeadline({ ...pending, code: 'AGENT_GATEWAY_UNAVAILABLE', transient: true }, 9, 1)).toEqual({ kind: 'permanent', code: 'AGENT_GATEWAY_UNAVAILABLE', refused: false });
    const stopPending = { kind: 'stop-pending', refusal: 'AUTHORIZATION_DENIED', stopMs: 1 } as const;
    expect(atDeadline(stopPending, 9, 1)).toBe(stopPending);
  });
});

it('driver errors wait, retry or finish later, depending on publication', () => {
  expect(driverFailure(new TransientDependency('SANDBOX_ADMISSION_LIMIT_REACHED'), true).outcome).toMatchObject({ kind: 'pending', transient: true });
  expect(driverFailure(new ActivationPending('WORKSPACE_NODE_BINDING_PENDING'), false).outcome).toMatchObject({ kind: 'pending', code: 'WORKSPACE_NODE_BINDING_PENDING' });
  expect(driverFailure(new Error('?'), false).outcome).toEqual({ kind: 'retry', code: 'DEPENDENCY_UNAVAILABLE' });
  expect(driverFailure(new Error('?'), true).outcome).toEqual({ kind: 'pending', code: 'REVISION_FINALIZATION_INCOMPLETE', cadence: 'backoff' });
});

it('cadences', () => {
  expect([0, 20_000, 60_000, 200_000, 900_000].map(readinessRecheckMs)).toEqual([500, 500, 1_500, 5_000, 5_000]);
  expect([1, 2, 5, 9, 40].map((attempt) => backoffMs(attempt, 0.999_999))).toEqual([999, 1_999, 15_999, 255_999, 299_999]);
  expect(backoffMs(3, 0)).toBe(0);
  expect([0, 1, 4, 30].map((failures) => refusedStopRecheckMs(0, failures, 10))).toEqual([500, 1_000, 8_000, 300_000]);
  expect(refusedStopRecheckMs(0, 0, 100_000)).toBe(400_000);
});
