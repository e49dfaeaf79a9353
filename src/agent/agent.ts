/** One Agent's decider: draft, lifecycle and work folded together. (agent-lifecycle section 1) */
import type { Decider, Decision } from '../kernel/decider.ts';
import { Refusal } from '../kernel/errors.ts';
import type { Envelope } from '../kernel/event.ts';
import { evolveWork, noWork, type WorkState } from '../kernel/work.ts';
import { draftEvents, evolveDraft, type Draft, type DraftChange } from './draft.ts';
import { decideLifecycle, evolveLifecycle, isStopping, type Deletion, type Lifecycle, type LifecycleCommand } from './lifecycle.ts';
import type { AgentCreated, AgentEvent } from './messages.ts';
import { decideWork, evolveWorkResults, type WorkCommand } from './work.ts';
import { isUnreadable } from '../kernel/codec.ts';

export interface PresentAgent extends Lifecycle {
  readonly phase: 'present';
  readonly agentId: string;
  readonly namespaceId: string;
  readonly name: string;
  readonly servicePrincipalId: string;
  readonly createdAt: string;
  readonly draft: Draft;
  /** Revision of the last event that changed the draft: the ETag. (failure scenario 34) */
  readonly draftRevision: number;
  /** Digest of the input it was created from under an idempotency key; null without one. */
  readonly createdFrom: string | null;
  readonly work: WorkState;
}

/** What the last steps of a removal still need: the revisions policy may name, and on whose behalf. */
export interface RemovedAgent {
  readonly phase: 'removed';
  readonly agentId: string;
  readonly namespaceId: string;
  readonly servicePrincipalId: string;
  readonly revisionIds: readonly string[];
  readonly deletion: Deletion | null;
}

export type AgentState =
  /** Never created, or fenced off before it was. */
  | { readonly phase: 'none' }
  | PresentAgent
  | RemovedAgent;

export type AgentCommand =
  | { readonly type: 'CreateAgent'; readonly data: AgentCreated['data'] }
  | { readonly type: 'AbandonAgentCreation'; readonly agentId: string; readonly namespaceId: string }
  | { readonly type: 'VoidIntent' }
  | { readonly type: 'ChangeDraft'; readonly change: DraftChange; readonly ifMatch?: number | undefined }
  | LifecycleCommand
  | WorkCommand;

export const agentNotFound = (): Refusal => new Refusal('NOT_FOUND', 'The Agent was not found');

const decide = (state: AgentState, command: AgentCommand): Decision<AgentEvent> => {
  if (command.type === 'CreateAgent')
    return state.phase === 'none'
      ? [{ type: 'AgentCreated', data: command.data }]
      : new Refusal('RESOURCE_CONFLICT', 'An Agent with this identity already exists');
  if (command.type === 'AbandonAgentCreation')
    return state.phase === 'none'
      ? [{ type: 'AgentCreationAbandoned', data: { agentId: command.agentId, namespaceId: command.namespaceId } }]
      : [];
  if (state.phase !== 'present') return agentNotFound();
  switch (command.type) {
    case 'VoidIntent':
      return [{ type: 'IntentVoided', data: { agentId: state.agentId, namespaceId: state.namespaceId } }];
    case 'ChangeDraft':
      if (state.deletion !== null) return new Refusal('AGENT_DELETING', 'The Agent is being deleted');
      if (isStopping(state)) return new Refusal('RESOURCE_CONFLICT', 'The Agent is stopping');
      if (isUnreadable(state.draft.settings)) return new Refusal('RESOURCE_CONFLICT', `The saved ${state.draft.settings.unreadable} cannot be read`);
      if (command.ifMatch !== undefined && command.ifMatch !== state.draftRevision)
        return new Refusal('RESOURCE_CONFLICT', 'The Agent was changed since it was read');
      return draftEvents(state, command.change);
    case 'AdmitRevision':
    case 'RequestStop':
    case 'RequestDeletion':
      return decideLifecycle(state, command);
    default:
      return decideWork(state, command);
  }
};

const created = ({ data }: AgentCreated, { occurredAt, revision, idempotency }: Envelope): PresentAgent => ({
  phase: 'present',
  agentId: data.agentId,
  namespaceId: data.namespaceId,
  name: data.name,
  servicePrincipalId: data.servicePrincipalId,
  createdAt: occurredAt,
  draft: { configurationId: data.configurationId, executionMode: data.executionMode, backendId: data.backendId, settings: data.settings },
  draftRevision: revision,
  createdFrom: idempotency?.input ?? null,
  desired: 'stopped',
  activeRevisionId: null,
  previousRevisionId: null,
  revisions: [],
  stops: [],
  deletion: null,
  deployKeys: {},
  work: noWork,
});

const evolve = (state: AgentState, event: AgentEvent, envelope: Envelope): AgentState => {
  if (event.type === 'AgentCreated') return created(event, envelope);
  if (event.type === 'AgentCreationAbandoned' || state.phase !== 'present') return state;
  switch (event.type) {
    case 'AgentRemoved':
      return {
        phase: 'removed',
        agentId: state.agentId,
        namespaceId: state.namespaceId,
        servicePrincipalId: state.servicePrincipalId,
        revisionIds: state.revisions.map(({ revisionId }) => revisionId),
        deletion: state.deletion,
      };
    case 'WorkDeferred':
    case 'WorkRetryScheduled':
    case 'WorkClaimExpired':
      return { ...state, work: evolveWork(state.work, event, envelope) };
    default: {
      const draft = evolveDraft(state.draft, event);
      const draftRevision = draft === state.draft ? state.draftRevision : envelope.revision;
      return evolveWorkResults(evolveLifecycle({ ...state, draft, draftRevision }, event, envelope), event);
    }
  }
};

export const agentDecider: Decider<AgentState, AgentCommand, AgentEvent> = { initial: { phase: 'none' }, decide, evolve };
