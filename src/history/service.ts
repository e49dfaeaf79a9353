/** The event history, as auditors read it: every fact in order, with actor and cause, and no secret in it. (architecture section 7) */
import type { AgentPlace } from '../agent/service.ts';
import { ref, type Permission } from '../iam/authorizer.ts';
import type { Caller } from '../iam/caller.ts';
import { visibleBelow } from '../iam/visibility.ts';
import type { ResourceRef } from '../kernel/event.ts';
import type { Sent } from '../kernel/parse.ts';
import { judgedEach, type ListsBelow, type PageRequest } from '../runtime/reading.ts';
import type { Core } from '../core.ts';
import type { AuditFilter, HistoryEventView, HistoryFilter, HistoryReads } from './view.ts';

/** Where an auditor looks, and for what. */
export interface Sought<Filter> {
  readonly namespaceId: string | undefined;
  readonly filter: Sent<Filter>;
}

/** All need `audit:read` on the Namespace they look in, or without one on the Installation; {@link HistoryService.ofAgents} can do with less. */
export interface HistoryService {
  /** Events in store order, oldest first; `from` may stand for the read model, and share its reads. */
  list(caller: Caller, sought: Sought<HistoryFilter>, page: PageRequest, from?: Pick<HistoryReads, 'list'>): Promise<readonly HistoryEventView[]>;
  /** The id of the last event, after which new ones come; null where there is none. */
  newest(caller: Caller, sought: Sought<HistoryFilter>): Promise<string | null>;
  /** Those that carry an audit record: one for each change and each denial. */
  listAudit(caller: Caller, sought: Sought<AuditFilter>, page: PageRequest): Promise<readonly HistoryEventView[]>;
  /** All that happened in each of several Namespaces, at the cost of one. */
  ofNamespaces(caller: Caller, namespaceIds: readonly string[], page: PageRequest): Promise<ListsBelow<HistoryEventView>>;
  /**
   * What happened to each of several Agents, at the cost of one. Who holds `agent:read` and is no auditor gets the
   * Agent's own stream, others' ids in it but not their evidence, and of its revisions what he may read. (architecture
   * section 10, AZ-151 and AZ-157)
   */
  ofAgents(caller: Caller, places: readonly AgentPlace[], page: PageRequest): Promise<ListsBelow<HistoryEventView>>;
}

/** Policy that a deletion found: read by administrators, and by auditors in the audit record. */
const policyMembers: ReadonlySet<string> = new Set(['accessBindingIds', 'restrictionIds']);

/** An event of somebody else, as who is no auditor sees it: that he did it, and nothing of how he was known, asked and judged. */
const withoutEvidence = (event: HistoryEventView): HistoryEventView => ({
  ...event,
  actor: event.actor === null ? null : { principalId: event.actor.principalId, kind: event.actor.kind },
  requestId: null,
  correlationId: null,
  policyRevision: null,
  audit: null,
  data: event.data && Object.fromEntries(Object.entries(event.data).filter(([member]) => !policyMembers.has(member))),
});

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
  const auditing = (namespaceId: string) => ref.collection('audit', namespaceId);

  return {
    list: async (caller, sought, page, from = reads) => (await from.list(await admitted(caller, sought), page)).rows,
    newest: async (caller, sought) => reads.newest(await admitted(caller, sought)),
    listAudit: async (caller, sought, page) => (await reads.listAudit(await admitted(caller, sought), page)).rows,

    ofNamespaces: (caller, namespaceIds, page) =>
      judgedEach(
        namespaceIds,
        (namespaceId) => core.authorizer.require(caller, { action: 'openclaw.audit.read', resource: auditing(namespaceId) }, [['read', auditing(namespaceId)]]),
        async (allowed) => {
          const { rows } = await reads.listOfNamespaces(allowed, page);
          const found = Map.groupBy(rows, ({ namespaceId }) => namespaceId);
          return allowed.map((namespaceId) => found.get(namespaceId) ?? []);
        },
      ),

    ofAgents: async (caller, places, page) => {
      const namespaceIds = [...new Set(places.map(({ namespaceId }) => namespaceId))];
      const permitted = await Promise.all(namespaceIds.map((namespaceId) => core.authorizer.permits(caller, 'read', auditing(namespaceId))));
      const audited = new Set(namespaceIds.filter((_, index) => permitted[index]));
      return judgedEach(
        places,
        async ({ namespaceId, agentId }) => {
          const resource = ref.in('agent', namespaceId, agentId);
          if (!audited.has(namespaceId)) await core.authorizer.require(caller, { action: 'openclaw.audit.read', resource }, [['read', resource]]);
        },
        async (allowed) => {
          const owners = allowed.map(({ namespaceId, agentId }) => ({ namespaceId, id: agentId, whole: audited.has(namespaceId) }));
          const revisions = await visibleBelow(core.authorizer, caller, 'read', 'agent_revision', owners);
          const found = Map.groupBy((await reads.listOfAgents(owners, revisions, page)).rows, ({ agentId }) => agentId);
          return owners.map(({ id, whole }) => (found.get(id) ?? []).map((event) => (whole || event.actor?.principalId === caller.actor.principalId ? event : withoutEvidence(event))));
        },
      );
    },
  };
};
