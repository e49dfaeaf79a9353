/** How a pass can end other than well: the closed codes, what each does to its work item, and what clients may see of it. (agent-lifecycle 3.5, 3.8, 3.9, 3.11) */
import { ActivationFailed, ActivationPending, TransientDependency, type Observation, type RuntimeFailure } from '../compute/driver.ts';
import type { ResourceRef } from '../kernel/event.ts';
import type { Finished } from '../runtime/worker.ts';

/** A permission that was judged and refused. */
export interface Denial {
  readonly principalId: string;
  readonly action: string;
  readonly resource: ResourceRef;
  readonly reason: string;
}

export type FailureData = Readonly<Record<string, unknown>>;

export type Outcome =
  /** Not done yet; the attempt is given back. */
  | {
      readonly kind: 'pending';
      readonly code: string;
      /** How soon to look again: at the readiness cadence, or with backoff. */
      readonly cadence: 'readiness' | 'backoff';
      /** Its own code outlives the convergence deadline. */
      readonly transient?: true;
      readonly runtimeFailure?: RuntimeFailure | undefined;
    }
  /** A refused candidate could not be stopped yet; waits without limit. */
  | { readonly kind: 'stop-pending'; readonly refusal: string; readonly stopMs: number }
  | { readonly kind: 'retry'; readonly code: string }
  | {
      readonly kind: 'permanent';
      readonly code: string;
      readonly data?: FailureData | undefined;
      readonly denial?: Denial;
      /** The control plane's verdict, not the candidate's own failure: such a candidate must not keep serving. (3.13) */
      readonly refused: boolean;
    };

/** Ends a pass early. */
export class Ended extends Error {
  override readonly name = 'Ended';
  readonly outcome: Outcome;

  constructor(outcome: Outcome) {
    super(outcome.kind);
    this.outcome = outcome;
  }
}

export const refuse = (code: string, denial?: Denial): Ended =>
  new Ended({ kind: 'permanent', code, refused: true, ...(denial !== undefined && { denial }) });
export const fail = (code: string, data?: FailureData): Ended => new Ended({ kind: 'permanent', code, data, refused: false });
export const retry = (code: string): Ended => new Ended({ kind: 'retry', code });
export const pending = (code: string, runtimeFailure?: RuntimeFailure): Ended =>
  new Ended({ kind: 'pending', code, cadence: 'readiness', runtimeFailure });
/** Waits with backoff: something that should have worked did not, after the revision was selected. */
export const unfinished = (code: string): Ended => new Ended({ kind: 'pending', code, cadence: 'backoff' });

export const dependencyUnavailable = 'DEPENDENCY_UNAVAILABLE';
export const refusedCandidateStopPending = 'REFUSED_CANDIDATE_STOP_PENDING';

const successCodes = new Set([
  'REVISION_ACTIVATED',
  'REVISION_ALREADY_ACTIVE',
  'REVISION_SUPERSEDED',
  'REVISION_STOPPED',
  'AGENT_STOPPED',
  'AGENT_ALREADY_STOPPED',
  'STOP_SUPERSEDED',
  'NAMESPACE_READY',
  'NAMESPACE_DELETED',
]);

/** How a row ends whose closing event carries this code. */
export const finished = (code: string): Finished => ({ kind: 'finished', state: successCodes.has(code) ? 'succeeded' : 'failed_permanent', code });

/** Runtime codes the runtime holds until a restart nobody performs, and what each ends its deployment with. */
const heldFailures: ReadonlyMap<string, string> = new Map([
  ['AUTHENTICATION_FAILED', 'RUNTIME_AUTHENTICATION_FAILED'],
  ['MODEL_PROBE_CPU_STARVED', 'RUNTIME_CPU_STARVED'],
  ['MODEL_PROBE_TIMEOUT', 'RUNTIME_MODEL_PROBE_TIMEOUT'],
  ['MODEL_PROBE_FAILED', 'RUNTIME_MODEL_PROBE_FAILED'],
  ['LOGIN_FAILED', 'RUNTIME_LOGIN_FAILED'],
  ['UNAVAILABLE', 'RUNTIME_STARTUP_FAILED'],
  ['INCOMPATIBLE_RESPONSE', 'RUNTIME_STARTUP_FAILED'],
  ['WORKSPACE_SETUP_REFUSED', 'WORKSPACE_SETUP_REFUSED'],
]);

const pendingCodes = { WORKLOAD_UNSCHEDULABLE: 'REVISION_UNSCHEDULABLE', WORKSPACE_NODE_PENDING: 'WORKSPACE_NODE_PENDING' } as const;

