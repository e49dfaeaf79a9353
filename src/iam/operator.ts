/** What the operator of a host does to policy by himself: principals, keys, Groups, Roles, bindings as wide as the Installation, Restrictions. No HTTP route reaches this far. (iam-auth-audit 2.3, 8.1) */
import { iam } from '../aggregates.ts';
import type { Decision } from '../kernel/decider.ts';
import { Refusal } from '../kernel/errors.ts';
import type { AuditRecord, ResourceKind, ResourceRef } from '../kernel/event.ts';
import { newId } from '../kernel/ids.ts';
import { timestamp, type Clock } from '../runtime/clock.ts';
import type { Streams } from '../runtime/streams.ts';
import { ref } from './authorizer.ts';
import type { IamCommand } from './iam.ts';
import { newKey, type KeyRows } from './keys.ts';
import { keepingAdministrator, type ReadWaysIn } from './last-administrator.ts';
import type { IamEvent } from './messages.ts';
import type { GrantedPermission } from './permissions.ts';
import type { Policy } from './policy.ts';

/** Where something holds: everywhere, in one Namespace, or on one resource. */
export interface Scope {
  readonly namespaceId?: string;
  readonly resourceKind?: ResourceKind;
  readonly resourceId?: string;
}

export interface IssuedKey {
  readonly keyId: string;
  /** Shown here and never again. */
  readonly text: string;
  readonly expiresAt: string;
}

/**
 * Every method appends one audited event of the actor `operator` to the `iam` stream.
 * @throws Refusal INVALID_REQUEST, NOT_FOUND, RESOURCE_CONFLICT as policy decides, and for what takes the last administrator away
 */
export interface Operator {
  /** An ordinary service principal, of one Namespace or of the Installation. Answers its id. */
  createServicePrincipal(place?: { readonly namespaceId?: string | undefined }): Promise<string>;
  /** A key frozen to the scope of its principal. */
  issueKey(servicePrincipalId: string, key: { readonly name: string; readonly lifetimeMs: number }): Promise<IssuedKey>;
  revokeKey(keyId: string): Promise<void>;
  /** Answers the Role's id. */
  createRole(permissions: readonly GrantedPermission[], place?: { readonly namespaceId?: string | undefined; readonly name?: string | undefined }): Promise<string>;
  deleteRole(roleId: string): Promise<void>;
  /** Of an identity or a Group. Answers the binding's id. */
  bind(subjectId: string, roleId: string, scope: Scope): Promise<string>;
  unbind(bindingId: string): Promise<void>;
  /** Denies everybody, administrators included. Answers the Restriction's id. */
  restrict(permission: GrantedPermission, scope: Pick<Scope, 'namespaceId' | 'resourceId'>): Promise<string>;
  unrestrict(restrictionId: string): Promise<void>;
  /** Answers the Group's id. */
  createGroup(name: string, place?: { readonly namespaceId?: string | undefined }): Promise<string>;
  deleteGroup(groupId: string): Promise<void>;
  addMember(groupId: string, principalId: string): Promise<void>;
  removeMember(groupId: string, principalId: string): Promise<void>;
}

const actor = { principalId: 'operator', kind: 'system' } as const;

