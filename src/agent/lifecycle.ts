/** Desired state, admissions, stop and delete of one Agent: what callers may ask for, and when. (agent-lifecycle sections 1 and 4) */
import type { Decision } from '../kernel/decider.ts';
import { Refusal } from '../kernel/errors.ts';
import type { Actor, Envelope } from '../kernel/event.ts';
import { DeletionOwned, reopenWork, workKey, type WorkState } from '../kernel/work.ts';
import { isUnreadable } from '../kernel/codec.ts';
import type { Draft } from './draft.ts';
import type { AgentEvent } from './messages.ts';

/** What the Agent's stream keeps of a revision; the snapshot itself is on `revision-<id>`. */
export interface AdmittedRevision {
  readonly revisionId: string;
  readonly number: number;
  readonly digest: string;
  readonly compute: { readonly id: string; readonly implementation: string };
  readonly exclusive: boolean;
  readonly actor: Actor;
  readonly admittedAt: string;
  /** The admission, as the cause of what its work writes. */
  readonly eventId: string;
}

export interface StopOperation {
  readonly operationId: string;
  readonly actor: Actor;
  /** A stop sweeps the revisions admitted before it in the stream, never later ones. (failure scenario 21) */
  readonly lastNumber: number;
  readonly eventId: string;
}

export interface Deletion {
  readonly actor: Actor;
  /** Code of the terminal teardown failure, if the last try ended so. */
  readonly failedCode: string | null;
  /** The last effect is done: only removal is left. */
  readonly finished: boolean;
  readonly eventId: string;
}

export interface Lifecycle {
  readonly desired: 'running' | 'stopped';
  readonly activeRevisionId: string | null;
  /** What was selected before {@link activeRevisionId}. */
  readonly previousRevisionId: string | null;
  readonly revisions: readonly AdmittedRevision[];
  readonly stops: readonly StopOperation[];
  readonly deletion: Deletion | null;
  /** Idempotency keys of deploys: digest of the key to the revision it made. */
  readonly deployKeys: Readonly<Record<string, string>>;
}

interface LifecycleOwner extends Lifecycle {
  readonly agentId: string;
  readonly namespaceId: string;
  readonly draft: Draft;
  readonly work: WorkState;
}

export type LifecycleCommand =
  | {
      readonly type: 'AdmitRevision';
      readonly revisionId: string;
      readonly number: number;
      readonly digest: string;
      readonly configurationId: string;
      readonly configurationGeneration: number;
      readonly compute: { readonly id: string; readonly implementation: string };
      readonly exclusive: boolean;
    }
  | { readonly type: 'RequestStop'; readonly operationId: string }
  | {
      readonly type: 'RequestDeletion';
      readonly actorId: string;
      /** Whether the actor who began the deletion still holds `delete`. */
      readonly initiatorPermitted: boolean;
      readonly accessBindingIds: readonly string[];
      readonly restrictionIds: readonly string[];
    };

/** A stop is committed and its work has not removed the runtime yet. */
export const isStopping = (agent: LifecycleOwner): boolean =>
  agent.desired === 'stopped' &&
  (agent.activeRevisionId !== null || agent.stops.some((stop) => !agent.work.closed.has(workKey.stop(agent.agentId, stop.operationId))));

export const nextNumber = ({ revisions }: Lifecycle): number => (revisions.at(-1)?.number ?? 0) + 1;

export const decideLifecycle = (agent: LifecycleOwner, command: LifecycleCommand): Decision<AgentEvent> => {
  const { agentId, namespaceId } = agent;
  const owner = { agentId, namespaceId };
  switch (command.type) {
    case 'AdmitRevision': {
      if (agent.deletion !== null) return new Refusal('AGENT_DELETING', 'The Agent is being deleted');
      if (isUnreadable(agent.draft.settings)) return new Refusal('RESOURCE_CONFLICT', `The saved ${agent.draft.settings.unreadable} cannot be read`);
      if (agent.draft.settings.harnessAuth === null) return new Refusal('RESOURCE_CONFLICT', 'The Agent has no harness authentication');
      if (command.number !== nextNumber(agent)) return new Refusal('RESOURCE_CONFLICT', 'Another deployment was admitted at the same time');
      const { type: _, ...admission } = command;
      return [{ type: 'AgentRevisionAdmitted', data: { ...owner, ...admission } }];
    }
    case 'RequestStop':
      if (agent.deletion !== null) return [];
      return [{ type: 'AgentStopRequested', data: { ...owner, operationId: command.operationId } }];
    case 'RequestDeletion': {
      if (agent.deletion === null)
        return [
          {
            type: 'AgentDeletionRequested',
            data: { ...owner, accessBindingIds: [...command.accessBindingIds], restrictionIds: [...command.restrictionIds] },
          },
        ];
      if (agent.deletion.failedCode === null) return [{ type: 'AgentDeletionRepeated', data: owner }];
      const initiatorId = agent.deletion.actor.principalId;
      if (initiatorId === command.actorId) return [{ type: 'AgentDeletionRetried', data: owner }];
      if (command.initiatorPermitted) return new DeletionOwned(initiatorId);
      return [{ type: 'AgentDeletionTakenOver', data: { ...owner, previousActorId: initiatorId } }];
    }
  }
};

export const evolveLifecycle = <A extends LifecycleOwner>(agent: A, event: AgentEvent, { id: eventId, actor, occurredAt, idempotency }: Envelope): A => {
  switch (event.type) {
    case 'AgentRevisionAdmitted': {
      const { revisionId, number, digest, compute, exclusive } = event.data;
      return {
        ...agent,
        desired: 'running',
        revisions: [...agent.revisions, { revisionId, number, digest, compute, exclusive, actor, admittedAt: occurredAt, eventId }],
        deployKeys: idempotency === undefined ? agent.deployKeys : { ...agent.deployKeys, [idempotency.key]: revisionId },
      };
    }
    case 'AgentStopRequested': {
      const stop = { operationId: event.data.operationId, actor, lastNumber: agent.revisions.at(-1)?.number ?? 0, eventId };
      return { ...agent, desired: 'stopped', stops: [...agent.stops, stop] };
    }
    case 'AgentDeletionRequested':
      return { ...agent, desired: 'stopped', deletion: { actor, failedCode: null, finished: false, eventId } };
    case 'AgentDeletionRetried':
    case 'AgentDeletionTakenOver':
      return {
        ...agent,
        deletion: { actor, failedCode: null, finished: agent.deletion?.finished ?? false, eventId },
        work: reopenWork(agent.work, workKey.deletion(agent.agentId)),
      };
    default:
      return agent;
  }
};