const identifier = /^[A-Za-z0-9._~:@-]{1,64}$/;
const evidenceTime = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:[0-5]\d(\.\d{1,9})?(Z|[+-]\d{2}:\d{2})$/;
const causes: Readonly<Record<string, RegExp>> = {
  PROCESS_EXIT: /^(exit-\d{1,3}|signal-[A-Z0-9]{1,16}|error-[A-Z0-9]{1,32})$/,
  PROBE_STATUS: /^(format|rate_limit|billing|unknown|no_model|other|turn-failed|error-event|tool-event|unexpected-event|no-reply)$/,
  INVALID_OUTPUT: /^(json|shape)$/,
};

const known = (value: string): string => (identifier.test(value) ? value : 'UNRECOGNIZED');

const isValidCause = ({ kind, detail }: NonNullable<RuntimeFailure['cause']>): boolean =>
  kind === 'WRAPPER_ERROR' ? detail === undefined : detail !== undefined && causes[kind]?.test(detail) === true;

/** What clients may see of runtime evidence; undefined where it names no real time. */
const publicFailure = (failure: RuntimeFailure | undefined, withCause: boolean): FailureData | undefined => {
  if (failure === undefined || !evidenceTime.test(failure.checkedAt) || Number.isNaN(Date.parse(failure.checkedAt))) return undefined;
  const { component, check, checkedAt, code, cause } = failure;
  const evidence = { component: known(component), check: known(check), checkedAt, code: known(code) };
  if (!withCause || cause === undefined || !isValidCause(cause)) return evidence;
  return { ...evidence, cause: cause.detail === undefined ? { kind: cause.kind } : { kind: cause.kind, detail: cause.detail } };
};

/** Judges an observation that is not ready. */
export const unready = ({ runtimeFailure, pendingReason }: Observation): Ended => {
  const held = runtimeFailure === undefined ? undefined : heldFailures.get(runtimeFailure.code);
  if (held === 'RUNTIME_MODEL_PROBE_FAILED') {
    const evidence = publicFailure(runtimeFailure, true);
    return fail(held, evidence && { runtimeFailure: evidence });
  }
  if (held !== undefined) return fail(held);
  return pending(pendingReason === undefined ? 'REVISION_INCOMPLETE' : pendingCodes[pendingReason], runtimeFailure);
};

/** Judges what a deployment's driver call threw; after publication only the gateway's own refusal is final. */
export const driverFailure = (error: unknown, published: boolean): Ended => {
  if (error instanceof TransientDependency) return new Ended({ kind: 'pending', code: error.code, cadence: 'readiness', transient: true });
  if (error instanceof ActivationPending) return pending(error.code);
  if (error instanceof ActivationFailed) return fail(error.code);
  return published ? unfinished('REVISION_FINALIZATION_INCOMPLETE') : retry(dependencyUnavailable);
};

/** A pending outcome of an item that has waited too long becomes final; what a transient dependency holds up ends with its code. */
export const atDeadline = (outcome: Outcome, ageMs: number, timeoutMs: number): Outcome => {
  if (outcome.kind !== 'pending' || ageMs < timeoutMs) return outcome;
  if (outcome.transient === true) return { kind: 'permanent', code: outcome.code, refused: false };
  const evidence = publicFailure(outcome.runtimeFailure, false);
  const data = evidence === undefined ? { timeoutMs } : { timeoutMs, runtimeFailure: evidence };
  return { kind: 'permanent', code: 'CONVERGENCE_DEADLINE_EXCEEDED', data, refused: false };
};

/** Delays of section 3.3, in milliseconds. */
const longestBackoffMs = 300_000;

/** Backoff with full jitter; `attempt` counts claims so far and `random` is uniform in [0, 1). */
export const backoffMs = (attempt: number, random: number): number =>
  Math.floor(Math.min(longestBackoffMs, 1_000 * 2 ** Math.min(Math.max(attempt - 1, 0), 30)) * random);

export const readinessRecheckMs = (ageMs: number): number => Math.min(5_000, Math.max(500, Math.round(ageMs / 40)));

/** Grows with every failed stop, and leaves the lane free four times as long as the stop took. */
export const refusedStopRecheckMs = (ageMs: number, earlierFailures: number, stopMs: number): number =>
  Math.max(Math.min(longestBackoffMs, readinessRecheckMs(ageMs) * 2 ** Math.min(earlierFailures, 20)), Math.ceil(4 * stopMs));
