/** What readers see of an Agent, and where they read it. (rest-contract 2.2) */
import type { Unreadable } from '../kernel/codec.ts';
import type { PageRequest, Reading, VisibilityBelow } from '../runtime/reading.ts';
import type { PresentAgent } from './agent.ts';
import type { AgentSettings, ExecutionMode } from './settings.ts';

/** A point of the history: after the event with this position, or before the first event of the Agent's stream that is later than this time. */
export type Point = { readonly position: string } | { readonly time: string };

export interface AgentView {
  readonly id: string;
  readonly namespaceId: string;
  readonly name: string;
  readonly servicePrincipalId: string;
  readonly configurationId: string;
  readonly backendId: string | null;
  readonly executionMode: ExecutionMode;
  readonly settings: AgentSettings | Unreadable;
  readonly desiredRuntimeState: 'running' | 'stopped';
  readonly activeRevisionId: string | null;
  readonly status: 'active' | 'deleting';
  readonly createdAt: string;
  /** Revision of the last change of the draft: the ETag. */
  readonly draftRevision: number;
  /** Set on an Agent as it was. */
  readonly at?: Point;
}

export const agentView = (agent: PresentAgent): AgentView => ({
  id: agent.agentId,
  namespaceId: agent.namespaceId,
  name: agent.name,
  servicePrincipalId: agent.servicePrincipalId,
  configurationId: agent.draft.configurationId,
  backendId: agent.draft.backendId,
  executionMode: agent.draft.executionMode,
  settings: agent.draft.settings,
  desiredRuntimeState: agent.desired,
  activeRevisionId: agent.activeRevisionId,
  status: agent.deletion === null ? 'active' : 'deleting',
  createdAt: agent.createdAt,
  draftRevision: agent.draftRevision,
});

export interface AgentReads {
  /** Agents by id; ids without a row are left out. */
  byIds(ids: readonly string[]): Promise<Reading<AgentView>>;
  /** Visible Agents of each Namespace, or one page of them, in creation order, all Namespaces in one statement. */
  listBelow(visible: VisibilityBelow, page?: PageRequest): Promise<Reading<AgentView>>;
  /** Agents whose hash in a host begins so: of `<Installation>/<Namespace>/<Agent>`, SHA-256 in hex. */
  byHash(installationId: string, hash: string): Promise<Reading<AgentView>>;
}
