/** The event history, as auditors read it: every fact in order, with actor and cause, and no secret in it. (architecture section 7) */
import { ref } from '../iam/authorizer.ts';
import type { Caller } from '../iam/caller.ts';
import type { ResourceRef } from '../kernel/event.ts';
import type { Core } from '../core.ts';
import type { HistoryEventView, HistoryFilter, HistoryReads } from './view.ts';

export interface HistoryService {
  /** Events in store order after a position; needs `audit:read` on the Namespace of the filter, or on the Installation. */
  list(caller: Caller, filter: HistoryFilter, page: { readonly after: string | null; readonly limit: number }): Promise<readonly HistoryEventView[]>;
}

export const createHistoryService = ({ core, reads, installationId }: { readonly core: Core; readonly reads: HistoryReads; readonly installationId: string }): HistoryService => ({
  list: async (caller, filter, page) => {
    const resource: ResourceRef = filter.namespaceId === undefined ? { kind: 'audit', id: installationId } : ref.collection('audit', filter.namespaceId);
    await core.authorizer.require(caller, { action: 'openclaw.audit.read', resource }, [['read', resource]]);
    return (await reads.list(filter, page)).rows;
  },
});
