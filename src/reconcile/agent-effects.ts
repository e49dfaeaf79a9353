/** What the passes over one Agent share: reading it again, and the driver's verbs on several of its revisions. */
import { agents, revisions } from '../aggregates.ts';
import type { PresentAgent } from '../agent/agent.ts';
import type { AdmittedRevision } from '../agent/lifecycle.ts';
import type { WorkCommand } from '../agent/work.ts';
import { snapshotOf } from '../agent-revision/snapshot.ts';
import type { AgentIdentity, RevisionSnapshot } from '../compute/driver.ts';
import { Fault } from '../kernel/errors.ts';
import type { Streams } from '../runtime/streams.ts';
import { ClaimLost } from '../runtime/lease.ts';
import type { Ended } from './outcome.ts';
import type { Pass } from './pass.ts';

export type AgentPass = Pass<WorkCommand>;

type Judge = (error: unknown) => Ended;

/** The Agent at the tail. One that has ended can only have ended under another claim. */
export const reload = async (pass: AgentPass): Promise<PresentAgent> => {
  const { state } = await pass.deps.streams.load(agents, pass.work.lane);
  if (state.phase !== 'present') throw new ClaimLost(`The Agent of ${pass.work.key} has ended`);
  return state;
};

export const identityOf = ({ namespaceId, agentId, servicePrincipalId }: AgentIdentity): AgentIdentity => ({ namespaceId, agentId, servicePrincipalId });

export const bind = (pass: AgentPass, agent: AgentIdentity, judge: Judge): Promise<void> =>
  pass.effect((options) => pass.deps.driver.bindAgent(identityOf(agent), options), judge);

/** The snapshots of revisions, in their order. @throws Fault when an admission has none */
export const snapshotsOf = async (streams: Streams, revisionIds: readonly string[]): Promise<readonly RevisionSnapshot[]> => {
  const loaded = await streams.loadMany(revisions, revisionIds);
  return loaded.map(({ state, stream }) => {
    if (state === null) throw new Fault(`The revision of ${stream} was admitted without a snapshot`);
    return snapshotOf(state);
  });
};

const admittedSnapshots = ({ deps }: AgentPass, admitted: readonly AdmittedRevision[]) =>
  snapshotsOf(deps.streams, admitted.map(({ revisionId }) => revisionId));

export const stopAll = async (pass: AgentPass, admitted: readonly AdmittedRevision[], judge: Judge): Promise<void> => {
  for (const snapshot of await admittedSnapshots(pass, admitted)) await pass.effect((options) => pass.deps.driver.stopRevision(snapshot, options), judge);
};

export const retireAll = async (pass: AgentPass, admitted: readonly AdmittedRevision[], judge: Judge): Promise<void> => {
  for (const snapshot of await admittedSnapshots(pass, admitted)) await pass.effect((options) => pass.deps.driver.retireRevision(snapshot, options), judge);
};
