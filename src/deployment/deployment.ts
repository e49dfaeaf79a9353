/** The deployment's public status, derived purely from what its events and its work row say. (agent-lifecycle 3.15, rest-contract 2.7) */
import type { Json } from '../kernel/canonical.ts';
import { attemptMessage, errorMessage } from './texts.ts';
import type { DeploymentRecord, DeploymentStatus, WorkStanding } from './view.ts';

export interface DeploymentView {
  readonly deploymentId: string;
  readonly namespaceId: string;
  readonly agentId: string;
  readonly status: DeploymentStatus;
  readonly error: { readonly code: string; readonly message: string; readonly data?: Json } | null;
  readonly warnings: readonly { readonly code: string; readonly pluginId: string }[];
  readonly progress: {
    readonly lastAttempt: { readonly at: string; readonly code: string; readonly message: string } | null;
    /** Earliest eligibility; null while claimed. */
    readonly nextAttemptAt: string | null;
  } | null;
  readonly cleanup: { readonly status: 'queued' | 'running' | 'succeeded'; readonly nextAttemptAt: string | null } | null;
}

const activated = new Set(['REVISION_ACTIVATED', 'REVISION_ALREADY_ACTIVE']);

/** Codes shown as they are recorded; every other one reads as pending. */
const shownAttempts = new Set([
  'RECONCILIATION_PENDING',
  'REVISION_INCOMPLETE',
  'REVISION_UNSCHEDULABLE',
  'WORKSPACE_NODE_PENDING',
  'WORKSPACE_NODE_BINDING_PENDING',
  'DEPENDENCY_UNAVAILABLE',
  'AGENT_GATEWAY_UNAVAILABLE',
  'KUBERNETES_API_UNAVAILABLE',
  'SANDBOX_ADMISSION_LIMIT_REACHED',
  'ACTIVE_REVISION_CHANGED',
  'LEASE_EXPIRED',
  'ACTIVE_REVISION_RECOVERY',
  'REFUSED_CANDIDATE_STOP_PENDING',
]);

/** A stored reason as a public code: upper case, `[A-Z0-9_]`, at most 64. */
const publicCode = (code: string): string => (code === '' ? 'UNKNOWN_FAILURE' : code.toUpperCase().replace(/[^A-Z0-9_]/g, '_').slice(0, 64));

const lastAttempt = ({ lastAttempt: attempt }: DeploymentRecord) => {
  if (attempt === null) return null;
  const code = shownAttempts.has(attempt.code) ? attempt.code : 'RECONCILIATION_PENDING';
  return { at: attempt.at, code, message: attemptMessage(code, attempt.refusal === null ? null : publicCode(attempt.refusal)) };
};

/** Terminal comes from events only; a work row that is not there yet reads as queued and due. (failure scenarios 15 and 33) */
export const deploymentView = (record: DeploymentRecord, work: WorkStanding | null): DeploymentView => {
  const { revisionId, namespaceId, agentId, result } = record;
  const place = { deploymentId: revisionId, namespaceId, agentId };
  if (result !== null) {
    if (activated.has(result.code)) return { ...place, status: 'succeeded', error: null, warnings: result.warnings, progress: null, cleanup: null };
    const code = publicCode(result.code);
    const error = { code, message: errorMessage(code), ...(result.data !== null && { data: result.data }) };
    return { ...place, status: 'failed', error, warnings: [], progress: null, cleanup: null };
  }
  const finishedWithoutEvent = work?.state === 'succeeded' || work?.state === 'failed_permanent';
  const running = work !== null && (work.live || finishedWithoutEvent);
  const nextAttemptAt = work === null ? record.createdAt : work.state === 'queued' ? work.availableAt : null;
  return { ...place, status: running ? 'running' : 'queued', error: null, warnings: [], progress: { lastAttempt: lastAttempt(record), nextAttemptAt }, cleanup: null };
};
