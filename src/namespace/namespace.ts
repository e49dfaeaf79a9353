/** One Namespace's decider: its state, and the register that decides names, emptiness and "still referenced". (architecture section 3, failure scenarios 1 and 2) */
import { Map, Set } from 'immutable';
import type { Decider, Decision } from '../kernel/decider.ts';
import { Refusal } from '../kernel/errors.ts';
import type { Actor, Envelope } from '../kernel/event.ts';
import { DeletionOwned, claimEnded, closeWork, decideEvidence, evolveWork, noWork, reopenWork, workKey, type Claim, type EvidenceCommand, type WorkState } from '../kernel/work.ts';
import type { NamespaceEvent, RegisteredResource } from './messages.ts';

export type NamespaceStatus = 'absent' | 'provisioning' | 'ready' | 'failed' | 'deleting' | 'removed';

export interface Registration extends RegisteredResource {
  readonly name: string | undefined;
  /** What it refers to, each with the revision of this stream that said so last. */
  readonly refersTo: Map<string, number>;
}

export interface NamespaceState {
  readonly status: NamespaceStatus;
  readonly name: string;
  readonly createdAt: string;
  readonly creator: Actor | null;
  /** Digest of the input it was created from under an idempotency key; null without one. */
  readonly createdFrom: string | null;
  /** By {@link keyOf}. */
  readonly resources: Map<string, Registration>;
  /** Holder of each name, by kind and name. */
  readonly names: Map<string, RegisteredResource>;
  readonly deletion: { readonly actor: Actor; readonly failedCode: string | null } | null;
  readonly work: WorkState;
}

export type NamespaceCommand =
  | { readonly type: 'CreateNamespace'; readonly namespaceId: string; readonly name: string }
  | { readonly type: 'AbandonNamespaceCreation'; readonly namespaceId: string }
  | { readonly type: 'AdmitResource'; readonly resource: RegisteredResource; readonly name?: string; readonly refersTo: readonly RegisteredResource[] }
  | { readonly type: 'AddReferences'; readonly resource: RegisteredResource; readonly refersTo: readonly RegisteredResource[] }
  /** `knownAt`: revision of this stream at which the references were seen to be idle; one that was added again since stays. */
  | { readonly type: 'DropReferences'; readonly resource: RegisteredResource; readonly refersTo: readonly RegisteredResource[]; readonly knownAt: number }
  | { readonly type: 'RemoveResource'; readonly resource: RegisteredResource }
  | { readonly type: 'RequestNamespaceDeletion'; readonly namespaceId: string; readonly actorId: string; readonly initiatorPermitted: boolean }
  | { readonly type: 'MarkNamespaceReady'; readonly namespaceId: string; readonly claim: Claim }
  | { readonly type: 'FailNamespace'; readonly namespaceId: string; readonly claim: Claim; readonly code: string }
  | { readonly type: 'FailNamespaceTeardown'; readonly namespaceId: string; readonly claim: Claim; readonly code: string }
  | { readonly type: 'RemoveNamespace'; readonly namespaceId: string; readonly claim: Claim }
  | EvidenceCommand;

/** A refusal caused by other registrations, which may be intents whose holders never came to be. */
export class RegisterConflict extends Refusal {
  readonly holders: readonly RegisteredResource[];

  constructor(code: 'RESOURCE_CONFLICT' | 'NAMESPACE_NOT_EMPTY', message: string, holders: readonly RegisteredResource[]) {
    super(code, message);
    this.holders = holders;
  }
}

const keyOf = ({ kind, id }: RegisteredResource): string => `${kind}:${id}`;
const plain = ({ kind, id }: RegisteredResource): RegisteredResource => ({ kind, id });
const nameKey = (kind: string, name: string): string => `${kind}:${name}`;

const notFound = (): Refusal => new Refusal('NOT_FOUND', 'The Namespace was not found');
const targetNotFound = ({ kind }: RegisteredResource): Refusal =>
  new Refusal('NOT_FOUND', `The ${kind.replaceAll('_', ' ')} was not found in this Namespace`);

/** Registered resources that refer to this one. */
export const referrersOf = (state: NamespaceState, resource: RegisteredResource): readonly Registration[] =>
  state.resources.valueSeq().filter(({ refersTo }) => refersTo.has(keyOf(resource))).toArray();

export const isRegistered = (state: NamespaceState, resource: RegisteredResource): boolean => state.resources.has(keyOf(resource));

/** The first of these that is none of the Namespace, as a refusal. */
export const unregistered = (state: NamespaceState, resources: readonly RegisteredResource[]): Refusal | undefined => {
  const missing = resources.find((resource) => !isRegistered(state, resource));
  return missing && targetNotFound(missing);
};

