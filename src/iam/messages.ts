/** Events of the one `iam` stream: who exists, what they may do, and the birth of the Installation. (architecture section 3) */
import Type, { type Static } from 'typebox';
import { createCodec, defineEvent, type EventOf } from '../kernel/codec.ts';

const id = Type.String();
const optionalId = Type.Optional(Type.String());

export const permissionShape = Type.Object({ action: Type.String(), resourceKind: Type.String() });
export type Permission = Static<typeof permissionShape>;

const roleShape = Type.Object({
  roleId: id,
  namespaceId: optionalId,
  name: Type.Optional(Type.String()),
  permissions: Type.Array(permissionShape),
});
export type Role = Static<typeof roleShape>;

const bindingShape = Type.Object({
  bindingId: id,
  namespaceId: optionalId,
  subjectKind: Type.Union([Type.Literal('identity'), Type.Literal('group')]),
  subjectId: id,
  roleId: id,
  resourceKind: optionalId,
  resourceId: optionalId,
});
export type AccessBinding = Static<typeof bindingShape>;

const restrictionShape = Type.Object({
  restrictionId: id,
  namespaceId: optionalId,
  action: Type.String(),
  resourceKind: Type.String(),
  resourceId: optionalId,
});
export type Restriction = Static<typeof restrictionShape>;

const groupShape = Type.Object({ groupId: id, namespaceId: optionalId, name: Type.String() });
export type Group = Static<typeof groupShape>;

const membershipShape = Type.Object({ groupId: id, namespaceId: optionalId, principalId: id });
export type GroupMembership = Static<typeof membershipShape>;

const principalShape = Type.Object({ principalId: id, issuer: Type.String(), subject: id });
const servicePrincipalShape = Type.Object({ servicePrincipalId: id, namespaceId: optionalId, agentId: optionalId });
const serviceKeyShape = Type.Object({
  keyId: id,
  servicePrincipalId: id,
  namespaceId: optionalId,
  name: Type.String(),
  expiresAt: Type.String(),
});
export type ServiceKey = Static<typeof serviceKeyShape>;

