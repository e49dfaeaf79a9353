/** One AgentRevision's decider: it is fixed once and never changes. (agent-lifecycle section 2) */
import type { Decider } from '../kernel/decider.ts';
import { Refusal } from '../kernel/errors.ts';
import type { AgentRevisionSnapshotted } from './messages.ts';

/** The snapshot, or null before it is fixed. */
export type AgentRevisionState = AgentRevisionSnapshotted['data'] | null;

export interface AgentRevisionCommand {
  readonly type: 'SnapshotRevision';
  readonly data: AgentRevisionSnapshotted['data'];
}

export const agentRevisionDecider: Decider<AgentRevisionState, AgentRevisionCommand, AgentRevisionSnapshotted> = {
  initial: null,
  decide: (state, { data }) =>
    state === null ? [{ type: 'AgentRevisionSnapshotted', data }] : new Refusal('RESOURCE_CONFLICT', 'The revision is fixed already'),
  evolve: (_, { data }) => data,
};
