/**
 * The Compute driver port: the one place where the control plane touches the world that runs Agents.
 * Every verb may be called again at any time and at any point of an earlier call's failure.
 * (compute-drivers sections 1 and 14, agent-lifecycle section 10, failure scenario 24)
 */
import type { Json } from '../kernel/canonical.ts';

/** The workload an Agent's bound identity names. */
export interface AgentIdentity {
  readonly namespaceId: string;
  readonly agentId: string;
  readonly servicePrincipalId: string;
}

/** What a driver may know of an immutable AgentRevision. References only, never a credential's value. */
export interface RevisionSnapshot extends AgentIdentity {
  readonly revisionId: string;
  /** Per Agent, from 1. */
  readonly number: number;
  readonly executionMode: 'embedded' | 'dedicated';
  readonly harness: { readonly id: string; readonly version: string; readonly mode: 'embedded' | 'dedicated' };
  readonly compute: { readonly id: string; readonly implementation: string };
  readonly harnessAuth: Json;
  /** The admitted native document. */
  readonly configuration: Json;
}

/**
 * The fencing number of a pass: the revision of the Agent's stream when the pass began. A driver keeps the
 * highest number it has seen per Agent, where the effect happens, and refuses smaller ones with {@link FencedOff}.
 */
export type Fence = number;

/** A call of a pass that has been overtaken by a later one; nothing was done. */
export class FencedOff extends Error {
  override readonly name = 'FencedOff';
}

/** A dependency of the driver did not answer; never spends an attempt. (agent-lifecycle 3.9) */
export class TransientDependency extends Error {
  override readonly name = 'TransientDependency';
  readonly code: 'AGENT_GATEWAY_UNAVAILABLE' | 'KUBERNETES_API_UNAVAILABLE' | 'SANDBOX_ADMISSION_LIMIT_REACHED';

  constructor(code: TransientDependency['code'], options?: { cause?: unknown }) {
    super(code, options);
    this.code = code;
  }
}

/** Activation is under way and not finished; asked again at the readiness cadence. */
export class ActivationPending extends Error {
  override readonly name = 'ActivationPending';
  readonly code: string;

  constructor(code = 'REVISION_INCOMPLETE') {
    super(code);
    this.code = code;
  }
}

/** Activation can never succeed for this revision. */
export class ActivationFailed extends Error {
  override readonly name = 'ActivationFailed';
  readonly code: 'AGENT_GATEWAY_UNAUTHORIZED';

  constructor(code: ActivationFailed['code'] = 'AGENT_GATEWAY_UNAUTHORIZED') {
    super(code);
    this.code = code;
  }
}

/** Startup evidence the runtime holds; identifiers are 1 to 64 of `A-Za-z0-9._~:@-`. (agent-lifecycle 3.8, 3.15) */
export interface RuntimeFailure {
  readonly component: string;
  readonly check: string;
  /** RFC 3339. */
  readonly checkedAt: string;
  readonly code: string;
  readonly cause?: { readonly kind: 'PROCESS_EXIT' | 'PROBE_STATUS' | 'INVALID_OUTPUT' | 'WRAPPER_ERROR'; readonly detail?: string };
}

/** What a driver sees of a revision. Identities must equal the request. `ready: false` is pending, not an error. */
export interface Observation {
  readonly namespaceId: string;
  readonly agentId: string;
  readonly revisionId: string;
  readonly ready: boolean;
  readonly pendingReason?: 'WORKLOAD_UNSCHEDULABLE' | 'WORKSPACE_NODE_PENDING';
  readonly runtimeFailure?: RuntimeFailure;
  readonly warnings?: readonly { readonly code: 'PLUGIN_INSTALL_FAILED' | 'PLUGIN_AUTH_REQUIRED'; readonly pluginId: string }[];
}

/** One piece of fresh evidence about a revision; identifiers are those of {@link RuntimeFailure}. (agent-lifecycle section 8) */
export interface DiagnosticCheck {
  readonly component: string;
  readonly check: string;
  readonly state: 'succeeded' | 'failed' | 'unknown';
  /** RFC 3339; null when nothing could be asked. */
  readonly checkedAt: string | null;
  readonly code?: string;
}

