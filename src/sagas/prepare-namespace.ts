/** A new Namespace is made ready, and one that is to be deleted is taken down. (rest-contract 3.2) */
import { workKey } from '../kernel/work.ts';
import type { NamespaceEvent } from '../namespace/messages.ts';
import type { Saga } from '../runtime/saga.ts';

export const prepareNamespace: Saga<NamespaceEvent> = {
  stream: 'namespace',
  on: {
    NamespaceCreated: ({ data: { namespaceId }, envelope: { actor } }) => [
      { type: 'EnqueueWork', work: { key: workKey.namespaceReady(namespaceId), lane: namespaceId, kind: 'namespace-ready', namespaceId, actor } },
    ],
    NamespaceBecameReady: ({ data }) => [{ type: 'CloseWork', key: workKey.namespaceReady(data.namespaceId), state: 'succeeded', code: 'NAMESPACE_READY' }],
    NamespaceFailed: ({ data }) => [{ type: 'CloseWork', key: workKey.namespaceReady(data.namespaceId), state: 'failed_permanent', code: data.code }],
    NamespaceDeletionRequested: ({ data: { namespaceId }, envelope: { actor } }) => [
      { type: 'EnqueueWork', work: { key: workKey.namespaceDeletion(namespaceId), lane: namespaceId, kind: 'namespace-deletion', namespaceId, actor } },
    ],
    NamespaceDeletionRetried: ({ data, envelope: { actor } }) => [{ type: 'RequeueWork', key: workKey.namespaceDeletion(data.namespaceId), actor }],
    NamespaceTeardownFailed: ({ data }) => [{ type: 'CloseWork', key: workKey.namespaceDeletion(data.namespaceId), state: 'failed_permanent', code: data.code }],
    NamespaceRemoved: ({ data }) => [{ type: 'RemoveLaneWork', lane: data.namespaceId }],
    WorkRetryScheduled: ({ data }) => [{ type: 'CountAttempts', key: data.workKey, attempts: data.attempt }],
    WorkClaimExpired: ({ data }) => [{ type: 'CountAttempts', key: data.workKey, attempts: data.attempt }],
  },
};
