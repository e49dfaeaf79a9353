/** The use cases of AgentRevisions and of the deployments that share their ids. Reads only: a deploy makes them. (rest-contract 2.7 and 2.8) */
import { agents, revisions } from '../aggregates.ts';
import { presentAgent, type AgentPlace } from '../agent/service.ts';
import type { PageRequest } from '../runtime/reading.ts';
import { deploymentView, type DeploymentView } from '../deployment/deployment.ts';
import { deployments } from '../deployment/record.ts';
import type { DeploymentReads } from '../deployment/view.ts';
import { ref } from '../iam/authorizer.ts';
import type { Caller } from '../iam/caller.ts';
import { visibleTo } from '../iam/visibility.ts';
import { Refusal } from '../kernel/errors.ts';
import { workKey } from '../kernel/work.ts';
import type { Core } from '../core.ts';
import { revisionView, type RevisionReads, type RevisionView } from './view.ts';

/** What an edge needs to show a page of deployments from its rows. */
export { deploymentView, type DeploymentView };

export interface RevisionPlace extends AgentPlace {
  readonly revisionId: string;
}

export interface RevisionService {
  /** Revisions the caller may read, oldest first; needs `agent:read`. */
  list(caller: Caller, place: AgentPlace, page?: PageRequest): Promise<readonly RevisionView[]>;
  get(caller: Caller, place: RevisionPlace): Promise<RevisionView>;
  /** Persisted state only; needs `agent_revision:read` on exactly this revision. */
  deployment(caller: Caller, place: RevisionPlace): Promise<DeploymentView>;
}

const notFound = (): Refusal => new Refusal('NOT_FOUND', 'The Agent revision was not found');

export const createRevisionService = ({
  core,
  revisionReads,
  deploymentReads,
}: {
  readonly core: Core;
  readonly revisionReads: RevisionReads;
  readonly deploymentReads: DeploymentReads;
}): RevisionService => {
  const { streams, authorizer } = core;
  const operation = (area: string, verb: string, { namespaceId, revisionId }: RevisionPlace) => ({
    action: `openclaw.${area}.${verb}`,
    resource: ref.in('agent_revision', namespaceId, revisionId),
  });

  const inPlace = <Row extends { readonly namespaceId: string; readonly agentId: string }>(row: Row, { namespaceId, agentId }: AgentPlace): Row => {
    if (row.namespaceId !== namespaceId || row.agentId !== agentId) throw notFound();
    return row;
  };

  /** Folded from the streams, for a reader ahead of the read models. */
  const fold = async (place: RevisionPlace): Promise<RevisionView> => {
    const { state } = await presentAgent(core, place);
    const admitted = state.revisions.find(({ revisionId }) => revisionId === place.revisionId);
    const snapshot = admitted === undefined ? null : (await streams.load(revisions, place.revisionId)).state;
    if (admitted === undefined || snapshot === null) throw notFound();
    return revisionView({ type: 'AgentRevisionSnapshotted', data: snapshot }, admitted.admittedAt);
  };

  return {
    list: async (caller, place, page) => {
      const { namespaceId, agentId } = place;
      const agent = ref.in('agent', namespaceId, agentId);
      await authorizer.require(caller, { action: 'openclaw.agent_revisions.list', resource: agent }, [['read', agent]]);
      const visible = await visibleTo(authorizer, caller, 'read', 'agent_revision', namespaceId);
      const { rows, fresh } = await revisionReads.listByAgents([agentId], visible, page);
      if (fresh && rows.length > 0) return rows.map((row) => inPlace(row, place));
      const { state } = await presentAgent(core, place);
      if (fresh && state.revisions.length === 0) return [];
      const seen = state.revisions.filter(({ revisionId }) => (visible.only === undefined || visible.only.includes(revisionId)) && !visible.except.includes(revisionId));
      const last = page?.after == null ? -1 : seen.findIndex(({ revisionId }) => revisionId === page.after);
      if (page?.after != null && last < 0) return [];
      const wanted = seen.slice(last + 1, page === undefined ? undefined : last + 1 + page.limit);
      const snapshots = await streams.loadMany(revisions, wanted.map(({ revisionId }) => revisionId));
      return wanted.flatMap(({ admittedAt }, index) => {
        const data = snapshots[index]!.state;
        return data === null ? [] : [revisionView({ type: 'AgentRevisionSnapshotted', data }, admittedAt)];
      });
    },

    get: async (caller, place) => {
      const reading = operation('agent_revisions', 'read', place);
      await authorizer.require(caller, reading, [['read', reading.resource]]);
      const { rows, fresh } = await revisionReads.byIds([place.revisionId]);
      return fresh && rows[0] !== undefined ? inPlace(rows[0], place) : fold(place);
    },

    deployment: async (caller, place) => {
      const reading = operation('agent_deployments', 'read', place);
      await authorizer.require(caller, reading, [['read', reading.resource]]);
      const { rows, fresh } = await deploymentReads.byIds([place.revisionId]);
      const row = rows[0];
      if (fresh && row !== undefined) return deploymentView(inPlace(row.record, place), row.work);
      const key = workKey.deployment(place.revisionId);
      const [{ state: agent }, { state: records }, standings] = await Promise.all([
        streams.load(agents, place.agentId),
        streams.load(deployments, place.agentId),
        deploymentReads.standings([key]),
      ]);
      const record = records.get(key);
      if (agent.phase !== 'present' || record === undefined) throw notFound();
      return deploymentView(inPlace(record, place), standings.get(key) ?? null);
    },
  };
};
