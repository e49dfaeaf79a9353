/** The decider of the `iam` stream: one stream decides policy, so two administrators cannot pass each other. (failure scenario 3) */
import type { Decider, Decision } from '../kernel/decider.ts';
import { Refusal } from '../kernel/errors.ts';
import type { AccessBinding, Group, IamEvent, InstallationBootstrapped, Restriction, Role, ServiceKey } from './messages.ts';
import { accountKey, bindingsNaming, bindingsOf, evolvePolicy, membersOf, membershipKey, noPolicy, restrictionsNaming, type Policy } from './policy.ts';
import { breachOfBinding, breachOfExactBinding, breachOfMembership, breachOfRestriction, breachOfRole, type Breach, type ExactBinding } from './rules.ts';

export type IamCommand =
  | { readonly type: 'BootstrapInstallation'; readonly data: InstallationBootstrapped['data'] }
  | { readonly type: 'CreatePrincipal'; readonly principalId: string; readonly issuer: string; readonly subject: string; /** Of the Installation. */ readonly role?: { readonly bindingId: string; readonly roleId: string } }
  | { readonly type: 'AbandonPrincipalCreation'; readonly principalId: string }
  | { readonly type: 'ReplacePassword'; readonly principalId: string; readonly passwordId: string }
  | { readonly type: 'CreateServicePrincipal'; readonly servicePrincipalId: string; readonly namespaceId?: string; readonly agentId?: string }
  | { readonly type: 'RemoveServicePrincipalOfAgent'; readonly agentId: string }
  | { readonly type: 'CreateRole'; readonly role: Role }
  /** With a Namespace, only what belongs to it. */
  | { readonly type: 'DeleteRole'; readonly roleId: string; readonly namespaceId?: string }
  | { readonly type: 'CreateAccessBinding'; readonly binding: AccessBinding }
  /** As a caller may: to one resource of the Namespace of its Role. */
  | { readonly type: 'BindResource'; readonly binding: ExactBinding }
  /** With a Namespace, only what belongs to it. */
  | { readonly type: 'DeleteAccessBinding'; readonly bindingId: string; readonly namespaceId?: string }
  | { readonly type: 'CreateRestriction'; readonly restriction: Restriction }
  | { readonly type: 'DeleteRestriction'; readonly restrictionId: string }
  | { readonly type: 'CreateGroup'; readonly group: Group }
  | { readonly type: 'DeleteGroup'; readonly groupId: string }
  | { readonly type: 'CreateGroupMembership'; readonly groupId: string; readonly principalId: string }
  | { readonly type: 'DeleteGroupMembership'; readonly groupId: string; readonly principalId: string }
  | { readonly type: 'IssueServiceKey'; readonly key: ServiceKey }
  | { readonly type: 'AbandonServiceKey'; readonly keyId: string }
  | { readonly type: 'RevokeServiceKey'; readonly keyId: string }
  | {
      readonly type: 'RemoveAgentBindings';
      readonly agentId: string;
      readonly namespaceId: string;
      readonly servicePrincipalId: string;
      readonly revisionIds: readonly string[];
    }
  | { readonly type: 'RemoveAgentRestrictions'; readonly agentId: string; readonly namespaceId: string; readonly revisionIds: readonly string[] }
  | { readonly type: 'RemoveResourcePolicy'; readonly resourceKind: string; readonly resourceId: string; readonly namespaceId: string }
  /** Of a Namespace that policy has forgotten: these of its service principals, with their keys. */
  | { readonly type: 'RemoveServicePrincipals'; readonly namespaceId: string; readonly servicePrincipalIds: readonly string[] };

/** Refuses one member of what was asked for. */
export const invalid = (path: string, message: string): Refusal => new Refusal('INVALID_REQUEST', message, { details: [{ path, code: 'INVALID_VALUE' }] });
const notFound = (what: string): Refusal => new Refusal('NOT_FOUND', `The ${what} was not found`);

const conflict = (message: string): Refusal => new Refusal('RESOURCE_CONFLICT', message);
const givenUp = (): Refusal => conflict('The creation took too long and was given up');

const gone = (): Refusal => invalid('/namespaceId', 'The Namespace is gone');

/** Creates what is new, keeps every rule, and has its place among what is not gone. */
const decideCreation = (policy: Policy, exists: boolean, namespaceId: string | undefined, breach: Breach | undefined, created: IamEvent): Decision<IamEvent> => {
  if (exists) return conflict('The id is in use');
  if (breach !== undefined) return invalid(breach.path, breach.message);
  if (namespaceId !== undefined && policy.removed.has(namespaceId)) return gone();
  return [created];
};

const unbind = ({ bindingId, namespaceId }: AccessBinding): IamEvent => ({ type: 'AccessBindingDeleted', data: { bindingId, ...(namespaceId !== undefined && { namespaceId }) } });

