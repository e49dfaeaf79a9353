/** A Namespace's state, and its register of names and references. */
import { describe, expect, it } from 'vitest';
import type { NamespaceEvent } from '../../src/namespace/messages.ts';
import { namespaceDecider } from '../../src/namespace/namespace.ts';
import { workKey } from '../../src/kernel/work.ts';
import { deciderSpec } from '../support/specs.ts';

const given = deciderSpec(namespaceDecider);
const namespaceId = 'ns_1';
const created: NamespaceEvent = { type: 'NamespaceCreated', data: { namespaceId, name: 'default' } };
const ready: NamespaceEvent = { type: 'NamespaceBecameReady', data: { namespaceId } };
const deletionRequested: NamespaceEvent = { type: 'NamespaceDeletionRequested', data: { namespaceId } };
const teardownFailed: NamespaceEvent = { type: 'NamespaceTeardownFailed', data: { namespaceId, code: 'X' } };
const configuration = { kind: 'configuration', id: 'cfg_1' };
const agent = (id: string) => ({ kind: 'agent', id });
const admitted = (resource: { kind: string; id: string }, name?: string, refersTo: { kind: string; id: string }[] = []): NamespaceEvent => ({
  type: 'ResourceAdmitted',
  data: { ...resource, ...(name !== undefined && { name }), refersTo },
});
const removed = (resource: { kind: string; id: string }): NamespaceEvent => ({ type: 'ResourceRemoved', data: resource });
const remove = (actorId: string, initiatorPermitted = true) => ({ type: 'RequestNamespaceDeletion', namespaceId, actorId, initiatorPermitted }) as const;
const claim = { workKey: workKey.namespaceReady(namespaceId), claimToken: 'token' };

describe('scenario 1: a name has one holder', () => {
  it('within its kind, until the holder is removed', () => {
    const take = { type: 'AdmitResource', resource: agent('agt_2'), name: 'triage', refersTo: [] } as const;
    given(created).when(take).then(admitted(agent('agt_2'), 'triage'));
    given(created, admitted(agent('agt_1'), 'triage')).when(take).refused('RESOURCE_CONFLICT');
    given(created, admitted(configuration, 'triage')).when(take).then(admitted(agent('agt_2'), 'triage'));
    given(created, admitted(agent('agt_1'), 'triage'), removed(agent('agt_1'))).when(take).then(admitted(agent('agt_2'), 'triage'));
    given(created, admitted(agent('agt_2'), 'triage')).when(take).then();
  });
});

describe('scenario 2: what is referred to cannot vanish', () => {
  const user = admitted(agent('agt_1'), 'triage', [configuration]);

  it('while anybody refers to it', () => {
    given(created, admitted(configuration), user).when({ type: 'RemoveResource', resource: configuration }).refused('RESOURCE_CONFLICT');
    const dropped: NamespaceEvent = { type: 'ReferencesDropped', data: { ...agent('agt_1'), refersTo: [configuration] } };
    given(created, admitted(configuration), user, dropped).when({ type: 'RemoveResource', resource: configuration }).then(removed(configuration));
    given(created, admitted(configuration), user, removed(agent('agt_1'))).when({ type: 'RemoveResource', resource: configuration }).then(removed(configuration));
  });

  it('and nothing can begin to refer to what is gone', () => {
    given(created).when({ type: 'AdmitResource', resource: agent('agt_1'), refersTo: [configuration] }).refused('NOT_FOUND');
    given(created, admitted(agent('agt_1'))).when({ type: 'AddReferences', resource: agent('agt_1'), refersTo: [configuration] }).refused('NOT_FOUND');
  });

  it('a reference is dropped once, and not when it was added again since', () => {
    const add = { type: 'AddReferences', resource: agent('agt_1'), refersTo: [configuration] } as const;
    const drop = (knownAt: number) => ({ ...add, type: 'DropReferences', knownAt }) as const;
    const added: NamespaceEvent = { type: 'ReferencesAdded', data: { ...agent('agt_1'), refersTo: [configuration] } };
    const dropped: NamespaceEvent = { type: 'ReferencesDropped', data: { ...agent('agt_1'), refersTo: [configuration] } };
    const unused = [created, admitted(configuration), admitted(agent('agt_1'))];
    given(...unused).when(add).then(added);
    given(...unused, added).when(add).then(added);
    given(...unused, added).when(drop(3)).then(dropped);
    given(...unused, added, added).when(drop(3)).then();
    given(...unused, added, dropped).when(drop(9)).then();
    given(...unused).when(drop(9)).then();
  });
});

describe('a Namespace', () => {
  it('becomes ready under a live claim, once', () => {
    given(created).when({ type: 'MarkNamespaceReady', namespaceId, claim }).then(ready);
    given(created, ready).when({ type: 'MarkNamespaceReady', namespaceId, claim }).refused('RESOURCE_CONFLICT');
    const fence: NamespaceEvent = { type: 'WorkClaimExpired', data: { ...claim, attempt: 1, code: 'LEASE_EXPIRED' } };
    given(created, fence).when({ type: 'MarkNamespaceReady', namespaceId, claim }).refused('RESOURCE_CONFLICT');
  });

  it('takes no new resources once it has failed or is going', () => {
    const take = { type: 'AdmitResource', resource: agent('agt_1'), refersTo: [] } as const;
    given(created, { type: 'NamespaceFailed', data: { namespaceId, code: 'X' } }).when(take).refused('RESOURCE_CONFLICT');
    given(created, deletionRequested).when(take).refused('RESOURCE_CONFLICT');
  });

  it('is deleted only when it is empty, and names what it still holds', () => {
    given(created, ready).when(remove('prn_1')).then(deletionRequested);
    given(created, ready, admitted(configuration), admitted(agent('agt_1'))).when(remove('prn_1')).refused('NAMESPACE_NOT_EMPTY', /agent, configuration: /);
  });

  it('whose teardown failed is retried by its initiator, or by another when that one could not', () => {
    given(created, deletionRequested).when(remove('prn_2')).then({ type: 'NamespaceDeletionRepeated', data: { namespaceId } });
    given(created, deletionRequested, teardownFailed).when(remove('prn_1')).then({ type: 'NamespaceDeletionRetried', data: { namespaceId } });
    given(created, deletionRequested, teardownFailed).when(remove('prn_2')).refused('FORBIDDEN');
    given(created, deletionRequested, teardownFailed)
      .when(remove('prn_2', false))
      .then({ type: 'NamespaceDeletionRetried', data: { namespaceId, previousActorId: 'prn_1' } });
  });

  it('ends with its removal', () => {
    const gone: NamespaceEvent = { type: 'NamespaceRemoved', data: { namespaceId } };
    const deletion = { workKey: workKey.namespaceDeletion(namespaceId), claimToken: 'token' };
    given(created, deletionRequested).when({ type: 'RemoveNamespace', namespaceId, claim: deletion }).then(gone);
    given(created, deletionRequested, gone).when(remove('prn_1')).refused('NOT_FOUND');
    expect(given(created, deletionRequested, gone).state()).toMatchObject({ status: 'removed' });
  });
});
