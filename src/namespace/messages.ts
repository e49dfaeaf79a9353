/** Events of one Namespace's stream: its state, the register of what lives in it, and the evidence of its work. (architecture section 3) */
import Type, { type Static } from 'typebox';
import { createCodec, defineEvent, type EventOf } from '../kernel/codec.ts';
import { workClaimExpired, workDeferred, workRetryScheduled } from '../kernel/work-evidence.ts';

const id = Type.String();

/** A resource inside the Namespace, as its register knows it. */
export const resourceShape = Type.Object({ kind: Type.String(), id });
export type RegisteredResource = Static<typeof resourceShape>;

const namespaceCreated = defineEvent('NamespaceCreated', {
  skeleton: Type.Object({ namespaceId: id, name: Type.String() }),
  view: ['namespaceId', 'name'],
});
/** A fence: this id never became a Namespace, and its name is free. */
const namespaceCreationAbandoned = defineEvent('NamespaceCreationAbandoned', {
  skeleton: Type.Object({ namespaceId: id }),
  view: ['namespaceId'],
});
const namespaceBecameReady = defineEvent('NamespaceBecameReady', { skeleton: Type.Object({ namespaceId: id }), view: ['namespaceId'] });
const namespaceFailed = defineEvent('NamespaceFailed', {
  skeleton: Type.Object({ namespaceId: id, code: Type.String() }),
  view: ['namespaceId', 'code'],
});
const namespaceDeletionRequested = defineEvent('NamespaceDeletionRequested', {
  skeleton: Type.Object({ namespaceId: id }),
  view: ['namespaceId'],
});
const namespaceDeletionRepeated = defineEvent('NamespaceDeletionRepeated', {
  skeleton: Type.Object({ namespaceId: id }),
  view: ['namespaceId'],
});
/** The same work is queued again with fresh attempts, by the initiator or by one who took over. */
const namespaceDeletionRetried = defineEvent('NamespaceDeletionRetried', {
  skeleton: Type.Object({ namespaceId: id, previousActorId: Type.Optional(id) }),
  view: ['namespaceId', 'previousActorId'],
});
const namespaceTeardownFailed = defineEvent('NamespaceTeardownFailed', {
  skeleton: Type.Object({ namespaceId: id, code: Type.String() }),
  view: ['namespaceId', 'code'],
});
const namespaceRemoved = defineEvent('NamespaceRemoved', { skeleton: Type.Object({ namespaceId: id }), view: ['namespaceId'] });

const resourceAdmitted = defineEvent('ResourceAdmitted', {
  skeleton: Type.Object({ kind: Type.String(), id, name: Type.Optional(Type.String()), refersTo: Type.Array(resourceShape) }),
  view: ['kind', 'id', 'name', 'refersTo'],
});
const referencesAdded = defineEvent('ReferencesAdded', {
  skeleton: Type.Object({ kind: Type.String(), id, refersTo: Type.Array(resourceShape) }),
  view: ['kind', 'id', 'refersTo'],
});
const referencesDropped = defineEvent('ReferencesDropped', {
  skeleton: Type.Object({ kind: Type.String(), id, refersTo: Type.Array(resourceShape) }),
  view: ['kind', 'id', 'refersTo'],
});
const resourceRemoved = defineEvent('ResourceRemoved', {
  skeleton: Type.Object({ kind: Type.String(), id }),
  view: ['kind', 'id'],
});

export const namespaceEvents = createCodec(
  namespaceCreated,
  namespaceCreationAbandoned,
  namespaceBecameReady,
  namespaceFailed,
  namespaceDeletionRequested,
  namespaceDeletionRepeated,
  namespaceDeletionRetried,
  namespaceTeardownFailed,
  namespaceRemoved,
  resourceAdmitted,
  referencesAdded,
  referencesDropped,
  resourceRemoved,
  workDeferred,
  workRetryScheduled,
  workClaimExpired,
);

export type NamespaceEvent =
  | EventOf<typeof namespaceCreated>
  | EventOf<typeof namespaceCreationAbandoned>
  | EventOf<typeof namespaceBecameReady>
  | EventOf<typeof namespaceFailed>
  | EventOf<typeof namespaceDeletionRequested>
  | EventOf<typeof namespaceDeletionRepeated>
  | EventOf<typeof namespaceDeletionRetried>
  | EventOf<typeof namespaceTeardownFailed>
  | EventOf<typeof namespaceRemoved>
  | EventOf<typeof resourceAdmitted>
  | EventOf<typeof referencesAdded>
  | EventOf<typeof referencesDropped>
  | EventOf<typeof resourceRemoved>
  | EventOf<typeof workDeferred>
  | EventOf<typeof workRetryScheduled>
  | EventOf<typeof workClaimExpired>;