/** Its bindings and keys end with it. */
const removePrincipal = (policy: Policy, servicePrincipalId: string): readonly IamEvent[] => [
  ...bindingsOf(policy, servicePrincipalId).map(unbind),
  ...[...policy.keys.values()].filter((key) => key.servicePrincipalId === servicePrincipalId).map(({ keyId }): IamEvent => ({ type: 'ServiceKeyRevoked', data: { keyId, servicePrincipalId } })),
  { type: 'ServicePrincipalRemoved', data: { servicePrincipalId } },
];

const isUnder = (found: { readonly namespaceId?: string }, namespaceId: string | undefined): boolean => namespaceId === undefined || found.namespaceId === namespaceId;

const decide = (policy: Policy, command: IamCommand): Decision<IamEvent> => {
  if (command.type === 'BootstrapInstallation')
    return policy.installation === null
      ? [{ type: 'InstallationBootstrapped', data: command.data }]
      : conflict('The Installation exists already');
  switch (command.type) {
    case 'CreatePrincipal': {
      const { type: _, role, ...data } = command;
      if (policy.identities.has(data.principalId)) return [];
      if (policy.removed.has(data.principalId)) return givenUp();
      if (policy.principalOfAccount.has(accountKey(data))) return conflict('The account has a principal already');
      const created: IamEvent = { type: 'PrincipalCreated', data };
      if (role === undefined) return [created];
      const { roleId, bindingId } = role;
      const isOfInstallation = policy.roles.has(roleId) && policy.roles.get(roleId)!.namespaceId === undefined;
      if (!isOfInstallation) return invalid('/roleId', 'The Role is none of the Installation');
      return [created, { type: 'AccessBindingCreated', data: { bindingId, subjectKind: 'identity', subjectId: data.principalId, roleId } }];
    }
    case 'AbandonPrincipalCreation': {
      const { principalId } = command;
      return policy.identities.has(principalId) || policy.removed.has(principalId) ? [] : [{ type: 'PrincipalCreationAbandoned', data: { principalId } }];
    }
    case 'ReplacePassword': {
      const { type: _, ...data } = command;
      return policy.identities.get(data.principalId)?.kind === 'principal' ? [{ type: 'PasswordReplaced', data }] : notFound('principal');
    }
    case 'CreateServicePrincipal': {
      const { type: _, ...data } = command;
      const known = policy.identities.has(data.servicePrincipalId) || (data.agentId !== undefined && policy.principalOfAgent.has(data.agentId));
      if (known) return [];
      if (data.namespaceId !== undefined && policy.removed.has(data.namespaceId)) return gone();
      if (data.agentId !== undefined && data.namespaceId === undefined) return invalid('/namespaceId', 'The principal of an Agent belongs to a Namespace');
      return [{ type: 'ServicePrincipalCreated', data }];
    }
    case 'RemoveServicePrincipalOfAgent': {
      const servicePrincipalId = policy.principalOfAgent.get(command.agentId);
      return servicePrincipalId === undefined ? [] : removePrincipal(policy, servicePrincipalId);
    }
    case 'CreateRole': {
      const { role } = command;
      return decideCreation(policy, policy.roles.has(role.roleId), role.namespaceId, breachOfRole(role), { type: 'RoleCreated', data: role });
    }
    case 'DeleteRole': {
      const role = policy.roles.get(command.roleId);
      if (role === undefined || !isUnder(role, command.namespaceId)) return notFound('Role');
      if (policy.bindings.some(({ roleId }) => roleId === role.roleId)) return conflict('The Role is still bound');
      return [{ type: 'RoleDeleted', data: { roleId: role.roleId, ...(role.namespaceId !== undefined && { namespaceId: role.namespaceId }) } }];
    }
    case 'CreateAccessBinding': {
      const { binding } = command;
      if (binding.resourceId !== undefined && policy.removed.has(binding.resourceId)) return invalid('/resourceId', 'The target is gone');
      return decideCreation(policy, policy.bindings.has(binding.bindingId), binding.namespaceId, breachOfBinding(policy, binding), { type: 'AccessBindingCreated', data: binding });
    }
    case 'BindResource': {
      const { binding } = command;
      if (policy.removed.has(binding.resourceId)) return invalid('/resourceId', 'The target is gone');
      return decideCreation(policy, policy.bindings.has(binding.bindingId), binding.namespaceId, breachOfExactBinding(policy, binding), { type: 'AccessBindingCreated', data: binding });
    }
    case 'DeleteAccessBinding': {
      const binding = policy.bindings.get(command.bindingId);
      return binding === undefined || !isUnder(binding, command.namespaceId) ? notFound('access binding') : [unbind(binding)];
    }
    case 'CreateRestriction': {
      const { restriction } = command;
      const exists = policy.restrictions.has(restriction.restrictionId);
      return decideCreation(policy, exists, restriction.namespaceId, breachOfRestriction(restriction), { type: 'RestrictionCreated', data: restriction });
    }
    case 'DeleteRestriction':
      return policy.restrictions.has(command.restrictionId)
        ? [{ type: 'RestrictionDeleted', data: { restrictionId: command.restrictionId } }]
        : notFound('Restriction');
    case 'CreateGroup': {
      const { group } = command;
      return decideCreation(policy, policy.groups.has(group.groupId), group.namespaceId, undefined, { type: 'GroupCreated', data: group });
    }
    case 'DeleteGroup': {
      const group = policy.groups.get(command.groupId);
      if (group === undefined) return notFound('Group');
      if (policy.bindingsBySubject.has(group.groupId)) return conflict('The Group is still bound');
      const { groupId, namespaceId } = group;
      return [{ type: 'GroupDeleted', data: { groupId, ...(namespaceId !== undefined && { namespaceId }), principalIds: [...membersOf(policy, groupId)] } }];
    }
    case 'CreateGroupMembership': {
      const group = policy.groups.get(command.groupId);
      if (group === undefined) return notFound('Group');
      const { groupId, namespaceId } = group;
      const membership = { groupId, ...(namespaceId !== undefined && { namespaceId }), principalId: command.principalId };
      if (policy.memberships.has(membershipKey(membership))) return [];
      return decideCreation(policy, false, namespaceId, breachOfMembership(policy, membership), { type: 'GroupMembershipCreated', data: membership });
    }
    case 'DeleteGroupMembership': {
      const membership = policy.memberships.get(membershipKey(command));
      return membership === undefined ? notFound('membership') : [{ type: 'GroupMembershipDeleted', data: membership }];
    }
    case 'IssueServiceKey': {
      const owner = policy.identities.get(command.key.servicePrincipalId);
      if (owner?.kind !== 'service_principal' || owner.agentId !== undefined) return invalid('/servicePrincipalId', 'No key can be issued for this principal');
      if (owner.namespaceId !== command.key.namespaceId) return invalid('/namespaceId', 'A key has the scope of its principal');
      if (owner.namespaceId !== undefined && policy.removed.has(owner.namespaceId)) return gone();
      if (policy.removed.has(command.key.keyId)) return givenUp();
      return [{ type: 'ServiceKeyIssued', data: command.key }];
    }
    case 'AbandonServiceKey': {
      const { keyId } = command;
      return policy.keys.has(keyId) || policy.removed.has(keyId) ? [] : [{ type: 'ServiceKeyAbandoned', data: { keyId } }];
    }
    case 'RevokeServiceKey': {
      const key = policy.keys.get(command.keyId);
      if (key === undefined) return notFound('service key');
      return [{ type: 'ServiceKeyRevoked', data: { keyId: key.keyId, servicePrincipalId: key.servicePrincipalId } }];
    }
    case 'RemoveAgentBindings': {
      const { agentId, namespaceId, servicePrincipalId, revisionIds } = command;
      if (policy.removed.has(agentId)) return [];
      const bindingIds = [...bindingsNaming(policy, [agentId, ...revisionIds], servicePrincipalId)];
      const keyIds = policy.keys.valueSeq().filter((key) => key.servicePrincipalId === servicePrincipalId).map(({ keyId }) => keyId).toArray();
      const data = { agentId, namespaceId, servicePrincipalId, revisionIds: [...revisionIds], bindingIds, keyIds };
      return [{ type: 'AgentBindingsRemoved', data }];
    }
    case 'RemoveAgentRestrictions': {
      const { agentId, namespaceId, revisionIds } = command;
      const restrictionIds = [...restrictionsNaming(policy, [agentId, ...revisionIds])];
      return restrictionIds.length === 0 ? [] : [{ type: 'AgentRestrictionsRemoved', data: { agentId, namespaceId, restrictionIds } }];
    }
    case 'RemoveResourcePolicy': {
      const { resourceKind, resourceId, namespaceId } = command;
      if (policy.removed.has(resourceId)) return [];
      const resource = { resourceKind, resourceId, namespaceId };
      if (resourceKind !== 'namespace') return [{ type: 'ResourcePolicyRemoved', data: { ...resource, bindingIds: [...bindingsNaming(policy, [resourceId])], roleIds: [] } }];
      const isHere = (one: { readonly namespaceId?: string; readonly resourceId?: string }) => one.namespaceId === namespaceId || one.resourceId === resourceId;
      const data = {
        ...resource,
        bindingIds: policy.bindings.valueSeq().filter(isHere).map(({ bindingId }) => bindingId).toArray(),
        roleIds: policy.roles.valueSeq().filter(isHere).map(({ roleId }) => roleId).toArray(),
        groupIds: policy.groups.valueSeq().filter(isHere).map(({ groupId }) => groupId).toArray(),
        restrictionIds: policy.restrictions.valueSeq().filter(isHere).map(({ restrictionId }) => restrictionId).toArray(),
      };
      return [{ type: 'ResourcePolicyRemoved', data }];
    }
    case 'RemoveServicePrincipals': {
      const { namespaceId, servicePrincipalIds } = command;
      const isOfNamespace = (id: string) => policy.identities.get(id)?.namespaceId === namespaceId;
      return policy.removed.has(namespaceId) ? servicePrincipalIds.filter(isOfNamespace).flatMap((id) => removePrincipal(policy, id)) : [];
    }
  }
};

export const iamDecider: Decider<Policy, IamCommand, IamEvent> = { initial: noPolicy, decide, evolve: evolvePolicy };
