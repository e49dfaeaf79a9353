/** The event history, as auditors read it: every fact in order, with actor and cause, and no secret in it. (architecture section 7) */
import { ref, type Permission } from '../iam/authorizer.ts';
import type { Caller } from '../iam/caller.ts';
import type { ResourceRef } from '../kernel/event.ts';
import type { Sent } from '../kernel/parse.ts';
import type { PageRequest } from '../runtime/reading.ts';
import type { Core } from '../core.ts';
import type { AuditFilter, HistoryEventView, HistoryFilter, HistoryReads } from './view.ts';

/** Where an auditor looks, and for what. */
export interface Sought<Filter> {
  readonly namespaceId: string | undefined;
  readonly filter: Sent<Filter>;
}

/** All need `audit:read` on the Namespace they look in, or without one on the Installation. */
export interface HistoryService {
  /** Events in store order, oldest first; `from` may stand for the read model, and share its reads. */
  list(caller: Caller, sought: Sought<HistoryFilter>, page: PageRequest, from?: Pick<HistoryReads, 'list'>): Promise<readonly HistoryEventView[]>;
  /** The id of the last event, after which new ones come; null where there is none. */
  newest(caller: Caller, sought: Sought<HistoryFilter>): Promise<string | null>;
  /** Those that carry an audit record: one for each change and each denial. */
  listAudit(caller: Caller, sought: Sought<AuditFilter>, page: PageRequest): Promise<readonly HistoryEventView[]>;
}

export const createHistoryService = ({ core, reads, installationId }: { readonly core: Core; readonly reads: HistoryReads; readonly installationId: string }): HistoryService => {
  /** What is looked for, by who may look there. */
  const admitted = async <Filter>(caller: Caller, { namespaceId, filter: sent }: Sought<Filter>): Promise<Filter> => {
    const resource: ResourceRef = namespaceId === undefined ? { kind: 'audit', id: installationId } : ref.collection('audit', namespaceId);
    const operation = { action: 'openclaw.audit.read', resource };
    const permission: Permission = ['read', resource];
    const filter = await core.authorizer.receive(caller, operation, permission, sent);
    await core.authorizer.require(caller, operation, [permission]);
    return filter;
  };
  return {
    list: async (caller, sought, page, from = reads) => (await from.list(await admitted(caller, sought), page)).rows,
    newest: async (caller, sought) => reads.newest(await admitted(caller, sought)),
    listAudit: async (caller, sought, page) => (await reads.listAudit(await admitted(caller, sought), page)).rows,
  };
};
