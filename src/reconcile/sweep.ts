/** What no work item asks for: objects of Agents that history has ended are retired, and selected revisions are brought back after a restart. (failure scenario 24, architecture section 8) */
import { agents } from '../aggregates.ts';
import type { AgentState, RemovedAgent } from '../agent/agent.ts';
import type { ComputeDriver } from '../compute/driver.ts';
import { canonicalText } from '../kernel/canonical.ts';
import { workKey } from '../kernel/work.ts';
import type { Loaded, Streams } from '../runtime/streams.ts';
import type { WorkQueue } from '../runtime/work-queue.ts';
import { identityOf, snapshotsOf } from './agent-effects.ts';
import type { ReconcileLog } from './ports.ts';

interface SweepDependencies {
  readonly streams: Streams;
  readonly driver: ComputeDriver;
  readonly log: ReconcileLog;
}

const ownedStreams = async ({ streams, driver }: SweepDependencies): Promise<readonly Loaded<AgentState>[]> =>
  streams.loadMany(agents, (await driver.ownedAgents()).map(({ agentId }) => agentId));

const retire = async ({ streams, driver }: SweepDependencies, agent: RemovedAgent, fence: number, signal: AbortSignal): Promise<void> => {
  for (const snapshot of await snapshotsOf(streams, agent.revisionIds)) await driver.retireRevision(snapshot, { fence, signal });
  await driver.deleteAgent(identityOf(agent), { fence, signal });
};

/**
 * Retires what removed Agents still own on Compute. An Agent that history does not know at all is left alone:
 * its objects may belong to an event store that was restored to an older state.
 */
export const sweepOwned = async (deps: SweepDependencies, signal: AbortSignal): Promise<void> => {
  for (const { state, revision, stream } of await ownedStreams(deps)) {
    if (signal.aborted) return;
    if (state.phase === 'none') deps.log.warn({ stream }, 'compute owns an Agent that history does not know');
    if (state.phase !== 'removed') continue;
    deps.log.warn({ agentId: state.agentId }, 'retiring what a removed Agent left on compute');
    await retire(deps, state, revision, signal).catch((error: unknown) => deps.log.warn({ agentId: state.agentId, error }, 'sweep failed'));
  }
};

/** Queues maintenance for every Agent of this Compute that shall run and has a selected revision. */
export const resumeSelected = async (deps: SweepDependencies, queue: Pick<WorkQueue, 'offer'>): Promise<void> => {
  for (const { state, revision } of await ownedStreams(deps)) {
    if (state.phase !== 'present' || state.desired !== 'running' || state.activeRevisionId === null) continue;
    const { agentId, namespaceId, activeRevisionId: revisionId, revisions } = state;
    const actor = revisions.find((admitted) => admitted.revisionId === revisionId)?.actor;
    const key = workKey.maintenance(revisionId);
    await queue.offer({ key, lane: agentId, kind: 'maintenance', namespaceId, agentId, revisionId, operationId: null }, canonicalText(actor), revision);
  }
};
