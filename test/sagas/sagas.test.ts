/** Given an event, then commands: what each saga makes of what happened. */
import { describe, expect, it } from 'vitest';
import type { Position } from '../../src/event-store/event-store.ts';
import type { Message } from '../../src/kernel/decider.ts';
import type { Actor, Envelope } from '../../src/kernel/event.ts';
import type { Delivered } from '../../src/runtime/consumer.ts';
import type { SagaCommand } from '../../src/runtime/saga.ts';
import { prepareNamespace } from '../../src/sagas/prepare-namespace.ts';
import { reconcileAgent } from '../../src/sagas/reconcile-agent.ts';
import { retireAgent } from '../../src/sagas/retire-agent.ts';

const actor: Actor = { principalId: 'prn_1', kind: 'principal' };
const agent = { agentId: 'agt_1', namespaceId: 'ns_1' };

const given = ({ on }: { readonly on: object }, type: string, data: Message['data']): readonly SagaCommand[] => {
  const handlers = on as Record<string, (delivered: Delivered) => readonly SagaCommand[]>;
  const delivered = { type, data, envelope: { actor } as Envelope, position: '1' as Position, stream: '', kind: '', metadata: '' };
  return handlers[type]!(delivered);
};

describe('reconcile-agent', () => {
  it('queues a deployment for every admission, and a stop for every request, in the lane of the Agent', () => {
    expect(given(reconcileAgent, 'AgentRevisionAdmitted', { ...agent, revisionId: 'rev_1' })).toStrictEqual([
      { type: 'EnqueueWork', work: { key: 'agent_revision:rev_1:reconcile', lane: 'agt_1', kind: 'deployment', ...agent, revisionId: 'rev_1', actor } },
    ]);
    expect(given(reconcileAgent, 'AgentStopRequested', { ...agent, operationId: 'opr_1' })).toStrictEqual([
      { type: 'EnqueueWork', work: { key: 'agent:agt_1:stop:opr_1', lane: 'agt_1', kind: 'stop', ...agent, operationId: 'opr_1', actor } },
    ]);
  });

  it.each([
    ['DeploymentActivated', { code: 'REVISION_ALREADY_ACTIVE' }, 'succeeded', 'REVISION_ALREADY_ACTIVE'],
    ['DeploymentSuperseded', {}, 'succeeded', 'REVISION_SUPERSEDED'],
    ['DeploymentStopped', {}, 'succeeded', 'REVISION_STOPPED'],
    ['DeploymentFailed', { code: 'MAX_ATTEMPTS_EXHAUSTED' }, 'failed_permanent', 'MAX_ATTEMPTS_EXHAUSTED'],
  ])('closes a deployment by %s', (type, more, state, code) => {
    expect(given(reconcileAgent, type, { ...agent, revisionId: 'rev_1', ...more })).toStrictEqual([{ type: 'CloseWork', key: 'agent_revision:rev_1:reconcile', state, code }]);
  });

  it.each([
    ['AgentStopped', { code: 'AGENT_STOPPED' }, 'succeeded', 'AGENT_STOPPED'],
    ['AgentStopSuperseded', {}, 'succeeded', 'STOP_SUPERSEDED'],
    ['AgentStopFailed', { code: 'ACTOR_REVOKED' }, 'failed_permanent', 'ACTOR_REVOKED'],
  ])('closes a stop by %s', (type, more, state, code) => {
    expect(given(reconcileAgent, type, { ...agent, operationId: 'opr_1', ...more })).toStrictEqual([{ type: 'CloseWork', key: 'agent:agt_1:stop:opr_1', state, code }]);
  });

  it('counts attempts by their evidence, but not the one a recovery gives back', () => {
    const lost = { workKey: 'key', claimToken: 'token', attempt: 3 };
    expect(given(reconcileAgent, 'WorkRetryScheduled', { workKey: 'key', code: 'X', attempt: 2 })).toStrictEqual([{ type: 'CountAttempts', key: 'key', attempts: 2 }]);
    expect(given(reconcileAgent, 'WorkClaimExpired', { ...lost, code: 'LEASE_EXPIRED' })).toStrictEqual([{ type: 'CountAttempts', key: 'key', attempts: 3 }]);
    expect(given(reconcileAgent, 'WorkClaimExpired', { ...lost, code: 'ACTIVE_REVISION_RECOVERY' })).toStrictEqual([]);
  });
});

describe('retire-agent', () => {
  const key = 'agent:agt_1:delete';

  it('queues one item, queues it again for whoever repeats the deletion, and keeps only it when the Agent has gone', () => {
    expect(given(retireAgent, 'AgentDeletionRequested', agent)).toStrictEqual([{ type: 'EnqueueWork', work: { key, lane: 'agt_1', kind: 'deletion', ...agent, actor } }]);
    expect(given(retireAgent, 'AgentTeardownFailed', { ...agent, code: 'ACTOR_REVOKED' })).toStrictEqual([{ type: 'CloseWork', key, state: 'failed_permanent', code: 'ACTOR_REVOKED' }]);
    for (const type of ['AgentDeletionRetried', 'AgentDeletionTakenOver']) expect(given(retireAgent, type, agent)).toStrictEqual([{ type: 'RequeueWork', key, actor }]);
    expect(given(retireAgent, 'AgentRemoved', agent)).toStrictEqual([{ type: 'RemoveLaneWork', lane: 'agt_1', keep: key }]);
  });
});

describe('prepare-namespace', () => {
  const namespaceId = 'ns_1';

  it('makes a new Namespace ready', () => {
    const key = 'namespace:ns_1:ready';
    expect(given(prepareNamespace, 'NamespaceCreated', { namespaceId, name: 'a' })).toStrictEqual([
      { type: 'EnqueueWork', work: { key, lane: 'ns_1', kind: 'namespace-ready', namespaceId, actor } },
    ]);
    expect(given(prepareNamespace, 'NamespaceBecameReady', { namespaceId })).toStrictEqual([{ type: 'CloseWork', key, state: 'succeeded', code: 'NAMESPACE_READY' }]);
    expect(given(prepareNamespace, 'NamespaceFailed', { namespaceId, code: 'X' })).toStrictEqual([{ type: 'CloseWork', key, state: 'failed_permanent', code: 'X' }]);
  });

  it('takes a Namespace down', () => {
    const key = 'namespace:ns_1:delete';
    expect(given(prepareNamespace, 'NamespaceDeletionRequested', { namespaceId })).toStrictEqual([
      { type: 'EnqueueWork', work: { key, lane: 'ns_1', kind: 'namespace-deletion', namespaceId, actor } },
    ]);
    expect(given(prepareNamespace, 'NamespaceTeardownFailed', { namespaceId, code: 'X' })).toStrictEqual([{ type: 'CloseWork', key, state: 'failed_permanent', code: 'X' }]);
    expect(given(prepareNamespace, 'NamespaceDeletionRetried', { namespaceId })).toStrictEqual([{ type: 'RequeueWork', key, actor }]);
    expect(given(prepareNamespace, 'NamespaceRemoved', { namespaceId })).toStrictEqual([{ type: 'RemoveLaneWork', lane: 'ns_1' }]);
  });
});
