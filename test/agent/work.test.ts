/** What a pass may append under its claim, and what stays forbidden whatever commands come. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { agentDecider, type AgentCommand, type AgentState } from '../../src/agent/agent.ts';
import { agentEvents, type AgentEvent } from '../../src/agent/messages.ts';
import { ResultRefused } from '../../src/agent/work.ts';
import { isRefusal } from '../../src/kernel/decider.ts';
import { ClaimEnded } from '../../src/kernel/work.ts';
import { envelopeAt, fold } from '../support/specs.ts';
import { admit, admitted, claimOf, created, deletionRequested, expired, given, owner, selected, stopRequested, teardownFinished } from './support.ts';

const select = (number: number, expected: string | null = null, token = 'token'): AgentCommand => ({
  type: 'SelectRevision',
  claim: claimOf.deployment(number, token),
  revisionId: `rev_${number}`,
  expectedActiveRevisionId: expected,
});
const failDeployment = (number: number, token = 'token'): AgentCommand => ({
  type: 'FailDeployment',
  claim: claimOf.deployment(number, token),
  revisionId: `rev_${number}`,
  code: 'RUNTIME_LOGIN_FAILED',
});
const completeDeployment = (number: number): AgentCommand => ({
  type: 'CompleteDeployment',
  claim: claimOf.deployment(number),
  revisionId: `rev_${number}`,
  code: 'REVISION_ACTIVATED',
  previousRevisionId: null,
  warnings: [],
});
const failed = (number: number): AgentEvent => ({ type: 'DeploymentFailed', data: { ...owner, revisionId: `rev_${number}`, code: 'RUNTIME_LOGIN_FAILED' } });
const completeStop = (operationId: string, revisionId: string | null): AgentCommand => ({ type: 'CompleteStop', claim: claimOf.stop(operationId), operationId, revisionId });

const refusalOf = (events: readonly AgentEvent[], command: AgentCommand) => {
  const decision = agentDecider.decide(fold(agentDecider, events), command);
  return isRefusal(decision) ? decision : undefined;
};

describe('results of a deployment', () => {
  it('select only while the Agent shall run and the pointer is as it was', () => {
    given(created, admitted(1)).when(select(1)).then(selected(1));
    given(created, admitted(1), selected(1)).when(select(1)).then();
    expect(refusalOf([created, admitted(1), stopRequested('opr_1')], select(1))).toMatchObject({ reason: 'REVISION_STOPPED' });
    expect(refusalOf([created, admitted(1), admitted(2), selected(2)], select(1))).toMatchObject({ reason: 'ACTIVE_REVISION_CHANGED' });
  });

  it('complete only what is selected', () => {
    given(created, admitted(1), selected(1))
      .when(completeDeployment(1))
      .then({ type: 'DeploymentActivated', data: { ...owner, revisionId: 'rev_1', code: 'REVISION_ACTIVATED', previousRevisionId: null, warnings: [] } });
    expect(refusalOf([created, admitted(1)], completeDeployment(1))).toBeInstanceOf(ResultRefused);
  });

  it('are written once, under a claim that is not fenced, of their own work', () => {
    given(created, admitted(1)).when(failDeployment(1)).then(failed(1));
    expect(refusalOf([created, admitted(1), failed(1)], failDeployment(1, 'other'))).toBeInstanceOf(ClaimEnded);
    expect(refusalOf([created, admitted(1), expired(claimOf.deployment(1))], failDeployment(1))).toBeInstanceOf(ClaimEnded);
    given(created, admitted(1), expired(claimOf.deployment(1))).when(failDeployment(1, 'next')).then(failed(1));
    given(created, admitted(1), admitted(2)).when({ ...failDeployment(1), claim: claimOf.deployment(2) } as AgentCommand).refused('RESOURCE_CONFLICT', /other work/);
  });
});

describe('results of a stop', () => {
  it('complete while the Agent shall be stopped and the pointer is as it was', () => {
    given(created, admitted(1), selected(1), stopRequested('opr_1'))
      .when(completeStop('opr_1', 'rev_1'))
      .then({ type: 'AgentStopped', data: { ...owner, operationId: 'opr_1', code: 'AGENT_STOPPED', revisionId: 'rev_1' } });
    given(created, stopRequested('opr_1'))
      .when(completeStop('opr_1', null))
      .then({ type: 'AgentStopped', data: { ...owner, operationId: 'opr_1', code: 'AGENT_ALREADY_STOPPED', revisionId: null } });
    expect(refusalOf([created, stopRequested('opr_1'), admitted(1)], completeStop('opr_1', null))).toMatchObject({ reason: 'STOP_SUPERSEDED' });
    expect(refusalOf([created, admitted(1), selected(1), stopRequested('opr_1')], completeStop('opr_1', null))).toMatchObject({ reason: 'ACTIVE_REVISION_CHANGED' });
  });
});

describe('evidence', () => {
  const defer = (code: string, refusal?: string): AgentCommand => ({ type: 'DeferWork', claim: claimOf.deployment(1), code, ...(refusal !== undefined && { refusal }) });
  const deferred = (code: string, refusal?: string): AgentEvent => ({
    type: 'WorkDeferred',
    data: { workKey: claimOf.deployment(1).workKey, code, ...(refusal !== undefined && { refusal }) },
  });

  it('of waiting is recorded once per reason, but for stops of refused candidates', () => {
    given(created, admitted(1)).when(defer('REVISION_INCOMPLETE')).then(deferred('REVISION_INCOMPLETE'));
    given(created, admitted(1), deferred('REVISION_INCOMPLETE')).when(defer('REVISION_INCOMPLETE')).then();
    given(created, admitted(1), deferred('REVISION_INCOMPLETE')).when(defer('REVISION_UNSCHEDULABLE')).then(deferred('REVISION_UNSCHEDULABLE'));
    const again = deferred('REFUSED_CANDIDATE_STOP_PENDING', 'AUTHORIZATION_DENIED');
    given(created, admitted(1), again).when(defer('REFUSED_CANDIDATE_STOP_PENDING', 'AUTHORIZATION_DENIED')).then(again);
  });

  it('of a lost claim keeps the refusal, is written once, and not for closed work', () => {
    const expire: AgentCommand = { type: 'ExpireWorkClaim', claim: claimOf.deployment(1), code: 'LEASE_EXPIRED', attempt: 1 };
    given(created, admitted(1)).when(expire).then(expired(claimOf.deployment(1)));
    given(created, admitted(1), deferred('REFUSED_CANDIDATE_STOP_PENDING', 'ACTOR_REVOKED'))
      .when(expire)
      .then(expired(claimOf.deployment(1), { refusal: 'ACTOR_REVOKED' }));
    given(created, admitted(1), expired(claimOf.deployment(1))).when(expire).then();
    given(created, admitted(1), failed(1)).when(expire).then();
  });
});

describe('removal', () => {
  it('follows a finished teardown, after which nothing can fail it', () => {
    given(created, deletionRequested).when({ type: 'RemoveAgent' }).refused('RESOURCE_CONFLICT');
    given(created, admitted(1), deletionRequested).when({ type: 'FinishTeardown', claim: claimOf.deletion() }).then(teardownFinished(1));
    given(created, deletionRequested, teardownFinished()).when({ type: 'FailTeardown', claim: claimOf.deletion(), code: 'X' }).then();
    given(created, deletionRequested, teardownFinished()).when({ type: 'RemoveAgent' }).then({ type: 'AgentRemoved', data: owner });
    given(created).when({ type: 'FinishTeardown', claim: claimOf.deletion() }).refused('RESOURCE_CONFLICT');
  });
});

describe('no sequence of commands', () => {
  const number = fc.integer({ min: 1, max: 4 });
  const token = fc.constantFrom('t1', 't2', 't3');
  const operationId = fc.constantFrom('opr_1', 'opr_2');
  const pointer = fc.option(number.map((one) => `rev_${one}`), { nil: null });
  const claim = fc.oneof(
    fc.tuple(number, token).map(([one, by]) => claimOf.deployment(one, by)),
    fc.tuple(operationId, token).map(([one, by]) => claimOf.stop(one, by)),
    token.map((by) => claimOf.deletion(by)),
  );
  const command: fc.Arbitrary<AgentCommand> = fc.oneof(
    { weight: 4, arbitrary: number.map(admit) },
    { weight: 2, arbitrary: operationId.map((one): AgentCommand => ({ type: 'RequestStop', operationId: one })) },
    {
      weight: 1,
      arbitrary: fc
        .tuple(fc.constantFrom('prn_1', 'prn_2'), fc.boolean())
        .map(([actorId, initiatorPermitted]): AgentCommand => ({ type: 'RequestDeletion', actorId, initiatorPermitted, accessBindingIds: [], restrictionIds: [] })),
    },
    { weight: 4, arbitrary: fc.tuple(number, pointer, token).map(([one, expected, by]) => select(one, expected, by)) },
    { weight: 2, arbitrary: fc.tuple(number, token).map(([one, by]) => failDeployment(one, by)) },
    { weight: 3, arbitrary: fc.tuple(number, token).map(([one, by]): AgentCommand => ({ ...completeDeployment(one), claim: claimOf.deployment(one, by) }) as AgentCommand) },
    { weight: 1, arbitrary: fc.tuple(number, claim).map(([one, by]): AgentCommand => ({ type: 'StopDeployment', claim: by, revisionId: `rev_${one}` })) },
    { weight: 1, arbitrary: fc.tuple(number, claim).map(([one, by]): AgentCommand => ({ type: 'SupersedeDeployment', claim: by, revisionId: `rev_${one}`, byRevisionId: 'rev_4' })) },
    { weight: 2, arbitrary: fc.tuple(operationId, pointer, token).map(([one, revisionId, by]): AgentCommand => ({ type: 'CompleteStop', claim: claimOf.stop(one, by), operationId: one, revisionId })) },
    { weight: 1, arbitrary: fc.tuple(operationId, claim).map(([one, by]): AgentCommand => ({ type: 'FailStop', claim: by, operationId: one, code: 'X' })) },
    { weight: 1, arbitrary: token.map((by): AgentCommand => ({ type: 'FailTeardown', claim: claimOf.deletion(by), code: 'X' })) },
    { weight: 1, arbitrary: token.map((by): AgentCommand => ({ type: 'FinishTeardown', claim: claimOf.deletion(by) })) },
    { weight: 1, arbitrary: claim.map((by): AgentCommand => ({ type: 'ExpireWorkClaim', claim: by, code: 'LEASE_EXPIRED', attempt: 1 })) },
    { weight: 1, arbitrary: claim.map((by): AgentCommand => ({ type: 'DeferWork', claim: by, code: 'REVISION_INCOMPLETE' })) },
    { weight: 1, arbitrary: fc.constant<AgentCommand>({ type: 'RemoveAgent' }) },
    { weight: 1, arbitrary: fc.constant<AgentCommand>({ type: 'ChangeDraft', change: { configurationId: 'cfg_2' } }) },
  );

  const closes = (event: AgentEvent): string | undefined => {
    const { data } = event;
    switch (event.type) {
      case 'DeploymentActivated':
      case 'DeploymentSuperseded':
      case 'DeploymentStopped':
      case 'DeploymentFailed':
        return event.data.revisionId;
      case 'AgentStopped':
      case 'AgentStopSuperseded':
      case 'AgentStopFailed':
        return event.data.operationId;
      default:
        return 'agentId' in data && event.type === 'AgentRemoved' ? data.agentId : undefined;
    }
  };
  const allowedAfterFinish = new Set(['AgentRemoved', 'AgentDeletionRepeated', 'WorkDeferred', 'WorkClaimExpired']);

  const assertSound = (state: AgentState): void => {
    if (state.phase !== 'present') return;
    expect(state.revisions.map((revision) => revision.number)).toEqual(state.revisions.map((_, index) => index + 1));
    if (state.activeRevisionId !== null) expect(state.revisions.map(({ revisionId }) => revisionId)).toContain(state.activeRevisionId);
    if (state.deletion !== null) expect(state.desired).toBe('stopped');
  };

  it('breaks what an Agent promises', () => {
    fc.assert(
      fc.property(fc.array(command, { maxLength: 60 }), (commands) => {
        const history: AgentEvent[] = [created];
        const closed = new Set<string>();
        let state = fold(agentDecider, history);
        for (const next of commands) {
          const fenced = 'claim' in next && state.phase === 'present' && state.work.fenced.has(next.claim.claimToken);
          const wasFinished = state.phase === 'present' && state.deletion?.finished === true;
          const decision = agentDecider.decide(state, next);
          if (isRefusal(decision)) continue;
          if (fenced || state.phase === 'removed') expect(decision).toEqual([]);
          for (const event of decision) {
            agentEvents.encode(event);
            if (wasFinished) expect(allowedAfterFinish).toContain(event.type);
            const key = closes(event);
            if (key !== undefined) {
              expect(closed).not.toContain(key);
              closed.add(key);
            }
            state = agentDecider.evolve(state, event, envelopeAt(history.push(event) - 1));
            assertSound(state);
          }
        }
        expect(fold(agentDecider, history)).toEqual(state);
      }),
      { numRuns: 400 },
    );
  });
});
