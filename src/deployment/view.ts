/** What clients see of one admission: status, progress, error; events and the work table combined at read time. (agent-lifecycle 3.15) */
import type { Json } from '../kernel/canonical.ts';
import type { Reading } from '../runtime/reading.ts';

export type DeploymentStatus = 'queued' | 'running' | 'succeeded' | 'failed';

/** What the events of an admission say, before the work table is asked. */
export interface DeploymentRecord {
  readonly revisionId: string;
  readonly namespaceId: string;
  readonly agentId: string;
  readonly createdAt: string;
  /** Set by the closing event, once. */
  readonly result: {
    readonly code: string;
    readonly data: Json | null;
    readonly warnings: readonly { readonly code: string; readonly pluginId: string }[];
  } | null;
  /** Latest evidence bound to this exact work. */
  readonly lastAttempt: { readonly at: string; readonly code: string; readonly refusal: string | null } | null;
}

/** What the work table says, judged by PostgreSQL's clock; null while the saga has not written the row. */
export interface WorkStanding {
  /** A claim whose lease is still running. */
  readonly live: boolean;
  /** `queued` or `claimed`; a finished row without its event reads as live. */
  readonly state: 'queued' | 'claimed' | 'succeeded' | 'failed_permanent';
  readonly availableAt: string;
}

export interface DeploymentReads {
  /** Admissions by revision id, each with its work row. */
  byIds(revisionIds: readonly string[]): Promise<Reading<{ readonly record: DeploymentRecord; readonly work: WorkStanding | null }>>;
  /** The newest admission of each Agent, all in one statement. */
  latestOfAgents(agentIds: readonly string[]): Promise<Reading<{ readonly record: DeploymentRecord; readonly work: WorkStanding | null }>>;
  /** Work rows by work key: what {@link byIds} adds when the record is folded from the stream. */
  standings(workKeys: readonly string[]): Promise<ReadonlyMap<string, WorkStanding>>;
}
