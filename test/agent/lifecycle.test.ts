/** What callers may ask of an Agent, and when. */
import { describe, expect, it } from 'vitest';
import { admit, admitted, agentId, created, deletionRequested, given, owner, selected, stopRequested, stopped, teardownFailed } from './support.ts';

const requestDeletion = (actorId: string, initiatorPermitted = true) =>
  ({ type: 'RequestDeletion', actorId, initiatorPermitted, accessBindingIds: [], restrictionIds: [] }) as const;
const change = { type: 'ChangeDraft', change: { configurationId: 'cfg_2' } } as const;

describe('creation', () => {
  it('happens once, and never behind its fence at the same revision', () => {
    given().when({ type: 'CreateAgent', data: created.data as never }).then(created);
    given(created).when({ type: 'CreateAgent', data: created.data as never }).refused('RESOURCE_CONFLICT');
    given().when({ type: 'AbandonAgentCreation', ...owner }).then({ type: 'AgentCreationAbandoned', data: owner });
    given(created).when({ type: 'AbandonAgentCreation', ...owner }).then();
  });

  it('is needed for everything else', () => {
    given().when(admit(1)).refused('NOT_FOUND');
    given().when(change).refused('NOT_FOUND');
  });
});

describe('a change of the draft', () => {
  it('records each changed part and moves the ETag only then', () => {
    given(created).when(change).then({ type: 'AgentConfigurationBound', data: { ...owner, configurationId: 'cfg_2' } });
    expect(given(created, admitted(1)).state()).toMatchObject({ draftRevision: 0 });
    expect(given(created, admitted(1), { type: 'AgentBackendBound', data: { ...owner, backendId: null } }).state()).toMatchObject({ draftRevision: 2 });
  });

  it('is refused when it was changed since, while stopping, and while deleting', () => {
    given(created, admitted(1)).when({ ...change, ifMatch: 0 }).then({ type: 'AgentConfigurationBound', data: { ...owner, configurationId: 'cfg_2' } });
    given(created).when({ ...change, ifMatch: 1 }).refused('RESOURCE_CONFLICT');
    given(created, stopRequested('opr_1')).when(change).refused('RESOURCE_CONFLICT', /stopping/);
    given(created, deletionRequested).when(change).refused('AGENT_DELETING');
  });
});

describe('a deployment', () => {
  it('is admitted with the next number, again and again, also while stopping', () => {
    given(created).when(admit(1)).then(admitted(1));
    given(created, admitted(1)).when(admit(1)).refused('RESOURCE_CONFLICT');
    given(created, admitted(1), stopRequested('opr_1')).when(admit(2)).then(admitted(2));
    expect(given(created, admitted(1), stopRequested('opr_1'), admitted(2)).state()).toMatchObject({ desired: 'running' });
  });

  it('is refused while deleting, without harness authentication, and with an unreadable draft', () => {
    given(created, deletionRequested).when(admit(1)).refused('AGENT_DELETING');
    given(created, { type: 'AgentHarnessAuthBound', data: { ...owner, settings: { harnessAuth: null } } }).when(admit(1)).refused('RESOURCE_CONFLICT', /authentication/);
    given(created, { type: 'AgentPluginsReplaced', data: { ...owner, settings: { unreadable: 'plugins' } } }).when(admit(1)).refused('RESOURCE_CONFLICT', /plugins/);
  });
});

describe('a stop', () => {
  it('is recorded every time, and not at all while deleting', () => {
    given(created).when({ type: 'RequestStop', operationId: 'opr_1' }).then(stopRequested('opr_1'));
    given(created, stopRequested('opr_1')).when({ type: 'RequestStop', operationId: 'opr_2' }).then(stopRequested('opr_2'));
    given(created, deletionRequested).when({ type: 'RequestStop', operationId: 'opr_1' }).then();
  });

  it('covers the revisions admitted before it in the stream', () => {
    expect(given(created, admitted(1), admitted(2), stopRequested('opr_1'), admitted(3)).state()).toMatchObject({ stops: [{ operationId: 'opr_1', lastNumber: 2 }] });
  });

  it('clears the pointer only where it still names the stopped revision', () => {
    expect(given(created, admitted(1), selected(1), stopRequested('opr_1'), stopped('opr_1', 'rev_1')).state()).toMatchObject({ activeRevisionId: null });
    expect(given(created, admitted(1), admitted(2), selected(2), stopRequested('opr_1'), stopped('opr_1', 'rev_1')).state()).toMatchObject({ activeRevisionId: 'rev_2' });
  });
});

describe('a deletion', () => {
  it('stops the Agent; repeats change nothing while it is under way', () => {
    given(created, admitted(1)).when(requestDeletion('prn_1')).then(deletionRequested);
    expect(given(created, admitted(1), deletionRequested).state()).toMatchObject({ desired: 'stopped', deletion: { finished: false } });
    given(created, deletionRequested).when(requestDeletion('prn_2')).then({ type: 'AgentDeletionRepeated', data: owner });
  });

  it('that failed is retried by its initiator, or taken over once the initiator could not', () => {
    given(created, deletionRequested, teardownFailed).when(requestDeletion('prn_1')).then({ type: 'AgentDeletionRetried', data: owner });
    given(created, deletionRequested, teardownFailed).when(requestDeletion('prn_2')).refused('FORBIDDEN');
    given(created, deletionRequested, teardownFailed)
      .when(requestDeletion('prn_2', false))
      .then({ type: 'AgentDeletionTakenOver', data: { ...owner, previousActorId: 'prn_1' } });
  });

  it('opens its work again, for the actor it now has', () => {
    const takenOver = [{ type: 'AgentDeletionTakenOver', data: { ...owner, previousActorId: 'prn_1' } }, { actor: { principalId: 'prn_2', kind: 'principal' } }] as const;
    const state = given(created, deletionRequested, teardownFailed, takenOver).state();
    expect(state).toMatchObject({ deletion: { actor: { principalId: 'prn_2' }, failedCode: null } });
    expect(state.phase === 'present' && state.work.closed.has(`agent:${agentId}:delete`)).toBe(false);
  });
});