/** Refuses with the message clients know: the kinds that are left and as many ids as fit 256 characters. (rest-contract 3.2) */
const notEmpty = (state: NamespaceState): RegisterConflict => {
  const holders = state.resources.valueSeq().map(plain).toArray();
  const kinds = Set(holders.map(({ kind }) => kind)).toArray().sort().join(', ');
  return new RegisterConflict(
    'NAMESPACE_NOT_EMPTY',
    `The Namespace still holds ${kinds}: ${holders.map(({ id }) => id).join(', ')}`,
    holders,
  );
};

const decideAdmission = (state: NamespaceState, command: NamespaceCommand & { type: 'AdmitResource' }): Decision<NamespaceEvent> => {
  const { resource, name, refersTo } = command;
  if (state.status !== 'provisioning' && state.status !== 'ready')
    return new Refusal('RESOURCE_CONFLICT', `The Namespace is ${state.status} and accepts no new resources`);
  if (isRegistered(state, resource)) return [];
  const missing = unregistered(state, refersTo);
  if (missing !== undefined) return missing;
  const holder = name === undefined ? undefined : state.names.get(nameKey(resource.kind, name));
  if (holder !== undefined) return new RegisterConflict('RESOURCE_CONFLICT', `The name is already used by another ${resource.kind} in this Namespace`, [holder]);
  const data = { ...plain(resource), refersTo: refersTo.map(plain) };
  return [{ type: 'ResourceAdmitted', data: name === undefined ? data : { ...data, name } }];
};

const decideDeletion = (state: NamespaceState, command: NamespaceCommand & { type: 'RequestNamespaceDeletion' }): Decision<NamespaceEvent> => {
  const { namespaceId, actorId, initiatorPermitted } = command;
  if (state.deletion === null)
    return state.resources.isEmpty() ? [{ type: 'NamespaceDeletionRequested', data: { namespaceId } }] : notEmpty(state);
  if (state.deletion.failedCode === null) return [{ type: 'NamespaceDeletionRepeated', data: { namespaceId } }];
  const initiatorId = state.deletion.actor.principalId;
  if (initiatorId === actorId) return [{ type: 'NamespaceDeletionRetried', data: { namespaceId } }];
  if (initiatorPermitted) return new DeletionOwned(initiatorId);
  return [{ type: 'NamespaceDeletionRetried', data: { namespaceId, previousActorId: initiatorId } }];
};

const decide = (state: NamespaceState, command: NamespaceCommand): Decision<NamespaceEvent> => {
  if (command.type === 'CreateNamespace')
    return state.status === 'absent'
      ? [{ type: 'NamespaceCreated', data: { namespaceId: command.namespaceId, name: command.name } }]
      : new Refusal('RESOURCE_CONFLICT', 'A Namespace with this identity already exists');
  if (command.type === 'AbandonNamespaceCreation')
    return state.status === 'absent' ? [{ type: 'NamespaceCreationAbandoned', data: { namespaceId: command.namespaceId } }] : [];
  if (state.status === 'absent' || state.status === 'removed') return notFound();
  switch (command.type) {
    case 'AdmitResource':
      return decideAdmission(state, command);
    case 'AddReferences': {
      const { resource, refersTo } = command;
      const missing = unregistered(state, [resource, ...refersTo]);
      if (missing !== undefined) return missing;
      return [{ type: 'ReferencesAdded', data: { ...plain(resource), refersTo: refersTo.map(plain) } }];
    }
    case 'DropReferences': {
      const registered = state.resources.get(keyOf(command.resource));
      const dropped = command.refersTo.filter((target) => (registered?.refersTo.get(keyOf(target)) ?? Infinity) <= command.knownAt);
      return dropped.length === 0 ? [] : [{ type: 'ReferencesDropped', data: { ...plain(command.resource), refersTo: dropped.map(plain) } }];
    }
    case 'RemoveResource': {
      if (!isRegistered(state, command.resource)) return [];
      const referrers = referrersOf(state, command.resource);
      if (referrers.length > 0)
        return new RegisterConflict('RESOURCE_CONFLICT', `The ${command.resource.kind} is still referenced`, referrers.map(plain));
      return [{ type: 'ResourceRemoved', data: plain(command.resource) }];
    }
    case 'RequestNamespaceDeletion':
      return decideDeletion(state, command);
    case 'DeferWork':
    case 'ScheduleWorkRetry':
    case 'ExpireWorkClaim':
      return decideEvidence(state.work, command);
    default:
  }
  const ended = claimEnded(state.work, command.claim);
  if (ended !== undefined) return ended;
  const { namespaceId } = command;
  switch (command.type) {
    case 'MarkNamespaceReady':
      return state.status === 'provisioning' ? [{ type: 'NamespaceBecameReady', data: { namespaceId } }] : [];
    case 'FailNamespace':
      return state.status === 'provisioning' ? [{ type: 'NamespaceFailed', data: { namespaceId, code: command.code } }] : [];
    case 'FailNamespaceTeardown':
      return [{ type: 'NamespaceTeardownFailed', data: { namespaceId, code: command.code } }];
    case 'RemoveNamespace':
      return state.status === 'deleting' ? [{ type: 'NamespaceRemoved', data: { namespaceId } }] : [];
  }
};

