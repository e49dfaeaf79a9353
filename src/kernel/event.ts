/**
 * The event envelope: what every event carries from the first one ever written, and the hash chain
 * that links the events of one stream. (architecture section 3, failure scenarios 11, 29, 40)
 */
import { sha256 } from './canonical.ts';

/** Who caused an event. `system` is the control plane itself (bootstrap, recovery). */
export interface Actor {
  readonly principalId: string;
  readonly kind: 'principal' | 'service_principal' | 'system';
  /** The service key that authenticated the request, when one did. */
  readonly serviceKeyId?: string;
  /** Set when nobody is known behind the credentials. */
  readonly unresolved?: true;
}

/** A resource as policy and audit name it. The Installation is server-selected and never part of a reference. */
export interface ResourceRef {
  readonly kind: ResourceKind;
  readonly id: string;
  readonly namespaceId?: string;
}

export type ResourceKind =
  | 'installation'
  | 'namespace'
  | 'configuration'
  | 'secret'
  | 'service_account'
  | 'credential_source'
  | 'agent'
  | 'agent_revision'
  | 'audit';

/** The audit record of the append an event opens: one append is one audit record. (iam-auth-audit 5.2) */
export interface AuditRecord {
  readonly kind: 'bootstrap' | 'mutation' | 'authorization_denial';
  /** For example `openclaw.agents.create`, or `reconcile` for the worker's evidence. */
  readonly action: string;
  readonly resource: ResourceRef;
  readonly outcome: 'success' | 'denied' | 'failure';
  readonly reasonCode?: string;
  /** The permission that was judged. */
  readonly authorization?: { readonly principalId: string; readonly action: string; readonly resource: ResourceRef };
  readonly details?: Readonly<Record<string, unknown>>;
}

export interface Metadata {
  /** Schema number of `data`, starting at 1. */
  readonly schema: number;
  readonly actor: Actor;
  readonly requestId: string | null;
  readonly correlationId: string;
  /** Id of the event that caused this one, or null for a request of a client. */
  readonly causationId: string | null;
  /** PostgreSQL's clock, UTC with exactly three fractional digits. */
  readonly occurredAt: string;
  /** Revision of the `iam` stream the command was judged at; null where no policy was judged. */
  readonly policyRevision: number | null;
  /** Digests of the idempotency key and of the input it came with. */
  readonly idempotency?: { readonly key: string; readonly input: string };
  /** The work item and claim this is evidence of. */
  readonly work?: { readonly key: string; readonly claimToken: string };
  /** On the first event of an append only. */
  readonly audit?: AuditRecord;
  /** {@link hashOf} of the previous event of the stream; null on the first. */
  readonly previousHash: string | null;
}

/** What deciders and projections may know of an event beside its data. */
export interface Envelope extends Metadata {
  readonly id: string;
  /** Full stream name, Installation prefix included. */
  readonly stream: string;
  /** Zero-based number of the event in its stream; order inside a stream is this number. */
  readonly revision: number;
}

/** The bytes of one stored event. Data and metadata are canonical JSON text, exactly as appended. */
export interface EventBytes {
  readonly id: string;
  readonly type: string;
  readonly data: string;
  readonly metadata: string;
}

/** SHA-256 over the stored bytes of one event and its place; the next event of the stream carries it as `previousHash`. */
export const hashOf = (stream: string, revision: number, event: EventBytes): string =>
  sha256([stream, revision, event.id, event.type, event.data, event.metadata].join('\n'));
