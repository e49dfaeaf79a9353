/** Agents as they were: their streams folded up to a point of the history, by the same code that folds them to their tail. (architecture section 7, failure scenario 39) */
import { agents, revisions as snapshots } from '../aggregates.ts';
import { revisionView, type RevisionView } from '../agent-revision/view.ts';
import type { Core } from '../core.ts';
import { deploymentView, type DeploymentView } from '../deployment/deployment.ts';
import { deployments } from '../deployment/record.ts';
import type { HistoryReads } from '../history/view.ts';
import { ref, type Operation } from '../iam/authorizer.ts';
import type { Caller } from '../iam/caller.ts';
import { visibleBelow } from '../iam/visibility.ts';
import { Refusal } from '../kernel/errors.ts';
import type { Metadata } from '../kernel/event.ts';
import { invalidRequest } from '../kernel/parse.ts';
import { workKey } from '../kernel/work.ts';
import { timestamp, type Clock } from '../runtime/clock.ts';
import { judgedEach, nameIn, only, type PageRequest } from '../runtime/reading.ts';
import type { StoredBefore } from '../runtime/streams.ts';
import { agentNotFound, type PresentAgent } from './agent.ts';
import type { AdmittedRevision } from './lifecycle.ts';
import type { AgentPlace } from './service.ts';
import { agentView, type AgentView, type Point } from './view.ts';

/**
 * All are judged by the policy of now: `audit:read` on the Namespace, or `agent:read` as long as the Agent is there.
 * @throws Refusal INVALID_REQUEST for a position that no event has and a time that has not come yet, NOT_FOUND where there was no such Agent
 */
export interface PastAgentService {
  agent(caller: Caller, place: AgentPlace, at: Point): Promise<AgentView>;
  /** Those the caller may read of the revisions that were admitted by then. */
  revisions(caller: Caller, place: AgentPlace, at: Point, page: PageRequest): Promise<readonly RevisionView[]>;
  /** One that was admitted by then; takes `agent_revision:read` on it as well. */
  revision(caller: Caller, place: AgentPlace & { readonly revisionId: string }, at: Point): Promise<RevisionView>;
  /** What had become of each of several by then, as {@link revision} takes them and at the cost of one; never running: whether a worker was at it, is no event. */
  deployments(caller: Caller, place: AgentPlace, revisionIds: readonly string[], at: Point): Promise<readonly (DeploymentView | Error)[]>;
  /** The newest deployment of then; null where there was none. */
  latestDeployment(caller: Caller, place: AgentPlace, at: Point): Promise<DeploymentView | null>;
}

const isBefore = (at: Point): StoredBefore =>
  'position' in at ? ({ position }) => position <= at.position : ({ metadata }) => (JSON.parse(metadata) as Metadata).occurredAt <= at.time;

const revisionNotFound = (): Refusal => new Refusal('NOT_FOUND', 'The Agent revision was not found');

export const createPastAgentService = ({ core, history, clock }: { readonly core: Core; readonly history: Pick<HistoryReads, 'hasPosition'>; readonly clock: Clock }): PastAgentService => {
  const { streams, authorizer } = core;

  const assertReached = async (at: Point): Promise<void> => {
    if ('time' in at && at.time > timestamp(clock.now())) throw invalidRequest([{ path: '/at/time', code: 'INVALID_VALUE' }]);
    if ('position' in at && !(await history.hasPosition(at.position))) throw invalidRequest([{ path: '/at/position', code: 'INVALID_VALUE' }]);
  };

  /** The Agent as it was, for who may know. */
  const past = async (caller: Caller, { namespaceId, agentId }: AgentPlace, at: Point): Promise<PresentAgent> => {
    const resource = ref.in('agent', namespaceId, agentId);
    const reading: Operation = { action: 'openclaw.agents.read', resource };
    const audit = ref.collection('audit', namespaceId);
    const isAuditor = await authorizer.permits(caller, 'read', audit);
    if (!isAuditor) await authorizer.require(caller, reading, [['read', resource]]);
    await assertReached(at);
    const { state: now } = await streams.load(agents, agentId);
    if (now.phase === 'none' || now.namespaceId !== namespaceId) throw agentNotFound();
    if (now.phase === 'removed' && !isAuditor) await authorizer.require(caller, reading, [['read', audit]]);
    const { state } = await streams.loadBefore(agents, agentId, isBefore(at));
    if (state.phase !== 'present') throw new Refusal('NOT_FOUND', 'There was no such Agent at that point of the history');
    return state;
  };

  const views = async (admitted: readonly AdmittedRevision[], at: Point): Promise<readonly RevisionView[]> => {
    const loaded = admitted.length === 0 ? [] : await streams.loadMany(snapshots, admitted.map(({ revisionId }) => revisionId));
    return admitted.flatMap(({ admittedAt }, index) => {
      const data = loaded[index]!.state;
      return data === null ? [] : [{ ...revisionView({ type: 'AgentRevisionSnapshotted', data }, admittedAt), at }];
    });
  };

  const requireRevision = async (caller: Caller, area: string, namespaceId: string, revisionId: string): Promise<void> => {
    const resource = ref.in('agent_revision', namespaceId, revisionId);
    await authorizer.require(caller, { action: `openclaw.${area}.read`, resource }, [['read', resource]]);
  };

  const deploymentsOf = async ({ agentId }: AgentPlace, revisionIds: readonly string[], at: Point): Promise<readonly (DeploymentView | Error)[]> => {
    const { state: records } = await streams.loadBefore(deployments, agentId, isBefore(at));
    return revisionIds.map((revisionId) => {
      const record = records.get(workKey.deployment(revisionId));
      return record === undefined ? revisionNotFound() : deploymentView(record, null);
    });
  };

  return {
    agent: async (caller, place, at) => ({ ...agentView(await past(caller, place, at)), at }),

    revisions: async (caller, place, at, { from, limit }) => {
      const { revisions } = await past(caller, place, at);
      const { namespaceId, agentId } = place;
      const { parents, only, except } = await visibleBelow(authorizer, caller, 'read', 'agent_revision', [{ namespaceId, id: agentId }]);
      const seen = revisions.filter(({ revisionId }) => {
        const name = nameIn(namespaceId, revisionId);
        return (parents[0]!.whole || only.includes(name)) && !except.includes(name);
      });
      const first = from === null ? 0 : seen.findIndex(({ revisionId }) => revisionId === from);
      return first < 0 ? [] : views(seen.slice(first, first + limit), at);
    },

    revision: async (caller, place, at) => {
      await requireRevision(caller, 'agent_revisions', place.namespaceId, place.revisionId);
      const { revisions } = await past(caller, place, at);
      const [view] = await views(revisions.filter(({ revisionId }) => revisionId === place.revisionId), at);
      if (view === undefined) throw revisionNotFound();
      return view;
    },

    deployments: (caller, place, revisionIds, at) =>
      judgedEach(
        revisionIds,
        (revisionId) => requireRevision(caller, 'agent_deployments', place.namespaceId, revisionId),
        async (admitted) => {
          await past(caller, place, at);
          return deploymentsOf(place, admitted, at);
        },
      ),

    latestDeployment: async (caller, place, at) => {
      const latest = (await past(caller, place, at)).revisions.at(-1);
      if (latest === undefined) return null;
      await requireRevision(caller, 'agent_deployments', place.namespaceId, latest.revisionId);
      return only(await deploymentsOf(place, [latest.revisionId], at));
    },
  };
};
