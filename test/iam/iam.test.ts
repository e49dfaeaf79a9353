/** Policy: what the `iam` stream accepts, and what it grants. */
import { describe, expect, it } from 'vitest';
import { evaluate, type Action } from '../../src/iam/evaluate.ts';
import { iamDecider } from '../../src/iam/iam.ts';
import type { AccessBinding, IamEvent } from '../../src/iam/messages.ts';
import type { ResourceRef } from '../../src/kernel/event.ts';
import { deciderSpec, fold } from '../support/specs.ts';

const given = deciderSpec(iamDecider);
const person: IamEvent = { type: 'PrincipalCreated', data: { principalId: 'prn_1', issuer: 'local', subject: 'a' } };
const machine = (namespaceId?: string, agentId?: string): IamEvent => ({
  type: 'ServicePrincipalCreated',
  data: { servicePrincipalId: 'spn_1', ...(namespaceId !== undefined && { namespaceId }), ...(agentId !== undefined && { agentId }) },
});
const role: IamEvent = { type: 'RoleCreated', data: { roleId: 'role_1', permissions: [{ action: 'read', resourceKind: 'agent' }] } };
const bound = (more: Partial<AccessBinding> = {}): IamEvent => ({
  type: 'AccessBindingCreated',
  data: { bindingId: 'bnd_1', subjectKind: 'identity', subjectId: 'prn_1', roleId: 'role_1', ...more },
});
const restricted = (resourceId?: string): IamEvent => ({
  type: 'RestrictionCreated',
  data: { restrictionId: 'rst_1', action: 'read', resourceKind: 'agent', ...(resourceId !== undefined && { resourceId }) },
});
const agent = (id: string, namespaceId = 'ns_1'): ResourceRef => ({ kind: 'agent', id, namespaceId });
const allowed = (events: readonly IamEvent[], action: Action, resource: ResourceRef, identity = 'prn_1') => evaluate(fold(iamDecider, events), identity, action, resource).allowed;

describe('a permission', () => {
  it('is denied unless a binding in scope grants exactly it', () => {
    expect(allowed([person, role], 'read', agent('agt_1'))).toBe(false);
    expect(allowed([person, role, bound()], 'read', agent('agt_1'))).toBe(true);
    expect(allowed([person, role, bound()], 'delete', agent('agt_1'))).toBe(false);
    expect(allowed([person, role, bound()], 'read', { kind: 'configuration', id: 'cfg_1', namespaceId: 'ns_1' })).toBe(false);
    expect(allowed([person, role, bound({ namespaceId: 'ns_2' })], 'read', agent('agt_1'))).toBe(false);
    const exact = bound({ namespaceId: 'ns_1', resourceKind: 'agent', resourceId: 'agt_1' });
    expect(allowed([person, role, exact], 'read', agent('agt_1'))).toBe(true);
    expect(allowed([person, role, exact], 'read', agent('agt_2'))).toBe(false);
  });

  it('is overridden by a matching Restriction, and by nothing else', () => {
    expect(allowed([person, role, bound(), restricted()], 'read', agent('agt_1'))).toBe(false);
    expect(allowed([person, role, bound(), restricted('agt_1')], 'read', agent('agt_1'))).toBe(false);
    expect(allowed([person, role, bound(), restricted('agt_2')], 'read', agent('agt_1'))).toBe(true);
  });

  it('ends with the binding, and is never held by an unknown identity or one of another scope', () => {
    expect(allowed([person, role, bound(), { type: 'AccessBindingDeleted', data: { bindingId: 'bnd_1' } }], 'read', agent('agt_1'))).toBe(false);
    expect(allowed([role, bound()], 'read', agent('agt_1'))).toBe(false);
    const machines = [machine('ns_1'), role, bound({ subjectId: 'spn_1' })];
    expect(allowed(machines, 'read', agent('agt_1'), 'spn_1')).toBe(true);
    expect(allowed(machines, 'read', agent('agt_1', 'ns_2'), 'spn_1')).toBe(false);
  });

  it('is denied to everybody while the policy is inconsistent', () => {
    const dangling = bound({ bindingId: 'bnd_2', roleId: 'role_gone' });
    expect(allowed([person, role, bound(), dangling], 'read', agent('agt_1'))).toBe(false);
  });
});

describe('policy commands', () => {
  it('bind only subjects and Roles that exist in scope, to targets that are not gone', () => {
    const bind = (more: Partial<AccessBinding> = {}) => ({ type: 'CreateAccessBinding', binding: { bindingId: 'bnd_1', subjectKind: 'identity', subjectId: 'prn_1', roleId: 'role_1', ...more } }) as const;
    given(person, role).when(bind()).then(bound());
    given(role).when(bind()).refused('INVALID_REQUEST', /subject/);
    given(person).when(bind()).refused('INVALID_REQUEST', /Role/);
    given(machine('ns_1'), role).when(bind({ subjectId: 'spn_1' })).refused('INVALID_REQUEST', /subject/);
    given(person, role).when(bind({ resourceId: 'agt_1' })).refused('INVALID_REQUEST', /both/);
  });

  it('keep a Role that is bound', () => {
    given(person, role, bound()).when({ type: 'DeleteRole', roleId: 'role_1' }).refused('RESOURCE_CONFLICT');
    given(person, role).when({ type: 'DeleteRole', roleId: 'role_1' }).then({ type: 'RoleDeleted', data: { roleId: 'role_1' } });
  });

  it('take away what named a removed Agent, its principal and its revisions, once', () => {
    const removal = { agentId: 'agt_1', namespaceId: 'ns_1', servicePrincipalId: 'spn_1', revisionIds: ['rev_1'] };
    const history = [
      person,
      role,
      machine('ns_1', 'agt_1'),
      bound({ bindingId: 'bnd_1', namespaceId: 'ns_1', resourceKind: 'agent', resourceId: 'agt_1' }),
      bound({ bindingId: 'bnd_2', namespaceId: 'ns_1', resourceKind: 'agent_revision', resourceId: 'rev_1' }),
      bound({ bindingId: 'bnd_3', namespaceId: 'ns_1', subjectId: 'spn_1' }),
      bound({ bindingId: 'bnd_4' }),
    ];
    const gone: IamEvent = { type: 'AgentBindingsRemoved', data: { ...removal, bindingIds: ['bnd_1', 'bnd_2', 'bnd_3'], keyIds: [] } };
    given(...history).when({ type: 'RemoveAgentBindings', ...removal }).then(gone);
    given(...history, gone).when({ type: 'RemoveAgentBindings', ...removal }).then();
    given(...history, gone)
      .when({ type: 'CreateAccessBinding', binding: { bindingId: 'bnd_5', subjectKind: 'identity', subjectId: 'prn_1', roleId: 'role_1', resourceKind: 'agent', resourceId: 'agt_1' } })
      .refused('INVALID_REQUEST', /gone/);
    given(restricted('agt_1'))
      .when({ type: 'RemoveAgentRestrictions', agentId: 'agt_1', namespaceId: 'ns_1', revisionIds: [] })
      .then({ type: 'AgentRestrictionsRemoved', data: { agentId: 'agt_1', namespaceId: 'ns_1', restrictionIds: ['rst_1'] } });
  });
});
