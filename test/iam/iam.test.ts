/** Policy: what the `iam` stream accepts, and what it grants. */
import { describe, expect, it } from 'vitest';
import { evaluate, identityProblem, type Action } from '../../src/iam/evaluate.ts';
import { iamDecider } from '../../src/iam/iam.ts';
import type { AccessBinding, IamEvent } from '../../src/iam/messages.ts';
import type { ResourceKind, ResourceRef } from '../../src/kernel/event.ts';
import { checkedActions, resourceKinds } from '../../src/iam/permissions.ts';
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
const group = (namespaceId?: string): IamEvent => ({ type: 'GroupCreated', data: { groupId: 'grp_1', name: 'readers', ...(namespaceId !== undefined && { namespaceId }) } });
const member = (namespaceId?: string): IamEvent => ({ type: 'GroupMembershipCreated', data: { groupId: 'grp_1', principalId: 'prn_1', ...(namespaceId !== undefined && { namespaceId }) } });
const ofGroup = { subjectKind: 'group', subjectId: 'grp_1' } as const;
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

  /** Every action on every kind, whether an operation checks it or not. */
  const everyPair = resourceKinds.flatMap((resourceKind) => checkedActions.agent.map((action) => ({ action, resourceKind })));
  const referenceOf = (kind: ResourceKind): ResourceRef => (kind === 'installation' ? { kind, id: 'x' } : { kind, id: 'ns_1', namespaceId: 'ns_1' });
  const holding = (permissions: readonly { action: string; resourceKind: string }[]): readonly IamEvent[] => [person, { type: 'RoleCreated', data: { roleId: 'role_1', permissions: [...permissions] } }, bound()];

  it.each(everyPair)('$resourceKind:$action implies no other, and nothing else implies it', ({ action, resourceKind }) => {
    const isIt = (other: { action: string; resourceKind: string }) => other.action === action && other.resourceKind === resourceKind;
    const [alone, others] = [fold(iamDecider, holding([{ action, resourceKind }])), fold(iamDecider, holding(everyPair.filter((other) => !isIt(other))))];
    const granted = everyPair.filter((other) => evaluate(alone, 'prn_1', other.action, referenceOf(other.resourceKind)).allowed);
    expect(granted).toEqual([{ action, resourceKind }]);
    expect(evaluate(others, 'prn_1', action, referenceOf(resourceKind)).allowed).toBe(false);
    const wildcards = [['*', resourceKind], [action, '*'], ['*', '*'], ['', resourceKind], [action, '']] as const;
    expect(allowed(holding(wildcards.map(([any, kind]) => ({ action: any, resourceKind: kind }))), action, referenceOf(resourceKind))).toBe(false);
  });

  it.each(['configuration', 'secret', 'service_account', 'credential_source', 'agent', 'agent_revision'] as const)('on a %s is none where the reference names no Namespace', (kind) => {
    const everywhere = holding([{ action: 'read', resourceKind: kind }]);
    expect([allowed(everywhere, 'read', { kind, id: 'a', namespaceId: 'ns_1' }), allowed(everywhere, 'read', { kind, id: 'a' })]).toEqual([true, false]);
  });

  it('is overridden by a matching Restriction, and by nothing else', () => {
    expect(allowed([person, role, bound(), restricted()], 'read', agent('agt_1'))).toBe(false);
    expect(allowed([person, role, bound(), restricted('agt_1')], 'read', agent('agt_1'))).toBe(false);
    expect(allowed([person, role, bound(), restricted('agt_2')], 'read', agent('agt_1'))).toBe(true);
  });

  it('ends with the binding, and is never held by an unknown identity or one of another scope', () => {
    expect(allowed([person, role, bound(), { type: 'AccessBindingDeleted', data: { bindingId: 'bnd_1' } }], 'read', agent('agt_1'))).toBe(false);
    expect(allowed([role, bound()], 'read', agent('agt_1'))).toBe(false);
    const machines = [machine('ns_1'), role, bound({ subjectId: 'spn_1', namespaceId: 'ns_1' })];
    expect(allowed(machines, 'read', agent('agt_1'), 'spn_1')).toBe(true);
    expect(allowed(machines, 'read', agent('agt_1', 'ns_2'), 'spn_1')).toBe(false);
  });

  it('is held through a Group by its members, where the Group is', () => {
    expect(allowed([person, role, group(), bound(ofGroup)], 'read', agent('agt_1'))).toBe(false);
    expect(allowed([person, role, group(), member(), bound(ofGroup)], 'read', agent('agt_1'))).toBe(true);
    const there = [person, role, group('ns_1'), member('ns_1'), bound({ ...ofGroup, namespaceId: 'ns_1' })];
    expect(allowed(there, 'read', agent('agt_1'))).toBe(true);
    expect(allowed(there, 'read', agent('agt_1', 'ns_2'))).toBe(false);
    expect(allowed([...there, { type: 'GroupMembershipDeleted', data: { groupId: 'grp_1', namespaceId: 'ns_1', principalId: 'prn_1' } }], 'read', agent('agt_1'))).toBe(false);
  });

  const soundPolicy = [person, machine('ns_1'), role, group('ns_1'), bound()];
  it.each<[string, IamEvent]>([
    ['a binding to an unknown Role', bound({ bindingId: 'bnd_2', roleId: 'role_gone' })],
    ['a binding of an unknown subject', bound({ bindingId: 'bnd_2', subjectId: 'prn_gone' })],
    ['a binding of a Namespace principal elsewhere', bound({ bindingId: 'bnd_2', subjectId: 'spn_1', namespaceId: 'ns_2' })],
    ['a binding of a Group elsewhere', bound({ bindingId: 'bnd_2', ...ofGroup })],
    ['a binding on a Configuration that names no Namespace', bound({ bindingId: 'bnd_2', resourceKind: 'configuration', resourceId: 'cfg_1' })],
    ['a binding on a Preset that names no Namespace', bound({ bindingId: 'bnd_2', resourceKind: 'preset', resourceId: 'pre_1' })],
    ['a binding on a service account that names no Namespace', bound({ bindingId: 'bnd_2', resourceKind: 'service_account', resourceId: 'sa_1' })],
    ['a binding with half a target', bound({ bindingId: 'bnd_2', resourceKind: 'agent' })],
    ['two bindings of one id', bound()],
    ['a Role with a permission twice', { type: 'RoleCreated', data: { roleId: 'role_2', permissions: [{ action: 'read', resourceKind: 'agent' }, { action: 'read', resourceKind: 'agent' }] } }],
    ['a Role that is gone and bound', { type: 'RoleDeleted', data: { roleId: 'role_1' } }],
    ['a membership of a service principal', { type: 'GroupMembershipCreated', data: { groupId: 'grp_1', namespaceId: 'ns_1', principalId: 'spn_1' } }],
    ['a membership in another Namespace than its Group', member()],
    ['a Restriction on the Installation in a Namespace', { type: 'RestrictionCreated', data: { restrictionId: 'rst_1', action: 'administer', resourceKind: 'installation', namespaceId: 'ns_1' } }],
    ['a Restriction on a Namespace in another', { type: 'RestrictionCreated', data: { restrictionId: 'rst_1', action: 'read', resourceKind: 'namespace', resourceId: 'ns_1', namespaceId: 'ns_2' } }],
  ])('is denied to everybody while the policy has %s', (_, broken) => {
    expect(allowed(soundPolicy, 'read', agent('agt_1'))).toBe(true);
    expect(allowed([...soundPolicy, broken], 'read', agent('agt_1'))).toBe(false);
  });

  const boundMachine = bound({ bindingId: 'bnd_2', subjectId: 'spn_1', namespaceId: 'ns_1' });
  const boundGroup = bound({ bindingId: 'bnd_2', ...ofGroup, namespaceId: 'ns_1' });
  it.each<[string, readonly IamEvent[], readonly IamEvent[]]>([
    ['a service principal', [boundMachine, { type: 'ServicePrincipalRemoved', data: { servicePrincipalId: 'spn_1' } }], [{ type: 'AccessBindingDeleted', data: { bindingId: 'bnd_2', namespaceId: 'ns_1' } }]],
    ['a Group', [boundGroup, { type: 'GroupDeleted', data: { groupId: 'grp_1', namespaceId: 'ns_1', principalIds: [] } }], [{ type: 'AccessBindingDeleted', data: { bindingId: 'bnd_2', namespaceId: 'ns_1' } }]],
    ['a Group with members', [member('ns_1'), { type: 'GroupDeleted', data: { groupId: 'grp_1', namespaceId: 'ns_1', principalIds: [] } }], [{ type: 'GroupMembershipDeleted', data: { groupId: 'grp_1', namespaceId: 'ns_1', principalId: 'prn_1' } }]],
  ])('is denied to everybody while the policy still names %s that is gone, and no longer', (_, broken, mended) => {
    expect(allowed([...soundPolicy, ...broken], 'read', agent('agt_1'))).toBe(false);
    expect(allowed([...soundPolicy, ...broken, ...mended], 'read', agent('agt_1'))).toBe(true);
  });

  it.each<[string, readonly IamEvent[], IamEvent]>([
    ['a Role', [{ type: 'RoleCreated', data: { roleId: 'role_2', permissions: [{ action: 'read', resourceKind: 'agent' }, { action: 'read', resourceKind: 'agent' }] } }], { type: 'RoleDeleted', data: { roleId: 'role_2' } }],
    ['a Restriction', [{ type: 'RestrictionCreated', data: { restrictionId: 'rst_9', action: 'administer', resourceKind: 'installation', namespaceId: 'ns_1' } }], { type: 'RestrictionDeleted', data: { restrictionId: 'rst_9' } }],
    ['a membership', [member()], { type: 'GroupMembershipDeleted', data: { groupId: 'grp_1', principalId: 'prn_1' } }],
    ['a Group', [group('ns_1')], { type: 'GroupDeleted', data: { groupId: 'grp_1', namespaceId: 'ns_1', principalIds: [] } }],
    ['a Role that is made twice', [{ type: 'RoleCreated', data: { roleId: 'role_2', permissions: [] } }, { type: 'RoleCreated', data: { roleId: 'role_2', permissions: [] } }], { type: 'RoleDeleted', data: { roleId: 'role_2' } }],
    ['a Restriction that is made twice', [restricted('agt_2'), restricted('agt_2')], { type: 'RestrictionDeleted', data: { restrictionId: 'rst_1' } }],
  ])('is granted again when %s that broke a rule is deleted', (_, broken, mended) => {
    expect(allowed([...soundPolicy, ...broken], 'read', agent('agt_1'))).toBe(false);
    expect(allowed([...soundPolicy, ...broken, mended], 'read', agent('agt_1'))).toBe(true);
  });

  it('is held again by a service principal that was named twice, once it is made anew', () => {
    const twice = [machine('ns_1'), machine('ns_1'), role, bound({ subjectId: 'spn_1', namespaceId: 'ns_1' })];
    expect(allowed(twice, 'read', agent('agt_1'), 'spn_1')).toBe(false);
    expect(allowed([...twice, { type: 'AccessBindingDeleted', data: { bindingId: 'bnd_1' } }, { type: 'ServicePrincipalRemoved', data: { servicePrincipalId: 'spn_1' } }, machine('ns_1'), bound({ subjectId: 'spn_1', namespaceId: 'ns_1' })], 'read', agent('agt_1'), 'spn_1')).toBe(true);
  });

  it('is no question for who is nobody in the place: unknown, ambiguous, or of another Namespace', () => {
    const problem = (id: string, namespaceId: string | undefined, events: readonly IamEvent[] = soundPolicy) => identityProblem(fold(iamDecider, events), id, namespaceId);
    expect([problem('prn_1', 'ns_1'), problem('prn_1', undefined), problem('spn_1', 'ns_1')]).toEqual([undefined, undefined, undefined]);
    expect([problem('spn_1', 'ns_2'), problem('spn_1', undefined)]).toEqual(Array(2).fill('The identity belongs to another scope'));
    expect(problem('prn_gone', 'ns_1')).toBe('The identity is unknown');
    expect(problem('prn_1', 'ns_1', [...soundPolicy, person])).toBe('The identity is ambiguous');
    expect(problem('prn_1', 'ns_1', [...soundPolicy, bound()])).toBe('The policy is inconsistent');
  });

  it('is granted again when what broke a rule is taken away', () => {
    const broken = [...soundPolicy, bound({ bindingId: 'bnd_2', roleId: 'role_gone' })];
    expect(allowed([...broken, { type: 'AccessBindingDeleted', data: { bindingId: 'bnd_2' } }], 'read', agent('agt_1'))).toBe(true);
  });

  it('is denied to an identity that history names twice, and to nobody else', () => {
    const other = [{ type: 'PrincipalCreated', data: { principalId: 'prn_2', issuer: 'local', subject: 'b' } }, bound({ bindingId: 'bnd_2', subjectId: 'prn_2' })] as const;
    const sameAccount: IamEvent = { type: 'PrincipalCreated', data: { principalId: 'prn_3', issuer: 'local', subject: 'a' } };
    for (const again of [person, sameAccount]) {
      const events = [...soundPolicy, ...other, again];
      expect(allowed(events, 'read', agent('agt_1'))).toBe(false);
      expect(allowed(events, 'read', agent('agt_1'), 'prn_2')).toBe(true);
    }
  });

  it('is never granted on a malformed reference', () => {
    const everything: IamEvent = {
      type: 'RoleCreated',
      data: { roleId: 'role_2', permissions: ['installation', 'namespace', 'configuration', 'agent'].map((resourceKind) => ({ action: 'read', resourceKind })) },
    };
    const events = [person, everything, bound({ roleId: 'role_2' })];
    expect(allowed(events, 'read', { kind: 'configuration', id: 'cfg_1', namespaceId: 'ns_1' })).toBe(true);
    expect(allowed(events, 'read', { kind: 'configuration', id: 'cfg_1' })).toBe(false);
    expect(allowed(events, 'read', { kind: 'namespace', id: 'ns_1', namespaceId: 'ns_2' })).toBe(false);
    expect(allowed(events, 'read', { kind: 'installation', id: 'ins_1', namespaceId: 'ns_1' })).toBe(false);
  });
});