const since = (resources: readonly RegisteredResource[], { revision }: Envelope): Registration['refersTo'] => Map(resources.map((resource) => [keyOf(resource), revision]));

const changeReferences = (
  state: NamespaceState,
  resource: RegisteredResource,
  change: (refersTo: Registration['refersTo']) => Registration['refersTo'],
): NamespaceState => {
  const registered = state.resources.get(keyOf(resource));
  if (registered === undefined) return state;
  return { ...state, resources: state.resources.set(keyOf(resource), { ...registered, refersTo: change(registered.refersTo) }) };
};

const evolve = (state: NamespaceState, event: NamespaceEvent, envelope: Envelope): NamespaceState => {
  switch (event.type) {
    case 'NamespaceCreated':
      return { ...state, status: 'provisioning', name: event.data.name, createdAt: envelope.occurredAt, creator: envelope.actor, createdFrom: envelope.idempotency?.input ?? null };
    case 'NamespaceCreationAbandoned':
    case 'NamespaceDeletionRepeated':
      return state;
    case 'NamespaceBecameReady':
      return { ...state, status: 'ready', work: closeWork(state.work, workKey.namespaceReady(event.data.namespaceId), 'NAMESPACE_READY') };
    case 'NamespaceFailed':
      return { ...state, status: 'failed', work: closeWork(state.work, workKey.namespaceReady(event.data.namespaceId), event.data.code) };
    case 'NamespaceDeletionRequested':
      return { ...state, status: 'deleting', deletion: { actor: envelope.actor, failedCode: null } };
    case 'NamespaceDeletionRetried':
      return {
        ...state,
        deletion: { actor: envelope.actor, failedCode: null },
        work: reopenWork(state.work, workKey.namespaceDeletion(event.data.namespaceId)),
      };
    case 'NamespaceTeardownFailed':
      return {
        ...state,
        deletion: state.deletion === null ? null : { ...state.deletion, failedCode: event.data.code },
        work: closeWork(state.work, workKey.namespaceDeletion(event.data.namespaceId), event.data.code),
      };
    case 'NamespaceRemoved':
      return { ...state, status: 'removed', work: closeWork(state.work, workKey.namespaceDeletion(event.data.namespaceId), 'NAMESPACE_DELETED') };
    case 'ResourceAdmitted': {
      const { kind, id, name, refersTo } = event.data;
      const registration = { kind, id, name, refersTo: since(refersTo, envelope) };
      return {
        ...state,
        resources: state.resources.set(keyOf(registration), registration),
        names: name === undefined ? state.names : state.names.set(nameKey(kind, name), { kind, id }),
      };
    }
    case 'ReferencesAdded':
      return changeReferences(state, event.data, (refersTo) => refersTo.merge(since(event.data.refersTo, envelope)));
    case 'ReferencesDropped':
      return changeReferences(state, event.data, (refersTo) => refersTo.deleteAll(event.data.refersTo.map(keyOf)));
    case 'ResourceRemoved': {
      const registered = state.resources.get(keyOf(event.data));
      if (registered === undefined) return state;
      const resources = state.resources.delete(keyOf(registered));
      return { ...state, resources, names: registered.name === undefined ? state.names : state.names.delete(nameKey(registered.kind, registered.name)) };
    }
    case 'WorkDeferred':
    case 'WorkRetryScheduled':
    case 'WorkClaimExpired':
      return { ...state, work: evolveWork(state.work, event, envelope) };
  }
};

export const namespaceDecider: Decider<NamespaceState, NamespaceCommand, NamespaceEvent> = {
  initial: { status: 'absent', name: '', createdAt: '', creator: null, createdFrom: null, resources: Map(), names: Map(), deletion: null, work: noWork },
  decide,
  evolve,
};
