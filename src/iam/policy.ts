/** Policy as the `iam` stream has it: principals, groups, roles, bindings, restrictions and keys, folded. (iam-auth-audit 2.3) */
import { Map, OrderedMap, Set } from 'immutable';
import type { Envelope } from '../kernel/event.ts';
import type { AccessBinding, Group, GroupMembership, IamEvent, InstallationBootstrapped, Restriction, Role, ServiceKey } from './messages.ts';
import { breachOfBinding, breachOfMembership, breachOfRestriction, breachOfRole, type Breach } from './rules.ts';

export interface Identity {
  readonly id: string;
  readonly kind: 'principal' | 'service_principal';
  readonly namespaceId: string | undefined;
  /** Set on the service principal an Agent owns; such an identity never authenticates. */
  readonly agentId: string | undefined;
}

export interface Policy {
  readonly installation: InstallationBootstrapped['data'] & { readonly createdAt: string } | null;
  /** In the order of their creation. */
  readonly identities: OrderedMap<string, Identity>;
  /** The principal of each account, by {@link accountKey}. */
  readonly principalOfAccount: Map<string, string>;
  /** The password in force by Principal; none for a first one. */
  readonly passwords: Map<string, string>;
  /** Identities that history names twice: nobody can say who is meant. */
  readonly ambiguous: Set<string>;
  /** The one service principal of each Agent. */
  readonly principalOfAgent: Map<string, string>;
  /** In the order of their creation. */
  readonly roles: OrderedMap<string, Role>;
  /** In the order of their creation. */
  readonly bindings: OrderedMap<string, AccessBinding>;
  readonly bindingsBySubject: Map<string, Set<string>>;
  /** Bindings by subject and exact scope: {@link bindingPlace}. */
  readonly bindingsByPlace: Map<string, Set<string>>;
  /** In the order of their creation. */
  readonly restrictions: OrderedMap<string, Restriction>;
  /** Restrictions by permission and exact scope: {@link restrictionPlace}. */
  readonly restrictionsByPlace: Map<string, Set<string>>;
  /** In the order of their creation. */
  readonly groups: OrderedMap<string, Group>;
  /** By {@link membershipKey}. */
  readonly memberships: Map<string, GroupMembership>;
  readonly groupsOfPrincipal: Map<string, Set<string>>;
  /** In the order of their issue. */
  readonly keys: OrderedMap<string, ServiceKey>;
  /** Resources that are gone for good: unusable as the target of a binding. Principals and keys that never came to be are among them. */
  readonly removed: Set<string>;
  /** Rules that history has broken, by the id of what breaks each: while there is one, everything is denied. (AZ-203) */
  readonly breaches: Map<string, Breach>;
}

type Scope = Pick<AccessBinding, 'namespaceId' | 'resourceKind' | 'resourceId'>;

/** The key of a subject's bindings in one exact scope; an absent part is a scope of its own. */
export const bindingPlace = (subjectKind: AccessBinding['subjectKind'], subjectId: string, { namespaceId, resourceKind, resourceId }: Scope): string =>
  `${subjectKind}\n${subjectId}\n${namespaceId ?? ''}\n${resourceKind ?? ''}\n${resourceId ?? ''}`;

/** The key of the Restrictions of one permission in one exact scope. */
export const restrictionPlace = (action: string, resourceKind: string, { namespaceId, resourceId }: Scope): string =>
  `${action}\n${resourceKind}\n${namespaceId ?? ''}\n${resourceId ?? ''}`;

export const membershipKey = ({ groupId, principalId }: Pick<GroupMembership, 'groupId' | 'principalId'>): string => `${groupId}\n${principalId}`;

export const accountKey = ({ issuer, subject }: { readonly issuer: string; readonly subject: string }): string => `${issuer}\n${subject}`;

export const noPolicy: Policy = {
  installation: null,
  identities: OrderedMap(),
  principalOfAccount: Map(),
  passwords: Map(),
  ambiguous: Set(),
  principalOfAgent: Map(),
  roles: OrderedMap(),
  bindings: OrderedMap(),
  bindingsBySubject: Map(),
  bindingsByPlace: Map(),
  restrictions: OrderedMap(),
  restrictionsByPlace: Map(),
  groups: OrderedMap(),
  memberships: Map(),
  groupsOfPrincipal: Map(),
  keys: OrderedMap(),
  removed: Set(),
  breaches: Map(),
};