describe('policy commands', () => {
  it('bind only subjects and Roles that exist in scope, to targets that are not gone', () => {
    const bind = (more: Partial<AccessBinding> = {}) => ({ type: 'CreateAccessBinding', binding: { bindingId: 'bnd_1', subjectKind: 'identity', subjectId: 'prn_1', roleId: 'role_1', ...more } }) as const;
    given(person, role).when(bind()).then(bound());
    given(role).when(bind()).refused('INVALID_REQUEST', /no such principal/);
    given(person).when(bind()).refused('INVALID_REQUEST', /no such Role/);
    given(machine('ns_1'), role).when(bind({ subjectId: 'spn_1' })).refused('INVALID_REQUEST', /^A service principal of ns_1 is bound only there, not in the whole Installation$/);
    const nsRole: IamEvent = { type: 'RoleCreated', data: { roleId: 'role_1', namespaceId: 'ns_1', permissions: [] } };
    given(person, nsRole).when(bind({ namespaceId: 'ns_2' })).refused('INVALID_REQUEST', /^A Role of ns_1 is bound only there, not in ns_2$/);
    given(person, role).when(bind({ resourceId: 'agt_1' })).refused('INVALID_REQUEST', /both/);
  });

  it('bind for a caller only what belongs to the Namespace, and only where it conveys something', () => {
    const permissions = (...texts: readonly string[]) => texts.map((text) => ({ action: text.split(':')[1]!, resourceKind: text.split(':')[0]! }));
    const roleIn = (namespaceId: string | undefined, ...texts: readonly string[]): IamEvent => ({ type: 'RoleCreated', data: { roleId: 'role_1', ...(namespaceId !== undefined && { namespaceId }), permissions: permissions(...texts) } });
    const binding = { bindingId: 'bnd_1', namespaceId: 'ns_1', subjectKind: 'identity', subjectId: 'prn_1', roleId: 'role_1', resourceKind: 'agent', resourceId: 'agt_1' } as const;
    const bind = (more: { readonly subjectId?: string } = {}) => ({ type: 'BindResource', binding: { ...binding, ...more } }) as const;
    const here = roleIn('ns_1', 'agent:read', 'secret:operate');
    given(person, here).when(bind()).then({ type: 'AccessBindingCreated', data: binding });
    given(machine('ns_1'), here).when(bind({ subjectId: 'spn_1' })).then({ type: 'AccessBindingCreated', data: { ...binding, subjectId: 'spn_1' } });
    for (const home of [undefined, 'ns_2']) given(machine(home), here).when(bind({ subjectId: 'spn_1' })).refused('INVALID_REQUEST', /only in its own Namespace/);
    given(person, group('ns_1'), here).when(bind({ subjectId: 'grp_1' })).refused('INVALID_REQUEST', /Group/);
    given(here).when(bind()).refused('INVALID_REQUEST', /no such principal/);
    given(person).when(bind()).refused('INVALID_REQUEST', /Role was not found/);
    for (const home of [undefined, 'ns_2']) given(person, roleIn(home, 'agent:read')).when(bind()).refused('INVALID_REQUEST', /Role was not found/);
    given(person, roleIn('ns_1', 'agent:read', 'agent:create')).when(bind()).refused('INVALID_REQUEST', /never conveys agent:create$/);
    given(person, roleIn('ns_1', 'agent:read', 'secret:create')).when(bind()).refused('INVALID_REQUEST', /never conveys secret:create$/);
    given(person, roleIn('ns_1', 'agent_revision:read')).when(bind()).refused('INVALID_REQUEST', /only agent_revision:read$/);
    given(person, here, bound({ bindingId: 'bnd_1' })).when(bind()).refused('RESOURCE_CONFLICT');
    const gone: IamEvent = { type: 'AgentBindingsRemoved', data: { agentId: 'agt_1', namespaceId: 'ns_1', servicePrincipalId: 'spn_9', revisionIds: [], bindingIds: [], keyIds: [] } };
    given(person, here, gone).when(bind()).refused('INVALID_REQUEST', /gone/);
  });

  it('refuse what would break a rule, and ids in use', () => {
    const bind = (more: Partial<AccessBinding>) => ({ type: 'CreateAccessBinding', binding: { bindingId: 'bnd_2', subjectKind: 'identity', subjectId: 'prn_1', roleId: 'role_1', ...more } }) as const;
    const restrict = (more: object) => ({ type: 'CreateRestriction', restriction: { restrictionId: 'rst_1', action: 'read', resourceKind: 'agent', ...more } }) as const;
    given(person, role).when(bind({ resourceKind: 'configuration', resourceId: 'cfg_1' })).refused('INVALID_REQUEST', /Namespace/);
    given(person, role).when(bind(ofGroup)).refused('INVALID_REQUEST', /^There is no such Group$/);
    given(person, role, group('ns_1')).when(bind(ofGroup)).refused('INVALID_REQUEST', /^A Group of ns_1 is bound only there, not in the whole Installation$/);
    given(person, role, group('ns_1')).when(bind({ ...ofGroup, namespaceId: 'ns_2' })).refused('INVALID_REQUEST', /^A Group of ns_1 is bound only there, not in ns_2$/);
    given(person, role, group()).when(bind({ ...ofGroup, namespaceId: 'ns_1' })).refused('INVALID_REQUEST', /^A Group of the Installation is bound only there, not in ns_1$/);
    given(person, role, bound()).when(bind({ bindingId: 'bnd_1' })).refused('RESOURCE_CONFLICT');
    given().when({ type: 'CreateRole', role: { roleId: 'role_1', permissions: [{ action: 'read', resourceKind: 'agent' }, { action: 'read', resourceKind: 'agent' }] } }).refused('INVALID_REQUEST', /distinct/);
    given().when(restrict({ resourceKind: 'installation', namespaceId: 'ns_1' })).refused('INVALID_REQUEST');
    given().when(restrict({ resourceKind: 'namespace', resourceId: 'ns_1', namespaceId: 'ns_2' })).refused('INVALID_REQUEST');
    given(person).when({ type: 'CreatePrincipal', principalId: 'prn_2', issuer: 'local', subject: 'a' }).refused('RESOURCE_CONFLICT', /account/);
  });

  it('make Groups of humans, and keep a Group that is bound', () => {
    const create = { type: 'CreateGroupMembership', groupId: 'grp_1', principalId: 'prn_1' } as const;
    given(person, group('ns_1')).when(create).then(member('ns_1'));
    given(person, group('ns_1'), member('ns_1')).when(create).then();
    given(person).when(create).refused('NOT_FOUND', /Group/);
    given(machine(), group()).when({ ...create, principalId: 'spn_1' }).refused('INVALID_REQUEST', /human/);
    given(person, group('ns_1'), member('ns_1'))
      .when({ type: 'DeleteGroupMembership', groupId: 'grp_1', principalId: 'prn_1' })
      .then({ type: 'GroupMembershipDeleted', data: { groupId: 'grp_1', namespaceId: 'ns_1', principalId: 'prn_1' } });
    given(person, group()).when({ type: 'DeleteGroupMembership', groupId: 'grp_1', principalId: 'prn_1' }).refused('NOT_FOUND', /membership/);
    const drop = { type: 'DeleteGroup', groupId: 'grp_1' } as const;
    given(person, role, group(), bound(ofGroup)).when(drop).refused('RESOURCE_CONFLICT', /bound/);
    given(person, group(), member()).when(drop).then({ type: 'GroupDeleted', data: { groupId: 'grp_1', principalIds: ['prn_1'] } });
  });

  it('take away with a Namespace what was of it or named it, for good', () => {
    const nsRole: IamEvent = { type: 'RoleCreated', data: { roleId: 'role_2', namespaceId: 'ns_1', permissions: [{ action: 'read', resourceKind: 'agent' }] } };
    const restriction: IamEvent = { type: 'RestrictionCreated', data: { restrictionId: 'rst_1', action: 'read', resourceKind: 'namespace', resourceId: 'ns_1' } };
    const everywhere: IamEvent = { type: 'RestrictionCreated', data: { restrictionId: 'rst_2', action: 'read', resourceKind: 'agent' } };
    const history = [person, role, nsRole, group('ns_1'), member('ns_1'), bound(), bound({ bindingId: 'bnd_2', namespaceId: 'ns_1', roleId: 'role_2', ...ofGroup }), restriction, everywhere];
    const resource = { resourceKind: 'namespace', resourceId: 'ns_1', namespaceId: 'ns_1' };
    const gone: IamEvent = { type: 'ResourcePolicyRemoved', data: { ...resource, bindingIds: ['bnd_2'], roleIds: ['role_2'], groupIds: ['grp_1'], restrictionIds: ['rst_1'] } };
    given(...history).when({ type: 'RemoveResourcePolicy', ...resource }).then(gone);
    expect(given(...history, gone).state().breaches.isEmpty()).toBe(true);
    expect(given(...history, gone).state().memberships.isEmpty()).toBe(true);
    given(...history, gone).when({ type: 'CreateGroup', group: { groupId: 'grp_2', name: 'late', namespaceId: 'ns_1' } }).refused('INVALID_REQUEST', /gone/);
  });

  it('end the service principals and keys of a Namespace that is gone, once, and make none in it', () => {
    const key = { keyId: 'key_1', servicePrincipalId: 'spn_1', namespaceId: 'ns_1', name: 'k', expiresAt: '' };
    const issued: IamEvent = { type: 'ServiceKeyIssued', data: key };
    const gone: IamEvent = { type: 'ResourcePolicyRemoved', data: { resourceKind: 'namespace', resourceId: 'ns_1', namespaceId: 'ns_1', bindingIds: [], roleIds: [] } };
    const end = { type: 'RemoveServicePrincipals', namespaceId: 'ns_1', servicePrincipalIds: ['spn_1', 'spn_2', 'prn_1', 'spn_gone'] } as const;
    const elsewhere: IamEvent = { type: 'ServicePrincipalCreated', data: { servicePrincipalId: 'spn_2', namespaceId: 'ns_2' } };
    const history = [person, machine('ns_1'), elsewhere, issued, gone];
    const ended: readonly IamEvent[] = [{ type: 'ServiceKeyRevoked', data: { keyId: 'key_1', servicePrincipalId: 'spn_1' } }, { type: 'ServicePrincipalRemoved', data: { servicePrincipalId: 'spn_1' } }];
    given(machine('ns_1'), issued).when(end).then();
    given(...history).when(end).then(...ended);
    given(...history, ...ended).when(end).then();
    given(...history).when({ type: 'IssueServiceKey', key: { ...key, keyId: 'key_2' } }).refused('INVALID_REQUEST', /Namespace is gone/);
    given(...history).when({ type: 'CreateServicePrincipal', servicePrincipalId: 'spn_3', namespaceId: 'ns_1' }).refused('INVALID_REQUEST', /Namespace is gone/);
  });

  it('unbind the principal of an Agent that never came to be', () => {
    const orphan = machine('ns_1', 'agt_1');
    given(orphan, role, bound({ subjectId: 'spn_1', namespaceId: 'ns_1' }))
      .when({ type: 'RemoveServicePrincipalOfAgent', agentId: 'agt_1' })
      .then({ type: 'AccessBindingDeleted', data: { bindingId: 'bnd_1', namespaceId: 'ns_1' } }, { type: 'ServicePrincipalRemoved', data: { servicePrincipalId: 'spn_1' } });
  });

  it('end the keys of an Agent that is removed, and one that is revoked', () => {
    const key: IamEvent = { type: 'ServiceKeyIssued', data: { keyId: 'key_1', servicePrincipalId: 'spn_1', name: 'k', expiresAt: '' } };
    const removal = { agentId: 'agt_1', namespaceId: 'ns_1', servicePrincipalId: 'spn_1', revisionIds: [] };
    const gone: IamEvent = { type: 'AgentBindingsRemoved', data: { ...removal, bindingIds: [], keyIds: ['key_1'] } };
    given(machine('ns_1', 'agt_1'), key).when({ type: 'RemoveAgentBindings', ...removal }).then(gone);
    expect(given(machine('ns_1', 'agt_1'), key, gone).state().keys.isEmpty()).toBe(true);
    expect(given(machine(), key, { type: 'ServiceKeyRevoked', data: { keyId: 'key_1', servicePrincipalId: 'spn_1' } }).state().keys.isEmpty()).toBe(true);
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
    const late = { bindingId: 'bnd_5', namespaceId: 'ns_1', subjectKind: 'identity', subjectId: 'prn_1', roleId: 'role_1', resourceKind: 'agent_revision', resourceId: 'rev_1' } as const;
    given(...history, gone).when({ type: 'CreateAccessBinding', binding: late }).refused('INVALID_REQUEST', /gone/);
    given(...history, gone).when({ type: 'BindResource', binding: late }).refused('INVALID_REQUEST', /gone/);
    given(...history, gone)
      .when({ type: 'CreateAccessBinding', binding: { bindingId: 'bnd_5', subjectKind: 'identity', subjectId: 'prn_1', roleId: 'role_1', resourceKind: 'agent', resourceId: 'agt_1' } })
      .refused('INVALID_REQUEST', /gone/);
    given(restricted('agt_1'))
      .when({ type: 'RemoveAgentRestrictions', agentId: 'agt_1', namespaceId: 'ns_1', revisionIds: [] })
      .then({ type: 'AgentRestrictionsRemoved', data: { agentId: 'agt_1', namespaceId: 'ns_1', restrictionIds: ['rst_1'] } });
  });
});
