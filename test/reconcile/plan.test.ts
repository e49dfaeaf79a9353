/** What a pass is to do, compared purely. */
import { describe, expect, it } from 'vitest';
import type { AdmittedRevision, Lifecycle } from '../../src/agent/lifecycle.ts';
import { planDeployment, planStop } from '../../src/reconcile/plan.ts';
import { someone } from '../support/specs.ts';

const here = { id: 'process', implementation: 'gateway' };
const elsewhere = { id: 'kubernetes', implementation: 'x' };
const revision = (number: number, more: Partial<AdmittedRevision> = {}): AdmittedRevision => ({
  revisionId: `rev_${number}`,
  number,
  digest: '',
  compute: here,
  exclusive: false,
  actor: someone,
  admittedAt: '',
  eventId: '',
  ...more,
});
const agent = (more: Partial<Lifecycle>): Lifecycle => ({ desired: 'running', activeRevisionId: null, previousRevisionId: null, revisions: [], stops: [], deletion: null, deployKeys: {}, ...more });

describe('the plan of a deployment', () => {
  const [first, second, third] = [revision(1), revision(2), revision(3)];

  it.each([
    ['stands down when the Agent shall not run', agent({ desired: 'stopped', revisions: [first] }), first, { step: 'stand-down' }],
    ['replaces beside a predecessor', agent({ revisions: [first, second], activeRevisionId: 'rev_1' }), second, { step: 'replace', stopFirst: [] }],
    [
      'stops predecessors of this Compute first where it is exclusive',
      agent({ revisions: [first, revision(2, { compute: elsewhere }), revision(3, { exclusive: true })] }),
      revision(3, { exclusive: true }),
      { step: 'replace', stopFirst: [first] },
    ],
    ['recovers what is selected already', agent({ revisions: [first, second], activeRevisionId: 'rev_1' }), first, { step: 'recover' }],
    ['gives way to a newer selected revision', agent({ revisions: [first, second, third], activeRevisionId: 'rev_3' }), second, { step: 'supersede', byRevisionId: 'rev_3' }],
    [
      'gives way to a newer exclusive revision, even when selected',
      agent({ revisions: [first, revision(2, { exclusive: true })], activeRevisionId: 'rev_1' }),
      first,
      { step: 'supersede', byRevisionId: 'rev_2' },
    ],
    ['ignores a newer exclusive revision of another Compute', agent({ revisions: [first, revision(2, { exclusive: true, compute: elsewhere })] }), first, { step: 'replace', stopFirst: [] }],
  ])('%s', (_, state, candidate, plan) => {
    expect(planDeployment(state, candidate, here)).toEqual(plan);
  });
});

describe('the plan of a stop', () => {
  const stop = { operationId: 'opr_1', actor: someone, lastNumber: 2, eventId: '' };
  const revisions = [revision(1), revision(2), revision(3)];

  it.each([
    ['sweeps the history behind an empty pointer', agent({ desired: 'stopped', revisions }), { step: 'sweep', revisions: revisions.slice(0, 2) }],
    ['begins with the selected revision', agent({ desired: 'stopped', revisions, activeRevisionId: 'rev_2' }), { step: 'sweep', revisions: [revision(2), revision(1)] }],
    ['gives way to a later deployment', agent({ desired: 'running', revisions, activeRevisionId: 'rev_2' }), { step: 'supersede' }],
    ['gives way to a later selection', agent({ desired: 'stopped', revisions, activeRevisionId: 'rev_3' }), { step: 'supersede' }],
    [
      'fails closed on a selected revision of another Compute, and skips unselected ones there',
      agent({ desired: 'stopped', revisions: [revision(1, { compute: elsewhere })], activeRevisionId: 'rev_1' }),
      { step: 'elsewhere' },
    ],
    ['skips unselected revisions of another Compute', agent({ desired: 'stopped', revisions: [revision(1, { compute: elsewhere }), revision(2)] }), { step: 'sweep', revisions: [revision(2)] }],
  ])('%s', (_, state, plan) => {
    expect(planStop(state, stop, here)).toEqual(plan);
  });
});
