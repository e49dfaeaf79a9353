/** What `exuvia demo` tells of a deployment; that it walks the whole job is test/end-to-end/start-up.test.ts. */
import { expect, it } from 'vitest';
import { deploymentTeller } from '../../src/cli/demo.ts';

it('a deployment that has begun is never told as queued again', () => {
  const tell = deploymentTeller();
  const progress = { lastAttempt: { code: 'REVISION_INCOMPLETE' } };
  const seen = [{ status: 'queued' }, { status: 'running' }, { status: 'queued' }, { status: 'queued', progress }, { status: 'running', progress }, { status: 'succeeded' }];
  expect(seen.map((one) => tell({ progress: null, ...one }))).toEqual([
    'Deployment is queued',
    'Deployment is running',
    'Deployment is running',
    'Deployment is running (REVISION_INCOMPLETE)',
    'Deployment is running (REVISION_INCOMPLETE)',
    'Deployment is succeeded',
  ]);
});
