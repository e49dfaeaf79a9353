/**
 * A saga: pure steps from an event to commands about work. It decides only what work there is; when and how often
 * it is tried belongs to the queue, what it means to the stream. (architecture section 5)
 */
import type { Handlers } from './consumer.ts';
import type { Message } from '../kernel/decider.ts';
import type { Actor } from '../kernel/event.ts';

/** Work to be done for an actor, by a key made of target and operation. */
export interface Work {
  readonly key: string;
  /** At most one item of a lane is worked on at a time: the Agent's or the Namespace's id. */
  readonly lane: string;
  readonly kind: string;
  readonly namespaceId: string;
  readonly agentId?: string;
  readonly revisionId?: string;
  readonly operationId?: string;
  readonly actor: Actor;
}

export type SagaCommand =
  /** Queues a new item; one that is there already stays as it is. */
  | { readonly type: 'EnqueueWork'; readonly work: Work }
  /** The same item from the beginning, for an actor who may be another. */
  | { readonly type: 'RequeueWork'; readonly key: string; readonly actor: Actor }
  | { readonly type: 'CloseWork'; readonly key: string; readonly state: 'succeeded' | 'failed_permanent'; readonly code: string }
  /** The item has spent at least this many attempts. */
  | { readonly type: 'CountAttempts'; readonly key: string; readonly attempts: number }
  /** The lane has ended, and all its items with it; `keep` is the item whose last steps follow that end. */
  | { readonly type: 'RemoveLaneWork'; readonly lane: string; readonly keep?: string };

export interface Saga<E extends Message> {
  /** The kind of streams it follows, for example `agent`. */
  readonly stream: string;
  readonly on: Handlers<E, SagaCommand>;
}