const installationBootstrapped = defineEvent('InstallationBootstrapped', {
  skeleton: Type.Object({
    installationId: id,
    name: Type.String(),
    administrator: principalShape,
    servicePrincipal: servicePrincipalShape,
    role: roleShape,
    bindings: Type.Array(bindingShape),
    serviceKey: serviceKeyShape,
    defaultNamespaceId: id,
  }),
  view: ['installationId', 'name', 'administrator', 'servicePrincipal', 'role', 'bindings', 'serviceKey', 'defaultNamespaceId'],
});
const principalCreated = defineEvent('PrincipalCreated', { skeleton: principalShape, view: ['principalId'] });
/** Its account never came to be: it cannot either. */
const principalCreationAbandoned = defineEvent('PrincipalCreationAbandoned', { skeleton: Type.Object({ principalId: id }), view: ['principalId'] });
/** Another password counts, the row with this id, and with it only sessions begun with that one. */
const passwordReplaced = defineEvent('PasswordReplaced', { skeleton: Type.Object({ principalId: id, passwordId: id }), view: ['principalId'] });
const servicePrincipalCreated = defineEvent('ServicePrincipalCreated', {
  skeleton: servicePrincipalShape,
  view: ['servicePrincipalId', 'namespaceId', 'agentId'],
});
/** The Agent it was made for never came to be, or its Namespace is gone. */
const servicePrincipalRemoved = defineEvent('ServicePrincipalRemoved', {
  skeleton: Type.Object({ servicePrincipalId: id }),
  view: ['servicePrincipalId'],
});
const roleCreated = defineEvent('RoleCreated', { skeleton: roleShape, view: ['roleId', 'namespaceId', 'name', 'permissions'] });
const roleDeleted = defineEvent('RoleDeleted', {
  skeleton: Type.Object({ roleId: id, namespaceId: optionalId }),
  view: ['roleId', 'namespaceId'],
});
const accessBindingCreated = defineEvent('AccessBindingCreated', {
  skeleton: bindingShape,
  view: ['bindingId', 'namespaceId', 'subjectKind', 'subjectId', 'roleId', 'resourceKind', 'resourceId'],
});
const accessBindingDeleted = defineEvent('AccessBindingDeleted', {
  skeleton: Type.Object({ bindingId: id, namespaceId: optionalId }),
  view: ['bindingId', 'namespaceId'],
});
const restrictionCreated = defineEvent('RestrictionCreated', {
  skeleton: restrictionShape,
  view: ['restrictionId', 'namespaceId', 'action', 'resourceKind', 'resourceId'],
});
const restrictionDeleted = defineEvent('RestrictionDeleted', {
  skeleton: Type.Object({ restrictionId: id }),
  view: ['restrictionId'],
});
const groupCreated = defineEvent('GroupCreated', { skeleton: groupShape, view: ['groupId', 'namespaceId', 'name'] });
/** Its memberships go with it. */
const groupDeleted = defineEvent('GroupDeleted', {
  skeleton: Type.Object({ groupId: id, namespaceId: optionalId, principalIds: Type.Array(id) }),
  view: ['groupId', 'namespaceId', 'principalIds'],
});
const groupMembershipCreated = defineEvent('GroupMembershipCreated', { skeleton: membershipShape, view: ['groupId', 'namespaceId', 'principalId'] });
const groupMembershipDeleted = defineEvent('GroupMembershipDeleted', { skeleton: membershipShape, view: ['groupId', 'namespaceId', 'principalId'] });
const serviceKeyIssued = defineEvent('ServiceKeyIssued', {
  skeleton: serviceKeyShape,
  view: ['keyId', 'servicePrincipalId', 'namespaceId', 'name', 'expiresAt'],
});
/** Its event had not come when its row was taken away: it cannot come any more. */
const serviceKeyAbandoned = defineEvent('ServiceKeyAbandoned', { skeleton: Type.Object({ keyId: id }), view: ['keyId'] });
const serviceKeyRevoked = defineEvent('ServiceKeyRevoked', {
  skeleton: Type.Object({ keyId: id, servicePrincipalId: id }),
  view: ['keyId', 'servicePrincipalId'],
});
/** Removal, step 1: the Agent, its revisions and its principal are unusable as target or subject from here. */
const agentBindingsRemoved = defineEvent('AgentBindingsRemoved', {
  skeleton: Type.Object({
    agentId: id,
    namespaceId: id,
    servicePrincipalId: id,
    revisionIds: Type.Array(id),
    bindingIds: Type.Array(id),
    keyIds: Type.Array(id),
  }),
  view: ['agentId', 'namespaceId', 'servicePrincipalId', 'revisionIds', 'bindingIds', 'keyIds'],
});
/** Removal, step 2, after the Agent is gone: its exact restrictions. */
const agentRestrictionsRemoved = defineEvent('AgentRestrictionsRemoved', {
  skeleton: Type.Object({ agentId: id, namespaceId: id, restrictionIds: Type.Array(id) }),
  view: ['agentId', 'namespaceId', 'restrictionIds'],
});
/** A Configuration or Namespace is gone, and with it the policy that named it. */
const resourcePolicyRemoved = defineEvent('ResourcePolicyRemoved', {
  skeleton: Type.Object({
    resourceKind: Type.String(),
    resourceId: id,
    namespaceId: id,
    bindingIds: Type.Array(id),
    roleIds: Type.Array(id),
    groupIds: Type.Optional(Type.Array(id)),
    restrictionIds: Type.Optional(Type.Array(id)),
  }),
  view: ['resourceKind', 'resourceId', 'namespaceId', 'bindingIds', 'roleIds', 'groupIds', 'restrictionIds'],
});

export const iamEvents = createCodec(
  installationBootstrapped,
  principalCreated,
  principalCreationAbandoned,
  passwordReplaced,
  servicePrincipalCreated,
  servicePrincipalRemoved,
  roleCreated,
  roleDeleted,
  accessBindingCreated,
  accessBindingDeleted,
  restrictionCreated,
  restrictionDeleted,
  groupCreated,
  groupDeleted,
  groupMembershipCreated,
  groupMembershipDeleted,
  serviceKeyIssued,
  serviceKeyAbandoned,
  serviceKeyRevoked,
  agentBindingsRemoved,
  agentRestrictionsRemoved,
  resourcePolicyRemoved,
);

export type InstallationBootstrapped = EventOf<typeof installationBootstrapped>;
export type IamEvent =
  | InstallationBootstrapped
  | EventOf<typeof principalCreated>
  | EventOf<typeof principalCreationAbandoned>
  | EventOf<typeof passwordReplaced>
  | EventOf<typeof servicePrincipalCreated>
  | EventOf<typeof servicePrincipalRemoved>
  | EventOf<typeof roleCreated>
  | EventOf<typeof roleDeleted>
  | EventOf<typeof accessBindingCreated>
  | EventOf<typeof accessBindingDeleted>
  | EventOf<typeof restrictionCreated>
  | EventOf<typeof restrictionDeleted>
  | EventOf<typeof groupCreated>
  | EventOf<typeof groupDeleted>
  | EventOf<typeof groupMembershipCreated>
  | EventOf<typeof groupMembershipDeleted>
  | EventOf<typeof serviceKeyIssued>
  | EventOf<typeof serviceKeyAbandoned>
  | EventOf<typeof serviceKeyRevoked>
  | EventOf<typeof agentBindingsRemoved>
  | EventOf<typeof agentRestrictionsRemoved>
  | EventOf<typeof resourcePolicyRemoved>;