type Index = Map<string, Set<string>>;
const indexed = (index: Index, key: string, id: string): Index => index.update(key, Set<string>(), (ids) => ids.add(id));
const unindexed = (index: Index, key: string, id: string): Index => {
  const ids = index.get(key, Set<string>()).delete(id);
  return ids.isEmpty() ? index.delete(key) : index.set(key, ids);
};

const noted = (policy: Policy, id: string, breach: Breach | undefined): Policy => (breach === undefined ? policy : { ...policy, breaches: policy.breaches.set(id, breach) });
const mended = (policy: Policy, id: string): Policy => (policy.breaches.has(id) ? { ...policy, breaches: policy.breaches.delete(id) } : policy);

/** What is made once and never changed is made twice. */
const twice = (exists: boolean): Breach | undefined => (exists ? { path: '', message: 'An id is used twice' } : undefined);

const withIdentity = (policy: Policy, identity: Identity): Policy => ({
  ...policy,
  identities: policy.identities.set(identity.id, identity),
  ambiguous: policy.identities.has(identity.id) ? policy.ambiguous.add(identity.id) : policy.ambiguous,
  principalOfAgent: identity.agentId === undefined ? policy.principalOfAgent : policy.principalOfAgent.set(identity.agentId, identity.id),
});

const withPrincipal = (policy: Policy, { principalId, issuer, subject }: { readonly principalId: string; readonly issuer: string; readonly subject: string }): Policy => {
  const known = withIdentity(policy, { id: principalId, kind: 'principal', namespaceId: undefined, agentId: undefined });
  const account = accountKey({ issuer, subject });
  const other = policy.principalOfAccount.get(account);
  return {
    ...known,
    principalOfAccount: known.principalOfAccount.set(account, principalId),
    ambiguous: other === undefined || other === principalId ? known.ambiguous : known.ambiguous.add(other).add(principalId),
  };
};

/** Judges again what referred to something that is gone. */
const judged = (policy: Policy, bindings: Iterable<AccessBinding>, memberships: Iterable<GroupMembership> = []): Policy => {
  const ofBindings = [...bindings].reduce((state, binding) => noted(state, binding.bindingId, breachOfBinding(state, binding)), policy);
  return [...memberships].reduce((state, membership) => noted(state, membershipKey(membership), breachOfMembership(state, membership)), ofBindings);
};

/** Bindings whose subject has this id. */
const bindingsOfSubject = (policy: Policy, subjectId: string): readonly AccessBinding[] =>
  (policy.bindingsBySubject.get(subjectId)?.toArray() ?? []).map((bindingId) => policy.bindings.get(bindingId)!);

const withoutIdentity = (policy: Policy, id: string): Policy => {
  const agentId = policy.identities.get(id)?.agentId;
  const gone = {
    ...policy,
    identities: policy.identities.delete(id),
    ambiguous: policy.ambiguous.delete(id),
    principalOfAgent: agentId === undefined ? policy.principalOfAgent : policy.principalOfAgent.delete(agentId),
  };
  return judged(gone, bindingsOfSubject(gone, id));
};

const withRole = (policy: Policy, role: Role): Policy =>
  noted({ ...policy, roles: policy.roles.set(role.roleId, role) }, role.roleId, twice(policy.roles.has(role.roleId)) ?? breachOfRole(role));

const withoutRoles = (policy: Policy, roleIds: readonly string[]): Policy => {
  if (roleIds.length === 0) return policy;
  const gone = roleIds.reduce(mended, { ...policy, roles: policy.roles.deleteAll(roleIds) });
  return judged(gone, gone.bindings.valueSeq().filter(({ roleId }) => roleIds.includes(roleId)));
};

const withoutBinding = (policy: Policy, bindingId: string): Policy => {
  const binding = policy.bindings.get(bindingId);
  if (binding === undefined) return policy;
  return mended(
    {
      ...policy,
      bindings: policy.bindings.delete(bindingId),
      bindingsBySubject: unindexed(policy.bindingsBySubject, binding.subjectId, bindingId),
      bindingsByPlace: unindexed(policy.bindingsByPlace, bindingPlace(binding.subjectKind, binding.subjectId, binding), bindingId),
    },
    bindingId,
  );
};