export interface NamespaceObservation {
  readonly namespaceId: string;
  readonly done: boolean;
  readonly failure?: 'retryable' | 'permanent';
}

export interface EffectOptions {
  readonly fence: Fence;
  /** Aborted when the claim is lost or the worker shuts down; the call should end soon after. */
  readonly signal: AbortSignal;
}

/** Where a gateway listens; private to the control plane. */
export interface GatewayEndpoint {
  readonly url: string;
  readonly token: string;
  /** PEM of what its certificate is verified by, in place of the authorities this host trusts. */
  readonly certificate?: string;
}

/** The verdict of {@link ComputeDriver.admit} on a draft. */
export type Admission =
  | { readonly admitted: true }
  /** The binding, the execution mode or a gateway setting is not supported here: `409 RESOURCE_CONFLICT`. */
  | { readonly admitted: false; readonly reason: string };

export interface ComputeDriver {
  /** Both names are pinned by every revision; a revision pinned elsewhere is refused. */
  readonly id: string;
  readonly implementation: string;

  /** Pure: whether this driver can run a draft with this mode, harness binding and native document. */
  admit(draft: { readonly executionMode: 'embedded' | 'dedicated'; readonly harnessAuth: Json; readonly configuration: Json }): Admission;
  /** Pure: whether all predecessors have to be stopped before this revision is prepared. */
  requiresStoppedPredecessors(revision: RevisionSnapshot): boolean;

  ensureNamespace(namespaceId: string, options: { readonly signal: AbortSignal }): Promise<NamespaceObservation>;
  /** Tears down an empty Namespace. */
  deleteNamespace(namespaceId: string, options: { readonly signal: AbortSignal }): Promise<NamespaceObservation>;

  /** Receives the approved identity before the first effect of a pass. */
  bindAgent(agent: AgentIdentity, options: EffectOptions): Promise<void>;
  /** Makes or reuses the workload; must not route traffic to it before it is activated. Returns without waiting for readiness. */
  prepareRevision(revision: RevisionSnapshot, options: EffectOptions): Promise<Observation>;
  /** Switches serving to a ready and authenticated revision. @throws ActivationPending, ActivationFailed */
  activateRevision(revision: RevisionSnapshot, options: EffectOptions): Promise<void>;
  /** Removes routing, then execution, and waits until it is gone; keeps state, workspace and credentials. */
  stopRevision(revision: RevisionSnapshot, options: EffectOptions): Promise<void>;
  /** Stops the revision if it still runs and removes what it alone owns; preserves what a successor owns. */
  retireRevision(revision: RevisionSnapshot, options: EffectOptions): Promise<void>;
  /**
   * Removes the Agent's secrets, state and workspace. From then on prepare and activate are refused with any fence,
   * while bind, stop, retire and delete do nothing and succeed: a teardown that crashed is repeated whole.
   */
  deleteAgent(agent: AgentIdentity, options: EffectOptions): Promise<void>;

  /**
   * Fresh evidence about a revision, a held startup failure first; a workload that is absent or was replaced reads `unknown`.
   * Changes nothing. Rejects when the evidence cannot be collected.
   */
  diagnoseRevision(revision: RevisionSnapshot, options: { readonly signal: AbortSignal }): Promise<readonly DiagnosticCheck[]>;
  /** Where the serving gateway of an Agent listens. Undefined when nothing serves. */
  gatewayEndpoint(agent: { readonly namespaceId: string; readonly agentId: string }): GatewayEndpoint | undefined;
  /** Agents that own objects here, for the sweep that retires what history has forgotten. */
  ownedAgents(): Promise<readonly { readonly namespaceId: string; readonly agentId: string }[]>;
  /** Called whenever a workload's readiness or life changes, so that its work item need not wait for a recheck. Returns the unsubscribe. */
  onChange(listener: (agent: { readonly namespaceId: string; readonly agentId: string }) => void): () => void;
  /** Stops watching; `stopWorkloads` also stops every child (the all-in-one server), otherwise they are left for adoption. */
  close(options: { readonly stopWorkloads: boolean }): Promise<void>;
}
