/** Evidence of a driver is shown only when it can be believed; everything else of it is a dependency that is unavailable. (agent-lifecycle section 8) */
import { beforeAll, describe, expect, it, onTestFinished, vi } from 'vitest';
import { createAuditLog } from '../../src/audit/audit-log.ts';
import type { DiagnosticCheck } from '../../src/compute/driver.ts';
import { createDiagnose, type Diagnosing } from '../../src/deployment/diagnose.ts';
import { createAuthorizer } from '../../src/iam/authorizer.ts';
import { iam } from '../../src/aggregates.ts';
import { newId } from '../../src/kernel/ids.ts';
import { createDatabase } from '../support/database.ts';
import { actor, createWorld, type World } from '../support/work-world.ts';

let world: World;
let place: { namespaceId: string; agentId: string; revisionId: string };

beforeAll(async () => {
  world = await createWorld(await createDatabase());
  const roleId = newId('role');
  const [spn, key] = [{ servicePrincipalId: newId('spn') }, { keyId: newId('key'), name: 'first', expiresAt: '2999-01-01T00:00:00.000Z' }];
  const administrator = { principalId: newId('prn'), issuer: 'test', subject: 'first' };
  const role = { roleId: newId('role'), permissions: [] };
  const installation = { installationId: newId('ins'), name: 'Test', administrator, servicePrincipal: spn, role, bindings: [], serviceKey: { ...key, ...spn }, defaultNamespaceId: newId('ns') };
  await world.happened(iam, '', [
    { type: 'InstallationBootstrapped', data: installation },
    { type: 'RoleCreated', data: { roleId, permissions: [{ action: 'read', resourceKind: 'agent' }, { action: 'operate', resourceKind: 'agent' }, { action: 'read', resourceKind: 'agent_revision' }] } },
    { type: 'AccessBindingCreated', data: { bindingId: newId('bnd'), subjectKind: 'identity', subjectId: actor.principalId, roleId } },
  ]);
  const { agentId } = await world.createAgent();
  const { revisionId } = await world.deploy(await world.agentOf(agentId));
  place = { namespaceId: world.namespaceId, agentId, revisionId };
});

const diagnose = (at: Partial<typeof place> = {}, diagnosing: Diagnosing = () => world.driver) => {
  const { streams } = world;
  const audit = createAuditLog(streams);
  const core = { streams, audit, authorizer: createAuthorizer({ streams, audit, denialLimit: { take: () => {} } }), waitFor: () => Promise.resolve() };
  const caller = { actor, keyNamespaceId: undefined, arrivedAt: performance.now(), requestId: newId('req') };
  return createDiagnose({ core, diagnosing, clock: { now: () => Date.UTC(2026, 0, 1) } })(caller, { ...place, ...at });
};

const check: DiagnosticCheck = { component: 'gateway', check: 'runtime-status', state: 'unknown', checkedAt: null };
const unavailable = { code: 'DEPENDENCY_UNAVAILABLE', message: 'A required dependency is unavailable' };

describe('diagnostics', () => {
  it('show up to 32 checks in the order the driver gave them', async () => {
    const checks = Array.from({ length: 32 }, (_, number) => ({ ...check, check: `check-${number}` }));
    world.driver.diagnose = () => checks;
    expect(await diagnose()).toEqual({ revisionId: place.revisionId, observedAt: '2026-01-01T00:00:00.000Z', checks });
  });

  it.each<readonly [string, readonly unknown[]]>([
    ['33 checks', Array.from({ length: 33 }, () => check)],
    ['an unknown state', [{ ...check, state: 'perhaps' }]],
    ['an identifier of 65 characters', [{ ...check, code: 'A'.repeat(65) }]],
    ['an identifier that holds text', [{ ...check, component: 'the gateway says' }]],
    ['a time that is none', [{ ...check, checkedAt: 'yesterday' }]],
    ['members nobody asked for', [{ ...check, output: 'native text' }]],
  ])('refuse %s', async (_, checks) => {
    world.driver.diagnose = () => checks as readonly DiagnosticCheck[];
    await expect(diagnose()).rejects.toMatchObject(unavailable);
  });

  it('never repeat what a driver says in its error', async () => {
    world.driver.diagnose = () => {
      throw new Error('native text');
    };
    await expect(diagnose()).rejects.toMatchObject(unavailable);
  });

  it('end after ten seconds when the driver does not', async () => {
    const deadline = new AbortController();
    const timeout = vi.spyOn(AbortSignal, 'timeout').mockReturnValue(deadline.signal);
    onTestFinished(() => timeout.mockRestore());
    const never = diagnose({}, () => ({ ...world.driver, diagnoseRevision: () => (deadline.abort(new Error('late')), new Promise(() => undefined)) }));
    await expect(never).rejects.toMatchObject(unavailable);
    expect(timeout).toHaveBeenCalledWith(10_000);
  });

  it('are unavailable where no driver runs, and where another one does', async () => {
    await expect(diagnose({}, () => undefined)).rejects.toMatchObject(unavailable);
    await expect(diagnose({}, () => ({ ...world.driver, id: 'kubernetes' }))).rejects.toMatchObject(unavailable);
  });

  it('know only revisions of exactly this Agent', async () => {
    const { agentId } = await world.createAgent();
    await expect(diagnose({ agentId })).rejects.toMatchObject({ code: 'NOT_FOUND' });
    await expect(diagnose({ revisionId: newId('rev') })).rejects.toMatchObject({ code: 'NOT_FOUND' });
  });
});