const withBinding = (policy: Policy, binding: AccessBinding): Policy => {
  const { bindingId, subjectKind, subjectId } = binding;
  const before = withoutBinding(policy, bindingId);
  const after = {
    ...before,
    bindings: before.bindings.set(bindingId, binding),
    bindingsBySubject: indexed(before.bindingsBySubject, subjectId, bindingId),
    bindingsByPlace: indexed(before.bindingsByPlace, bindingPlace(subjectKind, subjectId, binding), bindingId),
  };
  return noted(after, bindingId, twice(policy.bindings.has(bindingId)) ?? breachOfBinding(after, binding));
};

const withoutRestriction = (policy: Policy, restrictionId: string): Policy => {
  const restriction = policy.restrictions.get(restrictionId);
  if (restriction === undefined) return policy;
  const place = restrictionPlace(restriction.action, restriction.resourceKind, restriction);
  const gone = { ...policy, restrictions: policy.restrictions.delete(restrictionId), restrictionsByPlace: unindexed(policy.restrictionsByPlace, place, restrictionId) };
  return mended(gone, restrictionId);
};

const withRestriction = (policy: Policy, restriction: Restriction): Policy => {
  const { restrictionId, action, resourceKind } = restriction;
  const before = withoutRestriction(policy, restrictionId);
  const after = {
    ...before,
    restrictions: before.restrictions.set(restrictionId, restriction),
    restrictionsByPlace: indexed(before.restrictionsByPlace, restrictionPlace(action, resourceKind, restriction), restrictionId),
  };
  return noted(after, restrictionId, twice(policy.restrictions.has(restrictionId)) ?? breachOfRestriction(restriction));
};

const withGroup = (policy: Policy, group: Group): Policy =>
  noted({ ...policy, groups: policy.groups.set(group.groupId, group) }, group.groupId, twice(policy.groups.has(group.groupId)));

const withMembership = (policy: Policy, membership: GroupMembership): Policy => {
  const { groupId, principalId } = membership;
  const key = membershipKey(membership);
  const after = {
    ...policy,
    memberships: policy.memberships.set(key, membership),
    groupsOfPrincipal: indexed(policy.groupsOfPrincipal, principalId, groupId),
  };
  return noted(after, key, breachOfMembership(after, membership));
};

const withoutMembership = (policy: Policy, membership: Pick<GroupMembership, 'groupId' | 'principalId'>): Policy => {
  const key = membershipKey(membership);
  const gone = {
    ...policy,
    memberships: policy.memberships.delete(key),
    groupsOfPrincipal: unindexed(policy.groupsOfPrincipal, membership.principalId, membership.groupId),
  };
  return mended(gone, key);
};

const withoutGroup = (policy: Policy, groupId: string, principalIds: readonly string[]): Policy => {
  const emptied = principalIds.reduce((state, principalId) => withoutMembership(state, { groupId, principalId }), policy);
  const gone = mended({ ...emptied, groups: emptied.groups.delete(groupId) }, groupId);
  return judged(gone, bindingsOfSubject(gone, groupId), gone.memberships.valueSeq().filter((membership) => membership.groupId === groupId));
};

const servicePrincipal = (data: { servicePrincipalId: string; namespaceId?: string; agentId?: string }): Identity => ({
  id: data.servicePrincipalId,
  kind: 'service_principal',
  namespaceId: data.namespaceId,
  agentId: data.agentId,
});

