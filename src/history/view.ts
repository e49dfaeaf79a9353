/** What auditors see of an event: its place, its cause, its audit record and the public view of its data. (architecture section 7) */
import type { Actor, AuditRecord } from '../kernel/event.ts';
import type { PageRequest, Reading, VisibilityBelow } from '../runtime/reading.ts';

export interface HistoryEventView {
  readonly id: string;
  /** Opaque; sorts by code units in store order. */
  readonly position: string;
  /** Without the Installation prefix, for example `agent-agt_…`. */
  readonly stream: string;
  readonly revision: number;
  readonly type: string;
  /** This build cannot read it: its place and its type stand for it, and what can be read of its cause. */
  readonly unreadable: boolean;
  /** Null, as the members below, where the metadata of an unreadable event cannot be read either. */
  readonly schema: number | null;
  readonly occurredAt: string | null;
  readonly actor: Actor | null;
  readonly requestId: string | null;
  readonly correlationId: string | null;
  readonly causationId: string | null;
  readonly policyRevision: number | null;
  readonly audit: AuditRecord | null;
  readonly namespaceId: string | null;
  readonly agentId: string | null;
  /** The allow-listed members of the data; null for an unreadable event. */
  readonly data: Readonly<Record<string, unknown>> | null;
}

export interface HistoryFilter {
  readonly namespaceId?: string | undefined;
  readonly agentId?: string | undefined;
  readonly types?: readonly string[] | undefined;
  readonly stream?: string | undefined;
}

/** Which audit records: all members given must hold. */
export interface AuditFilter {
  readonly namespaceId?: string | undefined;
  readonly actorId?: string | undefined;
  readonly action?: string | undefined;
  readonly resourceId?: string | undefined;
  readonly outcome?: string | undefined;
  /** UTC with three fractional digits; included. */
  readonly since?: string | undefined;
  /** Excluded. */
  readonly until?: string | undefined;
}

/** The Agent whose history is read: all of it, or no more than its own stream. */
export interface HistoryOwner {
  readonly namespaceId: string;
  readonly id: string;
  readonly whole: boolean;
}

export interface HistoryReads {
  byIds(ids: readonly string[]): Promise<Reading<HistoryEventView>>;
  list(filter: HistoryFilter, page: PageRequest): Promise<Reading<HistoryEventView>>;
  /** One page of the history of each Namespace, all in one statement. */
  listOfNamespaces(ids: readonly string[], page: PageRequest): Promise<Reading<HistoryEventView>>;
  /** One page of the history of each Agent, all in one statement; what is not whole is without the events that name a revision which may not be seen below it. */
  listOfAgents(owners: readonly HistoryOwner[], revisions: VisibilityBelow, page: PageRequest): Promise<Reading<HistoryEventView>>;
  /** Whether an event has this position. */
  hasPosition(position: string): Promise<boolean>;
  /** The id of the last event; null where there is none. */
  newest(filter: HistoryFilter): Promise<string | null>;
  /** The events that carry an audit record: one for each append, and each event whose metadata cannot be read. */
  listAudit(filter: AuditFilter, page: PageRequest): Promise<Reading<HistoryEventView>>;
}
