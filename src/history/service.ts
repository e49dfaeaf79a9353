/** The event history, as auditors read it: every fact in order, with actor and cause, and no secret in it. (architecture section 7) */
import { ref } from '../iam/authorizer.ts';
import type { Caller } from '../iam/caller.ts';
import type { ResourceRef } from '../kernel/event.ts';
import type { PageRequest } from '../runtime/reading.ts';
import type { Core } from '../core.ts';
import type { AuditFilter, HistoryEventView, HistoryFilter, HistoryReads } from './view.ts';

/** All need `audit:read` on the Namespace of the filter, or without one on the Installation. */
export interface HistoryService {
  /** Events in store order, oldest first. */
  list(caller: Caller, filter: HistoryFilter, page: PageRequest): Promise<readonly HistoryEventView[]>;
  /** The id of the last event, after which new ones come; null where there is none. */
  newest(caller: Caller, filter: HistoryFilter): Promise<string | null>;
  /** Those that carry an audit record: one for each change and each denial. */
  listAudit(caller: Caller, filter: AuditFilter, page: PageRequest): Promise<readonly HistoryEventView[]>;
}

export const createHistoryService = ({ core, reads, installationId }: { readonly core: Core; readonly reads: HistoryReads; readonly installationId: string }): HistoryService => {
  const requireRead = async (caller: Caller, namespaceId: string | undefined): Promise<void> => {
    const resource: ResourceRef = namespaceId === undefined ? { kind: 'audit', id: installationId } : ref.collection('audit', namespaceId);
    await core.authorizer.require(caller, { action: 'openclaw.audit.read', resource }, [['read', resource]]);
  };
  return {
    list: async (caller, filter, page) => {
      await requireRead(caller, filter.namespaceId);
      return (await reads.list(filter, page)).rows;
    },
    newest: async (caller, filter) => {
      await requireRead(caller, filter.namespaceId);
      return reads.newest(filter);
    },
    listAudit: async (caller, filter, page) => {
      await requireRead(caller, filter.namespaceId);
      return (await reads.listAudit(filter, page)).rows;
    },
  };
};
