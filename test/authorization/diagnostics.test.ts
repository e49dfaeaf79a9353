/** Rows of the authorization table about diagnostics, which only a process that runs the Agents answers: real gateways, both edges. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { agents } from '../../src/aggregates.ts';
import { startTestApplication, type TestApplication } from '../support/app.ts';
import { eventually } from '../support/client.ts';
import { openOperator, permissionOf, type TestOperator, type TestPrincipal } from '../support/principals.ts';
import { eventsOf } from '../support/request-events.ts';
import { edges, send, useCases as use, type RevisionPlace, type UseCase } from '../support/use-cases.ts';
import { diagnosticsRows } from './rows.ts';

let application: TestApplication;
let operator: TestOperator;
let namespaceId: string;

const admin = async <T = { readonly id: string }>(useCase: UseCase): Promise<T> => {
  const { code, message, data } = await send('REST', application.origin, useCase, application.key);
  if (code !== null) throw new Error(`The administrator was refused: ${code}, ${message}`);
  return data as T;
};

/** A revision whose deployment has ended as wanted. */
const deployed = async (name: string, values: object, status: 'succeeded' | 'failed'): Promise<RevisionPlace> => {
  const { id: configurationId } = await admin(use.createConfiguration(namespaceId, { kind: 'agent', values }));
  const { id: agentId } = await admin(use.createAgent(namespaceId, { name, configurationId, harnessAuth: { method: 'runtime' } }));
  const { id: revisionId } = await admin(use.deployAgent({ namespaceId, agentId }));
  const place = { namespaceId, agentId, revisionId };
  await eventually(`a deployment that has ${status}`, () => admin<{ status: string }>(use.getAgentDeployment(place)), (deployment) => deployment.status === status);
  return place;
};

let serving: RevisionPlace;
let held: RevisionPlace;
let principal: TestPrincipal;

beforeAll(async () => {
  application = await startTestApplication();
  operator = await openOperator(application);
  [{ id: namespaceId }] = await admin<[{ id: string }]>(use.listNamespaces());
  serving = await deployed('serving', {}, 'succeeded');
  held = await deployed('held', { exuvia: { holdStartup: { code: 'AUTHENTICATION_FAILED', check: 'model-probe' } } }, 'failed');
  principal = await operator.principal();
  for (const { agentId, revisionId } of [serving, held]) {
    await principal.grant([permissionOf('agent:read'), permissionOf('agent:operate')], { namespaceId, resourceKind: 'agent', resourceId: agentId });
    await principal.grant([permissionOf('agent_revision:read')], { namespaceId, resourceKind: 'agent_revision', resourceId: revisionId });
  }
});
afterAll(async () => {
  await operator?.close();
  await application?.close();
});

const aTime: unknown = expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);

describe.each(edges)('over %s', (edge) => {
  const diagnose = async (place: RevisionPlace) => {
    const answer = await send(edge, application.origin, use.diagnoseAgentDeployment(place), principal.key);
    expect(answer).toMatchObject({ status: 200, code: null });
    return answer as typeof answer & { readonly data: { readonly checks: readonly object[] } };
  };
  const revisionOf = async ({ agentId }: RevisionPlace) => (await operator.streams.load(agents, agentId)).revision;

  it(`${diagnosticsRows[0]}: a serving revision is found serving, and nothing is stored`, async () => {
    const before = await revisionOf(serving);
    const { data, requestId } = await diagnose(serving);
    expect(data).toMatchObject({
      revisionId: serving.revisionId,
      observedAt: aTime,
      checks: [{ component: 'gateway', check: 'runtime-status', state: 'succeeded', checkedAt: aTime }],
    });
    expect(await eventsOf(application.database, requestId)).toEqual([]);
    expect(await revisionOf(serving)).toBe(before);
  });

  it('a failure the runtime holds comes as it was recorded, also after its deployment has failed', async () => {
    expect((await diagnose(held)).data.checks).toMatchObject([{ component: 'gateway', check: 'model-probe', state: 'failed', code: 'AUTHENTICATION_FAILED', checkedAt: aTime }]);
  });
});

describe('after a stop', () => {
  beforeAll(async () => {
    await admin(use.stopAgent(serving));
    await eventually(
      'the gateway to be gone',
      () => send('REST', application.origin, use.diagnoseAgentDeployment(serving), principal.key),
      ({ data }) => (data as { checks: readonly { code?: string }[] }).checks[0]!.code === 'UNAVAILABLE',
    );
  });
  it.each(edges)(`${diagnosticsRows[1]}: nothing that runs reads unknown, over %s`, async (edge) => {
    const { data } = await send(edge, application.origin, use.diagnoseAgentDeployment(serving), principal.key);
    expect(data).toMatchObject({ checks: [{ component: 'gateway', check: 'runtime-status', state: 'unknown', checkedAt: null, code: 'UNAVAILABLE' }] });
  });
});
