/** The rules a policy keeps: the decider refuses what would break one, and a history that broke one denies everything. (iam-auth-audit 2.2, 2.3) */
import type { AccessBinding, Group, GroupMembership, Restriction, Role } from './messages.ts';

interface Lookup<T> {
  get(id: string): T | undefined;
}

/** What the objects of a policy refer to. */
interface Referents {
  readonly identities: Lookup<{ readonly kind: 'principal' | 'service_principal'; readonly namespaceId: string | undefined }>;
  readonly groups: Lookup<Group>;
  readonly roles: Lookup<Role>;
}

/** A broken rule: the member at fault as a JSON Pointer, and one sentence. */
export interface Breach {
  readonly path: string;
  readonly message: string;
}

const breach = (path: string, message: string): Breach => ({ path, message });

/** Kinds a binding can name only together with their Namespace. */
const boundInNamespace: ReadonlySet<string | undefined> = new Set(['configuration', 'preset', 'service_account']);

/** What belongs to one place is bound only there. */
const bound = (what: string, home: string | undefined, namespaceId: string | undefined): string =>
  `A ${what} of ${home ?? 'the Installation'} is bound only there, not in ${namespaceId ?? 'the whole Installation'}`;

/** An ordinary or Agent's principal of a Namespace is bound only there; a human anywhere; a Group only where it belongs. */
const breachOfSubject = ({ identities, groups }: Referents, { subjectKind, subjectId, namespaceId }: AccessBinding): Breach | undefined => {
  if (subjectKind === 'group') {
    const group = groups.get(subjectId);
    if (group === undefined) return breach('/subjectId', 'There is no such Group');
    return group.namespaceId === namespaceId ? undefined : breach('/subjectId', bound('Group', group.namespaceId, namespaceId));
  }
  const identity = identities.get(subjectId);
  if (identity === undefined) return breach('/subjectId', 'There is no such principal');
  const { namespaceId: home } = identity;
  return home === undefined || home === namespaceId ? undefined : breach('/subjectId', bound('service principal', home, namespaceId));
};

export const breachOfBinding = (policy: Referents, binding: AccessBinding): Breach | undefined => {
  const { roleId, namespaceId, resourceKind, resourceId } = binding;
  const unfit = breachOfSubject(policy, binding);
  if (unfit !== undefined) return unfit;
  const role = policy.roles.get(roleId);
  if (role === undefined) return breach('/roleId', 'There is no such Role');
  if (role.namespaceId !== undefined && role.namespaceId !== namespaceId) return breach('/roleId', bound('Role', role.namespaceId, namespaceId));
  if ((resourceKind === undefined) !== (resourceId === undefined)) return breach('/resourceId', 'A binding names both kind and id of its target, or neither');
  if (namespaceId === undefined && boundInNamespace.has(resourceKind)) return breach('/resourceKind', `A binding on a ${resourceKind!.replaceAll('_', ' ')} names the Namespace`);
  return undefined;
};

/** A binding to one resource of one Namespace. */
export type ExactBinding = AccessBinding & { readonly namespaceId: string; readonly resourceKind: string; readonly resourceId: string };

const named = (permissions: Role['permissions']): string => permissions.map(({ resourceKind, action }) => `${resourceKind}:${action}`).join(', ');

/** What callers may bind: a Role and a principal of the Namespace, or a human, where the Role conveys something. (iam-auth-audit 4.2) */
export const breachOfExactBinding = (policy: Referents, { namespaceId, subjectId, roleId, resourceKind }: ExactBinding): Breach | undefined => {
  const subject = policy.identities.get(subjectId);
  if (subject === undefined) return breach('/subjectId', policy.groups.get(subjectId) === undefined ? 'There is no such principal' : 'A Group is bound by the operator of the host alone');
  if (subject.kind === 'service_principal' && subject.namespaceId !== namespaceId) return breach('/subjectId', 'A service principal is bound only in its own Namespace');
  const role = policy.roles.get(roleId);
  if (role?.namespaceId !== namespaceId) return breach('/roleId', 'The Role was not found in this Namespace');
  const creating = role.permissions.filter(({ action }) => action === 'create');
  if (creating.length > 0) return breach('/roleId', `A binding to one resource never conveys ${named(creating)}`);
  if (role.permissions.some((permission) => permission.resourceKind === resourceKind)) return undefined;
  return breach('/roleId', `The Role permits nothing on this kind of resource, only ${named(role.permissions)}`);
};

export const breachOfRole = ({ permissions }: Role): Breach | undefined => {
  const distinct = new Set(permissions.map(({ action, resourceKind }) => `${resourceKind}:${action}`));
  return distinct.size === permissions.length ? undefined : breach('/permissions', 'The permissions of a Role are distinct');
};

export const breachOfRestriction = ({ namespaceId, resourceKind, resourceId }: Restriction): Breach | undefined => {
  if (namespaceId === undefined) return undefined;
  if (resourceKind === 'installation') return breach('/namespaceId', 'A Restriction on the Installation names no Namespace');
  if (resourceKind === 'namespace' && resourceId !== undefined && resourceId !== namespaceId) return breach('/resourceId', 'A Restriction on a Namespace names it only once');
  return undefined;
};

export const breachOfMembership = ({ identities, groups }: Referents, { groupId, principalId, namespaceId }: GroupMembership): Breach | undefined => {
  const group = groups.get(groupId);
  if (group === undefined || group.namespaceId !== namespaceId) return breach('/groupId', 'The Group does not belong here');
  return identities.get(principalId)?.kind === 'principal' ? undefined : breach('/principalId', 'Members of a Group are human principals');
};
