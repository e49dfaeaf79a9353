/** The evaluator once more, as slow and as plain as the specification says it: lists, and a scan for every question. (iam-auth-audit 2.2 to 2.4) */
import type { AccessBinding, Group, GroupMembership, IamEvent, Restriction, Role } from '../../src/iam/messages.ts';
import type { ResourceRef } from '../../src/kernel/event.ts';

interface Model {
  identities: { id: string; human: boolean; namespaceId: string | undefined }[];
  groups: Group[];
  memberships: GroupMembership[];
  roles: Role[];
  bindings: AccessBinding[];
  restrictions: Restriction[];
}

/** What a history leaves standing. */
const modelOf = (events: readonly IamEvent[]): Model => {
  const model: Model = { identities: [], groups: [], memberships: [], roles: [], bindings: [], restrictions: [] };
  for (const { type, data } of events) {
    if (type === 'PrincipalCreated') model.identities.push({ id: data.principalId, human: true, namespaceId: undefined });
    if (type === 'ServicePrincipalCreated') model.identities.push({ id: data.servicePrincipalId, human: false, namespaceId: data.namespaceId });
    if (type === 'GroupCreated') model.groups.push(data);
    if (type === 'GroupDeleted') {
      model.groups = model.groups.filter((group) => group.groupId !== data.groupId);
      model.memberships = model.memberships.filter((membership) => !(membership.groupId === data.groupId && data.principalIds.includes(membership.principalId)));
    }
    if (type === 'GroupMembershipCreated') model.memberships.push(data);
    if (type === 'GroupMembershipDeleted')
      model.memberships = model.memberships.filter((membership) => membership.groupId !== data.groupId || membership.principalId !== data.principalId);
    if (type === 'RoleCreated') model.roles.push(data);
    if (type === 'RoleDeleted') model.roles = model.roles.filter((role) => role.roleId !== data.roleId);
    if (type === 'AccessBindingCreated') model.bindings.push(data);
    if (type === 'AccessBindingDeleted') model.bindings = model.bindings.filter((binding) => binding.bindingId !== data.bindingId);
    if (type === 'RestrictionCreated') model.restrictions.push(data);
    if (type === 'RestrictionDeleted') model.restrictions = model.restrictions.filter((restriction) => restriction.restrictionId !== data.restrictionId);
  }
  return model;
};

const distinct = (values: readonly unknown[]): boolean => new Set(values).size === values.length;

const isValid = ({ identities, groups, memberships, roles, bindings, restrictions }: Model): boolean =>
  roles.every((role) => distinct(role.permissions.map((permission) => JSON.stringify([permission.action, permission.resourceKind])))) &&
  bindings.every((binding) => {
    const role = roles.find((one) => one.roleId === binding.roleId);
    const group = groups.find((one) => one.groupId === binding.subjectId);
    const identity = identities.find((one) => one.id === binding.subjectId);
    const subjectFits =
      binding.subjectKind === 'group'
        ? group !== undefined && group.namespaceId === binding.namespaceId
        : identity !== undefined && (identity.human || identity.namespaceId === undefined || identity.namespaceId === binding.namespaceId);
    const roleFits = role !== undefined && (role.namespaceId === undefined || role.namespaceId === binding.namespaceId);
    const bothOrNeither = (binding.resourceKind === undefined) === (binding.resourceId === undefined);
    const needsNamespace = ['configuration', 'preset', 'service_account'].includes(binding.resourceKind ?? '');
    return subjectFits && roleFits && bothOrNeither && (!needsNamespace || binding.namespaceId !== undefined);
  }) &&
  restrictions.every((restriction) => {
    if (restriction.resourceKind === 'installation') return restriction.namespaceId === undefined;
    if (restriction.resourceKind !== 'namespace' || restriction.namespaceId === undefined || restriction.resourceId === undefined) return true;
    return restriction.namespaceId === restriction.resourceId;
  }) &&
  memberships.every((membership) => {
    const group = groups.find((one) => one.groupId === membership.groupId);
    const identity = identities.find((one) => one.id === membership.principalId);
    return group !== undefined && group.namespaceId === membership.namespaceId && identity?.human === true;
  });

/** Whether a history keeps every rule of section 2.3. */
export const isSound = (events: readonly IamEvent[]): boolean => isValid(modelOf(events));

const sorted = (values: readonly string[]): string[] => [...new Set(values)].sort();

/** Judges by the algorithm of section 2.4, step by step. */
const judgeIn = (model: Model, valid: boolean, identityId: string, action: string, resource: ResourceRef) => {
  const found = { identityId, groupIds: [] as string[], bindingIds: [] as string[], roleIds: [] as string[], restrictionIds: [] as string[] };
  if (!valid) return { allowed: false, evidence: found };
  const mustNameNamespace = ['configuration', 'preset', 'service_account', 'secret', 'credential_source', 'agent', 'agent_revision'].includes(resource.kind);
  if (mustNameNamespace && resource.namespaceId === undefined) return { allowed: false, evidence: found };
  if (resource.kind === 'installation' && resource.namespaceId !== undefined) return { allowed: false, evidence: found };
  if (resource.kind === 'namespace' && resource.namespaceId !== undefined && resource.namespaceId !== resource.id) return { allowed: false, evidence: found };
  const [identity, another] = model.identities.filter((one) => one.id === identityId);
  if (identity === undefined || another !== undefined) return { allowed: false, evidence: found };
  if (identity.namespaceId !== undefined && identity.namespaceId !== resource.namespaceId) return { allowed: false, evidence: found };
  const groupIds = model.memberships
    .filter((membership) => identity.human && membership.principalId === identityId)
    .filter((membership) => membership.namespaceId === undefined || membership.namespaceId === resource.namespaceId)
    .map((membership) => membership.groupId);
  found.groupIds = sorted(groupIds);
  const bindings = model.bindings.filter((binding) => {
    const role = model.roles.find((one) => one.roleId === binding.roleId)!;
    return (
      (binding.subjectKind === 'group' ? groupIds.includes(binding.subjectId) : binding.subjectId === identityId) &&
      (binding.namespaceId === undefined || binding.namespaceId === resource.namespaceId) &&
      (binding.resourceKind === undefined || (binding.resourceKind === resource.kind && binding.resourceId === resource.id)) &&
      role.permissions.some((permission) => permission.action === action && permission.resourceKind === resource.kind)
    );
  });
  if (bindings.length === 0) return { allowed: false, evidence: found };
  found.bindingIds = sorted(bindings.map((binding) => binding.bindingId));
  found.roleIds = sorted(bindings.map((binding) => binding.roleId));
  found.restrictionIds = sorted(
    model.restrictions
      .filter((restriction) => restriction.action === action && restriction.resourceKind === resource.kind)
      .filter((restriction) => restriction.namespaceId === undefined || restriction.namespaceId === resource.namespaceId)
      .filter((restriction) => restriction.resourceId === undefined || restriction.resourceId === resource.id)
      .map((restriction) => restriction.restrictionId),
  );
  return { allowed: found.restrictionIds.length === 0, evidence: found };
};

/** The judge of a history. */
export const judgeOf = (events: readonly IamEvent[]) => {
  const model = modelOf(events);
  const valid = isValid(model);
  return (identityId: string, action: string, resource: ResourceRef) => judgeIn(model, valid, identityId, action, resource);
};