export const evolvePolicy = (policy: Policy, { type, data }: IamEvent, { occurredAt }: Pick<Envelope, 'occurredAt'>): Policy => {
  switch (type) {
    case 'InstallationBootstrapped': {
      const born = withRole(withIdentity(withPrincipal(policy, data.administrator), servicePrincipal(data.servicePrincipal)), data.role);
      return data.bindings.reduce(withBinding, {
        ...born,
        installation: { ...data, createdAt: occurredAt },
        keys: born.keys.set(data.serviceKey.keyId, data.serviceKey),
      });
    }
    case 'PrincipalCreated':
      return withPrincipal(policy, data);
    case 'PrincipalCreationAbandoned':
      return { ...policy, removed: policy.removed.add(data.principalId) };
    case 'PasswordReplaced':
      return { ...policy, passwords: policy.passwords.set(data.principalId, data.passwordId) };
    case 'ServicePrincipalCreated':
      return withIdentity(policy, servicePrincipal(data));
    case 'ServicePrincipalRemoved':
      return withoutIdentity(policy, data.servicePrincipalId);
    case 'RoleCreated':
      return withRole(policy, data);
    case 'RoleDeleted':
      return withoutRoles(policy, [data.roleId]);
    case 'AccessBindingCreated':
      return withBinding(policy, data);
    case 'AccessBindingDeleted':
      return withoutBinding(policy, data.bindingId);
    case 'RestrictionCreated':
      return withRestriction(policy, data);
    case 'RestrictionDeleted':
      return withoutRestriction(policy, data.restrictionId);
    case 'GroupCreated':
      return withGroup(policy, data);
    case 'GroupDeleted':
      return withoutGroup(policy, data.groupId, data.principalIds);
    case 'GroupMembershipCreated':
      return withMembership(policy, data);
    case 'GroupMembershipDeleted':
      return withoutMembership(policy, data);
    case 'ServiceKeyIssued':
      return { ...policy, keys: policy.keys.set(data.keyId, data) };
    case 'ServiceKeyAbandoned':
      return { ...policy, removed: policy.removed.add(data.keyId) };
    case 'ServiceKeyRevoked':
      return { ...policy, keys: policy.keys.delete(data.keyId) };
    case 'AgentBindingsRemoved': {
      const unbound = withoutIdentity(data.bindingIds.reduce(withoutBinding, policy), data.servicePrincipalId);
      return {
        ...unbound,
        keys: unbound.keys.deleteAll(data.keyIds),
        removed: unbound.removed.union([data.agentId, ...data.revisionIds]),
      };
    }
    case 'AgentRestrictionsRemoved':
      return data.restrictionIds.reduce(withoutRestriction, policy);
    case 'ResourcePolicyRemoved': {
      const unbound = withoutRoles(data.bindingIds.reduce(withoutBinding, policy), data.roleIds);
      const ungrouped = (data.groupIds ?? []).reduce((state, groupId) => withoutGroup(state, groupId, membersOf(state, groupId)), unbound);
      const unrestricted = (data.restrictionIds ?? []).reduce(withoutRestriction, ungrouped);
      return { ...unrestricted, removed: unrestricted.removed.add(data.resourceId) };
    }
  }
};

/** The members of a Group, in the order of their ids. */
export const membersOf = (policy: Policy, groupId: string): readonly string[] =>
  policy.memberships
    .valueSeq()
    .filter((membership) => membership.groupId === groupId)
    .map(({ principalId }) => principalId)
    .toArray()
    .sort();

/** Every binding an identity holds, by itself and through its Groups, wherever they reach. */
export const bindingsOf = (policy: Policy, identityId: string): readonly AccessBinding[] =>
  [identityId, ...(policy.groupsOfPrincipal.get(identityId)?.toArray() ?? [])].flatMap((subjectId) => bindingsOfSubject(policy, subjectId));

/** Bindings that target one of these resources, or name this subject. */
export const bindingsNaming = (policy: Policy, resourceIds: readonly string[], subjectId?: string): readonly string[] => {
  const targets = Set(resourceIds);
  return policy.bindings
    .valueSeq()
    .filter(({ resourceId, subjectId: subject }) => (resourceId !== undefined && targets.has(resourceId)) || subject === subjectId)
    .map(({ bindingId }) => bindingId)
    .toArray();
};

/** Restrictions with one of these resources as their exact target. */
export const restrictionsNaming = (policy: Policy, resourceIds: readonly string[]): readonly string[] => {
  const targets = Set(resourceIds);
  return policy.restrictions
    .valueSeq()
    .filter(({ resourceId }) => resourceId !== undefined && targets.has(resourceId))
    .map(({ restrictionId }) => restrictionId)
    .toArray();
};

/** The service principals of a Namespace. */
export const principalsIn = (policy: Policy, namespaceId: string): readonly string[] =>
  [...policy.identities.values()].filter((identity) => identity.namespaceId === namespaceId).map(({ id }) => id);
