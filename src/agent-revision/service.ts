/** The use cases of AgentRevisions and of the deployments that share their ids. Reads only: a deploy makes them. (rest-contract 2.7 and 2.8) */
import { agents, revisions } from '../aggregates.ts';
import { presentAgent, type AgentPlace } from '../agent/service.ts';
import { judgedEach, nameIn, only, type ListsBelow, type PageRequest, type VisibilityBelow } from '../runtime/reading.ts';
import { deploymentView, type DeploymentView } from '../deployment/deployment.ts';
import { deployments } from '../deployment/record.ts';
import type { DeploymentReads } from '../deployment/view.ts';
import { ref } from '../iam/authorizer.ts';
import type { Caller } from '../iam/caller.ts';
import { visibleBelow } from '../iam/visibility.ts';
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
  /** {@link list} of several Agents, at the cost of one; only the list of a single Agent is never behind its stream. */
  listBelow(caller: Caller, places: readonly AgentPlace[], page?: PageRequest): Promise<ListsBelow<RevisionView>>;
  get(caller: Caller, place: RevisionPlace): Promise<RevisionView>;
  /** Persisted state only; needs `agent_revision:read` on exactly this revision. */
  deployment(caller: Caller, place: RevisionPlace): Promise<DeploymentView>;
  /** {@link deployment} of the newest revision of an Agent that the caller was shown; null where there is none. */
  latestDeployment(caller: Caller, place: AgentPlace): Promise<DeploymentView | null>;
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

  /** The visible revisions of one Agent, folded from its stream. */
  const foldList = async (place: AgentPlace, { parents, only, except }: VisibilityBelow, page: PageRequest | undefined): Promise<readonly RevisionView[]> => {
    const { state } = await presentAgent(core, place);
    const seen = state.revisions.filter(({ revisionId }) => {
      const name = nameIn(place.namespaceId, revisionId);
      return (parents[0]!.whole || only.includes(name)) && !except.includes(name);
    });
    const first = page === undefined || page.from === null ? 0 : seen.findIndex(({ revisionId }) => revisionId === page.from);
    const wanted = first < 0 ? [] : seen.slice(first, page && first + page.limit);
    const snapshots = wanted.length === 0 ? [] : await streams.loadMany(revisions, wanted.map(({ revisionId }) => revisionId));
    return wanted.flatMap(({ admittedAt }, index) => {
      const data = snapshots[index]!.state;
      return data === null ? [] : [revisionView({ type: 'AgentRevisionSnapshotted', data }, admittedAt)];
    });
  };

  const listAll: RevisionService['listBelow'] = (caller, places, page) =>
    judgedEach(
      places,
      ({ namespaceId, agentId }) => {
        const agent = ref.in('agent', namespaceId, agentId);
        return authorizer.require(caller, { action: 'openclaw.agent_revisions.list', resource: agent }, [['read', agent]]);
      },
      async (admitted) => {
        const visible = await visibleBelow(authorizer, caller, 'read', 'agent_revision', admitted.map(({ namespaceId, agentId }) => ({ namespaceId, id: agentId })));
        const { rows, fresh } = await revisionReads.listBelow(visible, page);
        const [alone] = admitted;
        if (admitted.length === 1 && !(fresh && rows.length > 0)) return [await foldList(alone!, visible, page)];
        const found = Map.groupBy(rows, ({ agentId }) => agentId);
        return admitted.map((place) => {
          const list = found.get(place.agentId) ?? [];
          return list.every(({ namespaceId }) => namespaceId === place.namespaceId) ? list : notFound();
        });
      },
    );

  const deployment: RevisionService['deployment'] = async (caller, place) => {
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
  };

  return {
    list: async (caller, place, page) => only(await listAll(caller, [place], page)),
    listBelow: listAll,

    get: async (caller, place) => {
      const reading = operation('agent_revisions', 'read', place);
      await authorizer.require(caller, reading, [['read', reading.resource]]);
      const { rows, fresh } = await revisionReads.byIds([place.revisionId]);
      return fresh && rows[0] !== undefined ? inPlace(rows[0], place) : fold(place);
    },

    deployment,

    latestDeployment: async (caller, place) => {
      const latest = (await presentAgent(core, place)).state.revisions.at(-1);
      return latest === undefined ? null : deployment(caller, { ...place, revisionId: latest.revisionId });
    },
  };
};
