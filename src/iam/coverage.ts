/** Whether one identity holds all that another may do: who hands out its keys would otherwise gain what he was never granted. (iam-auth-audit 2.4) */
import type { Permission } from './messages.ts';
import { bindingsOf, type Policy } from './policy.ts';

/** One permission and how far it reaches: undefined is everywhere. */
interface Reach {
  readonly permission: Permission;
  readonly namespaceId: string | undefined;
  /** Of the permission's kind. */
  readonly resourceId: string | undefined;
}

/** What the bindings of an identity and of its Groups convey; an exact one conveys only the permissions of its target's kind. */
const reachesOf = (policy: Policy, identityId: string): readonly Reach[] =>
  bindingsOf(policy, identityId).flatMap(({ roleId, namespaceId, resourceKind, resourceId }) => {
    const conveyed = policy.roles.get(roleId)?.permissions.filter((permission) => resourceKind === undefined || permission.resourceKind === resourceKind) ?? [];
    return conveyed.map((permission) => ({ permission, namespaceId, resourceId }));
  });

const includes = (wide: Reach, narrow: Reach): boolean =>
  wide.permission.action === narrow.permission.action &&
  wide.permission.resourceKind === narrow.permission.resourceKind &&
  (wide.namespaceId === undefined || wide.namespaceId === narrow.namespaceId) &&
  (wide.resourceId === undefined || wide.resourceId === narrow.resourceId);

/** Every grant of the other at the same or a broader scope; Restrictions do not count. */
export const covers = (policy: Policy, identityId: string, otherId: string): boolean => {
  const own = reachesOf(policy, identityId);
  return reachesOf(policy, otherId).every((needed) => own.some((held) => includes(held, needed)));
};

/** Every permission of a Role that is bound in the whole Installation. */
export const coversRole = (policy: Policy, identityId: string, roleId: string): boolean => {
  const own = reachesOf(policy, identityId);
  const needed = policy.roles.get(roleId)?.permissions ?? [];
  return needed.every((permission) => own.some((held) => includes(held, { permission, namespaceId: undefined, resourceId: undefined })));
};
