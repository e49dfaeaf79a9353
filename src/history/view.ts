/** What auditors see of an event: its place, its cause, its audit record and the public view of its data. (architecture section 7) */
import type { Actor, AuditRecord } from '../kernel/event.ts';
import type { Reading } from '../runtime/reading.ts';

export interface HistoryEventView {
  readonly id: string;
  /** Opaque; sorts by code units in store order. */
  readonly position: string;
  /** Without the Installation prefix, for example `agent-agt_…`. */
  readonly stream: string;
  readonly revision: number;
  readonly type: string;
  readonly schema: number;
  readonly occurredAt: string;
  readonly actor: Actor;
  readonly requestId: string | null;
  readonly correlationId: string;
  readonly causationId: string | null;
  readonly policyRevision: number | null;
  readonly audit: AuditRecord | null;
  readonly namespaceId: string | null;
  readonly agentId: string | null;
  /** The allow-listed members of the data. */
  readonly data: Readonly<Record<string, unknown>>;
}

export interface HistoryFilter {
  readonly namespaceId?: string | undefined;
  readonly agentId?: string | undefined;
  readonly types?: readonly string[] | undefined;
  readonly stream?: string | undefined;
}

export interface HistoryReads {
  byIds(ids: readonly string[]): Promise<Reading<HistoryEventView>>;
  /** Events in store order after a position, oldest first. */
  list(filter: HistoryFilter, page: { readonly after: string | null; readonly limit: number }): Promise<Reading<HistoryEventView>>;
}
