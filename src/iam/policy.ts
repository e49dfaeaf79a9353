/** Policy as the `iam` stream has it: principals, roles, bindings, restrictions and keys, folded. (iam-auth-audit 2.3) */
import { Map, Set } from 'immutable';
import type { Envelope } from '../kernel/event.ts';
import type { AccessBinding, IamEvent, InstallationBootstrapped, Restriction, Role, ServiceKey } from './messages.ts';

export interface Identity {
  readonly id: string;
  readonly kind: 'principal' | 'service_principal';
  readonly namespaceId: string | undefined;
  /** Set on the service principal an Agent owns; such an identity never authenticates. */
  readonly agentId: string | undefined;
}

export interface Policy {
  readonly installation: InstallationBootstrapped['data'] & { readonly createdAt: string } | null;
  readonly identities: Map<string, Identity>;
  /** The one service principal of each Agent. */
  readonly principalOfAgent: Map<string, string>;
  readonly roles: Map<string, Role>;
  readonly bindings: Map<string, AccessBinding>;
  readonly bindingsBySubject: Map<string, Set<string>>;
  readonly restrictions: Map<string, Restriction>;
  readonly keys: Map<string, ServiceKey>;
  /** Resources that are gone for good: unusable as the target of a binding. */
  readonly removed: Set<string>;
}

export const noPolicy: Policy = {
  installation: null,
  identities: Map(),
  principalOfAgent: Map(),
  roles: Map(),
  bindings: Map(),
  bindingsBySubject: Map(),
  restrictions: Map(),
  keys: Map(),
  removed: Set(),
};

const withIdentity = (policy: Policy, identity: Identity): Policy => ({
  ...policy,
  identities: policy.identities.set(identity.id, identity),
  principalOfAgent: identity.agentId === undefined ? policy.principalOfAgent : policy.principalOfAgent.set(identity.agentId, identity.id),
});

const withoutIdentity = (policy: Policy, id: string): Policy => {
  const agentId = policy.identities.get(id)?.agentId;
  return {
    ...policy,
    identities: policy.identities.delete(id),
    principalOfAgent: agentId === undefined ? policy.principalOfAgent : policy.principalOfAgent.delete(agentId),
  };
};

const withBinding = (policy: Policy, binding: AccessBinding): Policy => ({
  ...policy,
  bindings: policy.bindings.set(binding.bindingId, binding),
  bindingsBySubject: policy.bindingsBySubject.update(binding.subjectId, Set<string>(), (ids) => ids.add(binding.bindingId)),
});

const withoutBinding = (policy: Policy, bindingId: string): Policy => {
  const binding = policy.bindings.get(bindingId);
  if (binding === undefined) return policy;
  const ids = policy.bindingsBySubject.get(binding.subjectId, Set<string>()).delete(bindingId);
  return {
    ...policy,
    bindings: policy.bindings.delete(bindingId),
    bindingsBySubject: ids.isEmpty() ? policy.bindingsBySubject.delete(binding.subjectId) : policy.bindingsBySubject.set(binding.subjectId, ids),
  };
};

const servicePrincipal = (data: { servicePrincipalId: string; namespaceId?: string; agentId?: string }): Identity => ({
  id: data.servicePrincipalId,
  kind: 'service_principal',
  namespaceId: data.namespaceId,
  agentId: data.agentId,
});

const principal = ({ principalId }: { principalId: string }): Identity => ({
  id: principalId,
  kind: 'principal',
  namespaceId: undefined,
  agentId: undefined,
});

export const evolvePolicy = (policy: Policy, { type, data }: IamEvent, { occurredAt }: Envelope): Policy => {
  switch (type) {
    case 'InstallationBootstrapped': {
      const born = [principal(data.administrator), servicePrincipal(data.servicePrincipal)].reduce(withIdentity, policy);
      return data.bindings.reduce(withBinding, {
        ...born,
        installation: { ...data, createdAt: occurredAt },
        roles: born.roles.set(data.role.roleId, data.role),
        keys: born.keys.set(data.serviceKey.keyId, data.serviceKey),
      });
    }
    case 'PrincipalCreated':
      return withIdentity(policy, principal(data));
    case 'ServicePrincipalCreated':
      return withIdentity(policy, servicePrincipal(data));
    case 'ServicePrincipalRemoved':
      return withoutIdentity(policy, data.servicePrincipalId);
    case 'RoleCreated':
      return { ...policy, roles: policy.roles.set(data.roleId, data) };
    case 'RoleDeleted':
      return { ...policy, roles: policy.roles.delete(data.roleId) };
    case 'AccessBindingCreated':
      return withBinding(policy, data);
    case 'AccessBindingDeleted':
      return withoutBinding(policy, data.bindingId);
    case 'RestrictionCreated':
      return { ...policy, restrictions: policy.restrictions.set(data.restrictionId, data) };
    case 'RestrictionDeleted':
      return { ...policy, restrictions: policy.restrictions.delete(data.restrictionId) };
    case 'ServiceKeyIssued':
      return { ...policy, keys: policy.keys.set(data.keyId, data) };
    case 'ServiceKeyRevoked':
      return { ...policy, keys: policy.keys.delete(data.keyId) };
    case 'AgentBindingsRemoved': {
      const unbound = data.bindingIds.reduce(withoutBinding, withoutIdentity(policy, data.servicePrincipalId));
      return {
        ...unbound,
        keys: unbound.keys.deleteAll(data.keyIds),
        removed: unbound.removed.union([data.agentId, ...data.revisionIds]),
      };
    }
    case 'AgentRestrictionsRemoved':
      return { ...policy, restrictions: policy.restrictions.deleteAll(data.restrictionIds) };
    case 'ResourcePolicyRemoved': {
      const unbound = data.bindingIds.reduce(withoutBinding, policy);
      return { ...unbound, roles: unbound.roles.deleteAll(data.roleIds), removed: unbound.removed.add(data.resourceId) };
    }
  }
};

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
