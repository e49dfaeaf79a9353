/** What the passes need of the rest of the product. */
import type { ComputeDriver } from '../compute/driver.ts';
import type { Policy } from '../iam/policy.ts';
import type { Loaded, Streams } from '../runtime/streams.ts';

/** Policy at the tail of its stream; a throw is an outage, never a denial. (agent-lifecycle 3.7) */
export interface PolicySource {
  current(): Promise<Loaded<Policy>>;
}

export interface HarnessDescriptor {
  readonly id: string;
  readonly version: string;
  readonly mode: 'embedded' | 'dedicated';
}

export interface ReconcileSettings {
  readonly maxAttempts: number;
  readonly convergenceTimeoutMs: number;
}

export interface ReconcileLog {
  warn(facts: object, message: string): void;
}

export interface ReconcileDependencies {
  readonly streams: Streams;
  readonly driver: ComputeDriver;
  readonly policy: PolicySource;
  /** Whether this build still runs the harness a revision was admitted with. */
  readonly approvesHarness: (harness: HarnessDescriptor) => boolean;
  /** Erases the private rows of a service principal that goes with its Agent or its Namespace; repeatable. */
  readonly erasePrincipalRows: (servicePrincipalId: string) => Promise<void>;
  readonly settings: ReconcileSettings;
  readonly log: ReconcileLog;
  /** Uniform in [0, 1), for the jitter of backoffs. */
  readonly random: () => number;
  /** Called at the named points of a pass; a test may end the process there. */
  readonly onPoint?: (name: string) => Promise<void>;
}
