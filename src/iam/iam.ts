/** The decider of the `iam` stream: one stream decides policy, so two administrators cannot pass each other. (failure scenario 3) */
import type { Decider, Decision } from '../kernel/decider.ts';
import { Refusal } from '../kernel/errors.ts';
import type { AccessBinding, IamEvent, InstallationBootstrapped, Restriction, Role, ServiceKey } from './messages.ts';
import { bindingsNaming, evolvePolicy, noPolicy, restrictionsNaming, type Policy } from './policy.ts';

export type IamCommand =
  | { readonly type: 'BootstrapInstallation'; readonly data: InstallationBootstrapped['data'] }
  | { readonly type: 'CreatePrincipal'; readonly principalId: string; readonly issuer: string; readonly subject: string }
  | { readonly type: 'CreateServicePrincipal'; readonly servicePrincipalId: string; readonly namespaceId?: string; readonly agentId?: string }
  | { readonly type: 'RemoveServicePrincipalOfAgent'; readonly agentId: string }
  | { readonly type: 'CreateRole'; readonly role: Role }
  | { readonly type: 'DeleteRole'; readonly roleId: string }
  | { readonly type: 'CreateAccessBinding'; readonly binding: AccessBinding }
  | { readonly type: 'DeleteAccessBinding'; readonly bindingId: string }
  | { readonly type: 'CreateRestriction'; readonly restriction: Restriction }
  | { readonly type: 'DeleteRestriction'; readonly restrictionId: string }
  | { readonly type: 'IssueServiceKey'; readonly key: ServiceKey }
  | { readonly type: 'RevokeServiceKey'; readonly keyId: string }
  | {
      readonly type: 'RemoveAgentBindings';
      readonly agentId: string;
      readonly namespaceId: string;
      readonly servicePrincipalId: string;
      readonly revisionIds: readonly string[];
    }
  | { readonly type: 'RemoveAgentRestrictions'; readonly agentId: string; readonly namespaceId: string; readonly revisionIds: readonly string[] }
  | { readonly type: 'RemoveResourcePolicy'; readonly resourceKind: string; readonly resourceId: string; readonly namespaceId: string };

const invalid = (path: string, message: string): Refusal => new Refusal('INVALID_REQUEST', message, { details: [{ path, code: 'INVALID_VALUE' }] });
const notFound = (what: string): Refusal => new Refusal('NOT_FOUND', `The ${what} was not found`);

const decideBinding = (policy: Policy, binding: AccessBinding): Decision<IamEvent> => {
  const subject = policy.identities.get(binding.subjectId);
  const role = policy.roles.get(binding.roleId);
  if (subject === undefined || (subject.namespaceId !== undefined && subject.namespaceId !== binding.namespaceId))
    return invalid('/subjectId', 'The subject cannot be bound here');
  if (role === undefined || (role.namespaceId !== undefined && role.namespaceId !== binding.namespaceId))
    return invalid('/roleId', 'The Role cannot be bound here');
  if ((binding.resourceKind === undefined) !== (binding.resourceId === undefined))
    return invalid('/resourceId', 'A binding names both kind and id of its target, or neither');
  if (binding.resourceId !== undefined && policy.removed.has(binding.resourceId)) return invalid('/resourceId', 'The target is gone');
  return [{ type: 'AccessBindingCreated', data: binding }];
};

const decide = (policy: Policy, command: IamCommand): Decision<IamEvent> => {
  if (command.type === 'BootstrapInstallation')
    return policy.installation === null
      ? [{ type: 'InstallationBootstrapped', data: command.data }]
      : new Refusal('RESOURCE_CONFLICT', 'The Installation exists already');
  switch (command.type) {
    case 'CreatePrincipal': {
      const { type: _, ...data } = command;
      return policy.identities.has(data.principalId) ? [] : [{ type: 'PrincipalCreated', data }];
    }
    case 'CreateServicePrincipal': {
      const { type: _, ...data } = command;
      const known = policy.identities.has(data.servicePrincipalId) || (data.agentId !== undefined && policy.principalOfAgent.has(data.agentId));
      return known ? [] : [{ type: 'ServicePrincipalCreated', data }];
    }
    case 'RemoveServicePrincipalOfAgent': {
      const servicePrincipalId = policy.principalOfAgent.get(command.agentId);
      return servicePrincipalId === undefined ? [] : [{ type: 'ServicePrincipalRemoved', data: { servicePrincipalId } }];
    }
    case 'CreateRole':
      return [{ type: 'RoleCreated', data: command.role }];
    case 'DeleteRole': {
      const role = policy.roles.get(command.roleId);
      if (role === undefined) return notFound('Role');
      if (policy.bindings.some(({ roleId }) => roleId === role.roleId)) return new Refusal('RESOURCE_CONFLICT', 'The Role is still bound');
      return [{ type: 'RoleDeleted', data: { roleId: role.roleId, ...(role.namespaceId !== undefined && { namespaceId: role.namespaceId }) } }];
    }
    case 'CreateAccessBinding':
      return decideBinding(policy, command.binding);
    case 'DeleteAccessBinding': {
      const binding = policy.bindings.get(command.bindingId);
      if (binding === undefined) return notFound('access binding');
      const { bindingId, namespaceId } = binding;
      return [{ type: 'AccessBindingDeleted', data: { bindingId, ...(namespaceId !== undefined && { namespaceId }) } }];
    }
    case 'CreateRestriction':
      return [{ type: 'RestrictionCreated', data: command.restriction }];
    case 'DeleteRestriction':
      return policy.restrictions.has(command.restrictionId)
        ? [{ type: 'RestrictionDeleted', data: { restrictionId: command.restrictionId } }]
        : notFound('Restriction');
    case 'IssueServiceKey': {
      const owner = policy.identities.get(command.key.servicePrincipalId);
      if (owner?.kind !== 'service_principal' || owner.agentId !== undefined || owner.namespaceId !== command.key.namespaceId)
        return invalid('/servicePrincipalId', 'No key can be issued for this principal');
      return [{ type: 'ServiceKeyIssued', data: command.key }];
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
      const isNamespace = resourceKind === 'namespace';
      const bindingIds = isNamespace
        ? policy.bindings.valueSeq().filter((binding) => binding.namespaceId === namespaceId || binding.resourceId === resourceId).map(({ bindingId }) => bindingId).toArray()
        : [...bindingsNaming(policy, [resourceId])];
      const roleIds = isNamespace ? policy.roles.valueSeq().filter((role) => role.namespaceId === namespaceId).map(({ roleId }) => roleId).toArray() : [];
      return [{ type: 'ResourcePolicyRemoved', data: { resourceKind, resourceId, namespaceId, bindingIds, roleIds } }];
    }
  }
};

export const iamDecider: Decider<Policy, IamCommand, IamEvent> = { initial: noPolicy, decide, evolve: evolvePolicy };
