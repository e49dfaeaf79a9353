/** The one evaluator of permissions: pure, deny by default, exact permission on exact resource. (iam-auth-audit 2.2, 2.4) */
import type { ResourceKind, ResourceRef } from '../kernel/event.ts';
import type { AccessBinding } from './messages.ts';
import { bindingPlace, membershipKey, restrictionPlace, type Identity, type Policy } from './policy.ts';

export type Action = 'create' | 'read' | 'update' | 'delete' | 'deploy' | 'operate' | 'administer';

export interface Verdict {
  readonly allowed: boolean;
  /** For the audit record only; callers see one generic message. */
  readonly reason: string;
  /** What was found on the way to the verdict, each list sorted and without repetition. */
  readonly evidence: {
    readonly identityId: string;
    /** The Groups that count for this reference. */
    readonly groupIds: readonly string[];
    /** Bindings that grant exactly this permission, and their Roles. */
    readonly bindingIds: readonly string[];
    readonly roleIds: readonly string[];
    readonly restrictionIds: readonly string[];
  };
}

/** Kinds whose references always name their Namespace. */
const namespaced = new Set<ResourceKind>(['configuration', 'secret', 'service_account', 'credential_source', 'agent', 'agent_revision']);

const none: readonly string[] = [];

const deny = (identityId: string, reason: string, evidence: Partial<Verdict['evidence']> = {}): Verdict => ({
  allowed: false,
  reason,
  evidence: { identityId, groupIds: none, bindingIds: none, roleIds: none, restrictionIds: none, ...evidence },
});

const isMalformed = ({ kind, id, namespaceId }: ResourceRef): boolean => {
  if (namespaced.has(kind)) return namespaceId === undefined;
  if (kind === 'installation') return namespaceId !== undefined;
  return kind === 'namespace' && namespaceId !== undefined && namespaceId !== id;
};

/** Groups of a human whose membership holds everywhere or in the reference's Namespace. */
const groupsFor = (policy: Policy, { id, kind }: Identity, { namespaceId }: ResourceRef): readonly string[] => {
  const groupIds = kind === 'principal' ? policy.groupsOfPrincipal.get(id) : undefined;
  if (groupIds === undefined) return none;
  const counts = (groupId: string): boolean => {
    const place = policy.memberships.get(membershipKey({ groupId, principalId: id }))?.namespaceId;
    return place === undefined || place === namespaceId;
  };
  return groupIds.toArray().filter(counts).sort();
};

/** The scopes that cover a reference: everything, its Namespace, the resource in any Namespace, and the resource there. */
const scopesOf = ({ kind, id, namespaceId }: ResourceRef) => {
  const wide = [{}, { resourceKind: kind, resourceId: id }];
  return namespaceId === undefined ? wide : [...wide, { namespaceId }, { namespaceId, resourceKind: kind, resourceId: id }];
};

/** Bindings of these subjects that cover the reference and whose Role holds exactly this permission. */
const bindingsFor = (policy: Policy, subjects: readonly (readonly [AccessBinding['subjectKind'], string])[], action: Action, resource: ResourceRef): readonly AccessBinding[] => {
  const scopes = scopesOf(resource);
  const ids = subjects.flatMap(([subjectKind, subjectId]) => scopes.flatMap((scope) => policy.bindingsByPlace.get(bindingPlace(subjectKind, subjectId, scope))?.toArray() ?? none));
  return ids
    .map((bindingId) => policy.bindings.get(bindingId)!)
    .filter(({ roleId }) => policy.roles.get(roleId)!.permissions.some((permission) => permission.action === action && permission.resourceKind === resource.kind));
};

const restrictionsFor = (policy: Policy, action: Action, resource: ResourceRef): readonly string[] => {
  if (policy.restrictions.isEmpty()) return none;
  const { kind, id, namespaceId } = resource;
  const wide = [{}, { resourceId: id }];
  const scopes = namespaceId === undefined ? wide : [...wide, { namespaceId }, { namespaceId, resourceId: id }];
  return scopes.flatMap((scope) => policy.restrictionsByPlace.get(restrictionPlace(action, kind, scope))?.toArray() ?? none).sort();
};

/** Why an identity is none that may ask for anything in a place; undefined for one that is. (iam-auth-audit 2.4 steps 1, 3 and 4) */
export const identityProblem = (policy: Policy, identityId: string, namespaceId: string | undefined): string | undefined => {
  if (!policy.breaches.isEmpty()) return 'The policy is inconsistent';
  const identity = policy.identities.get(identityId);
  if (identity === undefined) return 'The identity is unknown';
  if (policy.ambiguous.has(identityId)) return 'The identity is ambiguous';
  return identity.namespaceId !== undefined && identity.namespaceId !== namespaceId ? 'The identity belongs to another scope' : undefined;
};

/**
 * Judges one permission on one reference. A Namespace's reference carries its own id as Namespace; a
 * collection reference (for `create`) carries the child kind with the Namespace's id as id.
 */
export const evaluate = (policy: Policy, identityId: string, action: Action, resource: ResourceRef): Verdict => {
  const problem = identityProblem(policy, identityId, resource.namespaceId);
  if (problem !== undefined) return deny(identityId, problem);
  if (isMalformed(resource)) return deny(identityId, 'The reference is malformed');
  const groupIds = groupsFor(policy, policy.identities.get(identityId)!, resource);
  const bindings = bindingsFor(policy, [['identity', identityId], ...groupIds.map((groupId) => ['group', groupId] as const)], action, resource);
  if (bindings.length === 0) return deny(identityId, 'No explicit grant in scope', { groupIds });
  const found = {
    groupIds,
    bindingIds: bindings.map(({ bindingId }) => bindingId).sort(),
    roleIds: [...new Set(bindings.map(({ roleId }) => roleId))].sort(),
    restrictionIds: restrictionsFor(policy, action, resource),
  };
  if (found.restrictionIds.length > 0) return deny(identityId, 'A Restriction applies', found);
  return { allowed: true, reason: 'Granted', evidence: { identityId, ...found } };
};
