/** The one evaluator of permissions: pure, deny by default, exact permission on exact resource. (iam-auth-audit 2.2, 2.4) */
import type { ResourceKind, ResourceRef } from '../kernel/event.ts';
import type { AccessBinding, Restriction } from './messages.ts';
import type { Identity, Policy } from './policy.ts';

export type Action = 'create' | 'read' | 'update' | 'delete' | 'deploy' | 'operate' | 'administer';

export interface Verdict {
  readonly allowed: boolean;
  /** For the audit record only; callers see one generic message. */
  readonly reason: string;
  readonly evidence: {
    readonly identityId: string;
    readonly bindingIds: readonly string[];
    readonly roleIds: readonly string[];
    readonly restrictionIds: readonly string[];
  };
}

/** Kinds whose references always name their Namespace. */
const namespaced = new Set<ResourceKind>(['configuration', 'secret', 'service_account', 'credential_source', 'agent', 'agent_revision']);

const deny = (identityId: string, reason: string, restrictionIds: readonly string[] = []): Verdict => ({
  allowed: false,
  reason,
  evidence: { identityId, bindingIds: [], roleIds: [], restrictionIds },
});

const bindingMatches = (binding: AccessBinding, resource: ResourceRef): boolean =>
  (binding.namespaceId === undefined || binding.namespaceId === resource.namespaceId) &&
  (binding.resourceKind === undefined || (binding.resourceKind === resource.kind && binding.resourceId === resource.id));

const restrictionMatches = (restriction: Restriction, action: Action, resource: ResourceRef): boolean =>
  restriction.action === action &&
  restriction.resourceKind === resource.kind &&
  (restriction.namespaceId === undefined || restriction.namespaceId === resource.namespaceId) &&
  (restriction.resourceId === undefined || restriction.resourceId === resource.id);

/** A binding is consistent when its Role exists and belongs to the Installation or to the binding's Namespace. */
const consistent = (policy: Policy, binding: AccessBinding): boolean => {
  const role = policy.roles.get(binding.roleId);
  return role !== undefined && (role.namespaceId === undefined || role.namespaceId === binding.namespaceId);
};

/** Whether the whole policy is sound; an inconsistent one denies everything. (AZ-203) */
const soundPolicies = new WeakMap<Policy['bindings'], { roles: Policy['roles']; sound: boolean }>();
const isSound = (policy: Policy): boolean => {
  const known = soundPolicies.get(policy.bindings);
  if (known !== undefined && known.roles === policy.roles) return known.sound;
  const sound = policy.bindings.every((binding) => consistent(policy, binding));
  soundPolicies.set(policy.bindings, { roles: policy.roles, sound });
  return sound;
};

const inScope = (identity: Identity, resource: ResourceRef): boolean =>
  identity.namespaceId === undefined || identity.namespaceId === resource.namespaceId;

/**
 * Judges one permission on one reference. A Namespace's reference carries its own id as Namespace; a
 * collection reference (for `create`) carries the child kind with the Namespace's id as id.
 */
export const evaluate = (policy: Policy, identityId: string, action: Action, resource: ResourceRef): Verdict => {
  if (!isSound(policy)) return deny(identityId, 'The policy is inconsistent');
  const identity = policy.identities.get(identityId);
  if (identity === undefined) return deny(identityId, 'The identity is unknown');
  if (namespaced.has(resource.kind) && resource.namespaceId === undefined) return deny(identityId, 'The reference names no Namespace');
  if (!inScope(identity, resource)) return deny(identityId, 'The identity belongs to another scope');
  const bindings = (policy.bindingsBySubject.get(identityId)?.toArray() ?? [])
    .map((bindingId) => policy.bindings.get(bindingId)!)
    .filter(
      (binding) =>
        bindingMatches(binding, resource) &&
        policy.roles.get(binding.roleId)!.permissions.some((permission) => permission.action === action && permission.resourceKind === resource.kind),
    );
  if (bindings.length === 0) return deny(identityId, 'No explicit grant in scope');
  const restrictionIds = policy.restrictions
    .valueSeq()
    .filter((restriction) => restrictionMatches(restriction, action, resource))
    .map(({ restrictionId }) => restrictionId)
    .toArray()
    .sort();
  if (restrictionIds.length > 0) return deny(identityId, 'A Restriction applies', restrictionIds);
  return {
    allowed: true,
    reason: 'Granted',
    evidence: {
      identityId,
      bindingIds: bindings.map(({ bindingId }) => bindingId).sort(),
      roleIds: [...new Set(bindings.map(({ roleId }) => roleId))].sort(),
      restrictionIds: [],
    },
  };
};
