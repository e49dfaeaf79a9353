/** What readers see of an AgentRevision, and where they read it. (rest-contract 2.8) */
import type { ExecutionMode } from '../agent/settings.ts';
import type { Point } from '../agent/view.ts';
import type { Unreadable } from '../kernel/codec.ts';
import type { PageRequest, Reading, VisibilityBelow } from '../runtime/reading.ts';
import type { AgentRevisionSnapshotted, RevisionSettings } from './messages.ts';

export interface RevisionView {
  readonly id: string;
  readonly namespaceId: string;
  readonly agentId: string;
  /** Per Agent, from 1. */
  readonly revision: number;
  readonly backendId: string | null;
  readonly configurationId: string;
  readonly configurationGeneration: number;
  readonly harness: { readonly id: string; readonly version: string; readonly mode: ExecutionMode };
  readonly compute: { readonly id: string; readonly implementation: string };
  readonly settings: RevisionSettings | Unreadable;
  /** When it was admitted. */
  readonly createdAt: string;
  /** Set on a revision of an Agent as it was. */
  readonly at?: Point;
}

export const revisionView = ({ data }: AgentRevisionSnapshotted, admittedAt: string): RevisionView => ({
  id: data.revisionId,
  namespaceId: data.namespaceId,
  agentId: data.agentId,
  revision: data.number,
  backendId: data.backendId,
  configurationId: data.configurationId,
  configurationGeneration: data.configurationGeneration,
  harness: data.harness,
  compute: data.compute,
  settings: data.settings,
  createdAt: admittedAt,
});

export interface RevisionReads {
  /** Admitted revisions by id; a snapshot that was never admitted is invisible. */
  byIds(ids: readonly string[]): Promise<Reading<RevisionView>>;
  /** Visible revisions of each Agent, or one page of them, oldest first, all Agents in one statement. */
  listBelow(visible: VisibilityBelow, page?: PageRequest): Promise<Reading<RevisionView>>;
}
