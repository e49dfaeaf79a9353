/** Coverage as a property: whoever covers another may do whatever that one may, on any reference. (iam-auth-audit 2.4) */
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { covers, coversRole } from '../../src/iam/coverage.ts';
import { evaluate, type Action } from '../../src/iam/evaluate.ts';
import { iamDecider } from '../../src/iam/iam.ts';
import type { AccessBinding, IamEvent } from '../../src/iam/messages.ts';
import type { ResourceKind, ResourceRef } from '../../src/kernel/event.ts';
import { fold } from '../support/specs.ts';

const actions: readonly Action[] = ['read', 'operate'];
const kinds: readonly ResourceKind[] = ['agent', 'secret'];
const places = ['ns_1', 'ns_2'];
const ids = ['a', 'b'];

const permission = fc.record({ action: fc.constantFrom(...actions), resourceKind: fc.constantFrom(...kinds) });
const scope = fc.record({
  namespaceId: fc.option(fc.constantFrom(...places), { nil: undefined }),
  target: fc.option(fc.record({ resourceKind: fc.constantFrom(...kinds), resourceId: fc.constantFrom(...ids) }), { nil: undefined }),
});
const grant = fc.record({ permissions: fc.uniqueArray(permission, { minLength: 1, maxLength: 3, selector: ({ action, resourceKind }) => `${resourceKind}:${action}` }), scope, viaGroup: fc.boolean() });
type Grant = typeof grant extends fc.Arbitrary<infer T> ? T : never;
const grants = fc.array(grant, { maxLength: 4 });

const references: readonly ResourceRef[] = kinds.flatMap((kind) => places.flatMap((namespaceId) => ids.map((id) => ({ kind, id, namespaceId }))));

/** A human with these grants, some of them through a Group. */
const granted = (id: string, list: readonly Grant[]): readonly IamEvent[] => [
  { type: 'PrincipalCreated', data: { principalId: id, issuer: 'local', subject: id } },
  ...list.flatMap(({ permissions, scope: { namespaceId, target }, viaGroup }, index): IamEvent[] => {
    const place = namespaceId === undefined ? {} : { namespaceId };
    const groupId = `group_${id}_${index}`;
    const binding: AccessBinding = { bindingId: `bnd_${id}_${index}`, roleId: `role_${id}_${index}`, ...(viaGroup ? { subjectKind: 'group', subjectId: groupId } : { subjectKind: 'identity', subjectId: id }), ...place, ...target };
    return [
      { type: 'GroupCreated', data: { groupId, name: groupId, ...place } },
      { type: 'GroupMembershipCreated', data: { groupId, principalId: id, ...place } },
      { type: 'RoleCreated', data: { roleId: binding.roleId, permissions } },
      { type: 'AccessBindingCreated', data: binding },
    ];
  }),
];

it('who covers another may do all that the other may', () => {
  fc.assert(
    fc.property(grants, grants, (own, others) => {
      const policy = fold(iamDecider, [...granted('prn_1', own), ...granted('prn_2', others)]);
      if (!covers(policy, 'prn_1', 'prn_2')) return;
      for (const reference of references)
        for (const action of actions) {
          const of = (id: string) => evaluate(policy, id, action, reference).allowed;
          if (of('prn_2')) expect({ reference, action, allowed: of('prn_1') }).toEqual({ reference, action, allowed: true });
        }
    }),
    { numRuns: 500 },
  );
});

it('an identity covers itself, and one that has nothing', () => {
  fc.assert(
    fc.property(grants, (own) => {
      const policy = fold(iamDecider, [...granted('prn_1', own), ...granted('prn_2', [])]);
      expect([covers(policy, 'prn_1', 'prn_1'), covers(policy, 'prn_1', 'prn_2')]).toEqual([true, true]);
    }),
  );
});

const wide: Grant['scope'] = { namespaceId: undefined, target: undefined };
const exact: Grant['scope'] = { namespaceId: 'ns_1', target: { resourceKind: 'agent', resourceId: 'a' } };
const read = [{ action: 'read' as const, resourceKind: 'agent' as const }];

it.each([
  ['the same grant', exact, exact, true],
  ['a wider grant', { namespaceId: 'ns_1', target: undefined }, exact, true],
  ['a grant of the resource in any Namespace', { ...exact, namespaceId: undefined }, exact, true],
  ['a grant everywhere', wide, exact, true],
  ['a narrower grant', exact, { namespaceId: 'ns_1', target: undefined }, false],
  ['a grant in another Namespace', { ...exact, namespaceId: 'ns_2' }, exact, false],
  ['a grant in a Namespace', { namespaceId: 'ns_1', target: undefined }, wide, false],
])('%s: %s', (_, own, other, covered) => {
  const policy = fold(iamDecider, [...granted('prn_1', [{ permissions: read, scope: own, viaGroup: false }]), ...granted('prn_2', [{ permissions: read, scope: other, viaGroup: true }])]);
  expect(covers(policy, 'prn_1', 'prn_2')).toBe(covered);
});

it('Restrictions do not count, and an exact binding counts for the kind of its target only', () => {
  const operate = [{ action: 'operate' as const, resourceKind: 'secret' as const }];
  const restricted: IamEvent = { type: 'RestrictionCreated', data: { restrictionId: 'rst_1', action: 'read', resourceKind: 'agent' } };
  const policy = fold(iamDecider, [...granted('prn_1', [{ permissions: read, scope: wide, viaGroup: false }]), ...granted('prn_2', [{ permissions: [...read, ...operate], scope: exact, viaGroup: false }]), restricted]);
  expect(covers(policy, 'prn_1', 'prn_2')).toBe(true);
});

it.each([
  ['each of its permissions everywhere', wide, ['read agent', 'operate secret'], true],
  ['one of its permissions', wide, ['read agent'], false],
  ['each of them in a Namespace', { namespaceId: 'ns_1', target: undefined }, ['read agent', 'operate secret'], false],
  ['each of them on a resource', { namespaceId: undefined, target: { resourceKind: 'agent' as const, resourceId: 'a' } }, ['read agent', 'operate secret'], false],
  ['nothing', wide, [], false],
])('a Role of the Installation is covered by who holds %s: %s', (_, own, held, covered) => {
  const permissionOf = (text: string) => ({ action: text.split(' ')[0] as 'read', resourceKind: text.split(' ')[1] as 'agent' });
  const permissions = ['read agent', 'operate secret'].map(permissionOf);
  const holder = granted('prn_1', held.map((text) => ({ permissions: [permissionOf(text)], scope: own, viaGroup: false })));
  const wanted: IamEvent = { type: 'RoleCreated', data: { roleId: 'role_wanted', permissions } };
  const policy = fold(iamDecider, [...holder, wanted]);
  expect(coversRole(policy, 'prn_1', 'role_wanted')).toBe(covered);
});