export const createOperator = ({
  streams,
  keyRows,
  waysIn,
  clock,
  installationId,
  mayLockOut = false,
}: {
  readonly streams: Streams;
  readonly keyRows: KeyRows;
  readonly waysIn: ReadWaysIn;
  readonly clock: Clock;
  readonly installationId: string;
  /** Whether a change is made although it takes the last administrator away. */
  readonly mayLockOut?: boolean;
}): Operator => {
  const installation = ref.installation(installationId);
  const placeOf = (namespaceId: string | undefined): ResourceRef => (namespaceId === undefined ? installation : ref.namespace(namespaceId));

  const targetOf = ({ namespaceId, resourceKind, resourceId }: Scope): ResourceRef =>
    resourceKind === undefined || resourceId === undefined ? placeOf(namespaceId) : { kind: resourceKind, id: resourceId, ...(namespaceId !== undefined && { namespaceId }) };

  const policy = async () => (await streams.load(iam, '')).state;

  const decider = async (command: IamCommand): Promise<(before: Policy) => Decision<IamEvent>> => {
    if (mayLockOut) return (before) => iam.decider.decide(before, command);
    const kept = { installationId, waysIn: await waysIn(), nowMs: clock.now() };
    return (before) => keepingAdministrator(before, iam.decider.decide(before, command), kept);
  };

  const change = async (command: IamCommand, action: string, resource: ResourceRef, details: object): Promise<void> => {
    const audit: AuditRecord = { kind: 'mutation', action: `openclaw.${action}`, resource, outcome: 'success', details: { ...details } };
    await streams.execute(iam, '', await decider(command), { actor, requestId: null, correlationId: newId('opr'), causationId: null, policyRevision: null, audit });
  };

  const changeMember = async (type: 'CreateGroupMembership' | 'DeleteGroupMembership', groupId: string, principalId: string): Promise<void> => {
    const group = (await policy()).groups.get(groupId);
    const action = type === 'CreateGroupMembership' ? 'iam.group_memberships.create' : 'iam.group_memberships.delete';
    await change({ type, groupId, principalId }, action, placeOf(group?.namespaceId), { groupId, principalId });
  };

  return {
    createServicePrincipal: async ({ namespaceId } = {}) => {
      const servicePrincipalId = newId('spn');
      const place = namespaceId === undefined ? {} : { namespaceId };
      await change({ type: 'CreateServicePrincipal', servicePrincipalId, ...place }, 'iam.service_principals.create', placeOf(namespaceId), { servicePrincipalId });
      return servicePrincipalId;
    },

    issueKey: async (servicePrincipalId, { name, lifetimeMs }) => {
      const owner = (await policy()).identities.get(servicePrincipalId);
      if (owner === undefined) throw new Refusal('NOT_FOUND', 'The service principal was not found');
      const { keyId, text, secretHash } = newKey();
      const expiresAt = timestamp(clock.now() + lifetimeMs);
      const place = owner.namespaceId === undefined ? {} : { namespaceId: owner.namespaceId };
      await keyRows.insert(keyId, servicePrincipalId, secretHash);
      try {
        const key = { keyId, servicePrincipalId, name, expiresAt, ...place };
        await change({ type: 'IssueServiceKey', key }, 'auth.service-keys.create', placeOf(owner.namespaceId), { keyId, servicePrincipalId, expiresAt });
      } catch (error) {
        if (error instanceof Refusal && error.kind !== 'unavailable') await keyRows.erase(keyId);
        throw error;
      }
      return { keyId, text, expiresAt };
    },

    revokeKey: async (keyId) => {
      const key = (await policy()).keys.get(keyId);
      await change({ type: 'RevokeServiceKey', keyId }, 'auth.service-keys.revoke', placeOf(key?.namespaceId), { keyId });
      await keyRows.erase(keyId);
    },

    createRole: async (permissions, { namespaceId, name } = {}) => {
      const roleId = newId('role');
      const role = { roleId, permissions: permissions.map(({ action, resourceKind }) => ({ action, resourceKind })), ...(namespaceId !== undefined && { namespaceId }), ...(name !== undefined && { name }) };
      await change({ type: 'CreateRole', role }, 'iam.roles.create', placeOf(namespaceId), { roleId, permissions: role.permissions });
      return roleId;
    },

    deleteRole: async (roleId) => {
      const role = (await policy()).roles.get(roleId);
      await change({ type: 'DeleteRole', roleId }, 'iam.roles.delete', placeOf(role?.namespaceId), { roleId });
    },

    bind: async (subjectId, roleId, scope) => {
      const bindingId = newId('bnd');
      const subjectKind = (await policy()).groups.has(subjectId) ? 'group' : 'identity';
      const binding = { bindingId, subjectKind, subjectId, roleId, ...scope } as const;
      await change({ type: 'CreateAccessBinding', binding }, 'iam.access_bindings.create', targetOf(scope), { bindingId, subjectKind, subjectId, roleId });
      return bindingId;
    },

    unbind: async (bindingId) => {
      const { subjectId, roleId, ...scope } = (await policy()).bindings.get(bindingId) ?? {};
      await change({ type: 'DeleteAccessBinding', bindingId }, 'iam.access_bindings.delete', targetOf(scope as Scope), { bindingId, subjectId, roleId });
    },

    restrict: async ({ action, resourceKind }, scope) => {
      const restrictionId = newId('rst');
      const restriction = { restrictionId, action, resourceKind, ...scope };
      await change({ type: 'CreateRestriction', restriction }, 'iam.restrictions.create', targetOf({ resourceKind, ...scope }), { restrictionId, action, resourceKind });
      return restrictionId;
    },

    unrestrict: async (restrictionId) => {
      const restriction = (await policy()).restrictions.get(restrictionId);
      await change({ type: 'DeleteRestriction', restrictionId }, 'iam.restrictions.delete', targetOf((restriction ?? {}) as Scope), { restrictionId });
    },

    createGroup: async (name, { namespaceId } = {}) => {
      const groupId = newId('grp');
      const group = { groupId, name, ...(namespaceId !== undefined && { namespaceId }) };
      await change({ type: 'CreateGroup', group }, 'iam.groups.create', placeOf(namespaceId), { groupId });
      return groupId;
    },

    deleteGroup: async (groupId) => {
      const group = (await policy()).groups.get(groupId);
      await change({ type: 'DeleteGroup', groupId }, 'iam.groups.delete', placeOf(group?.namespaceId), { groupId });
    },

    addMember: (groupId, principalId) => changeMember('CreateGroupMembership', groupId, principalId),
    removeMember: (groupId, principalId) => changeMember('DeleteGroupMembership', groupId, principalId),
  };
};
