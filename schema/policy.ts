/** The policy of a Namespace in the schema: Roles, bindings, service principals, and the keys these are called with. */
import { bindableKinds, createAccessBindingInput, createRoleInput, issueServiceKeyInput } from '../src/iam/input.ts';
import { opaquePattern } from '../src/kernel/ids.ts';
import { receive } from '../src/kernel/parse.ts';
import type { AccessBindingView, IssuedServiceKey, RoleView, ServicePrincipalView } from '../src/iam/view.ts';
import { builder } from './builder.ts';
import { contentOf } from './command.ts';
import { connectionOf, pageOf } from './connection.ts';
import { listLoader } from './loading.ts';
import { Namespace } from './namespace.ts';
import { accessBindingPlace, keyOf, namespaceIdOf, opaque, rawOf, rawOfAny, rolePlace } from './place.ts';

const Permission = builder.objectRef<RoleView['permissions'][number]>('Permission').implement({
  description: 'One action on one kind of resource. No action implies another.',
  fields: (t) => ({ action: t.exposeString('action'), resourceKind: t.exposeString('resourceKind') }),
});
const PermissionInput = builder.inputType('PermissionInput', {
  fields: (t) => ({ action: t.string({ required: true }), resourceKind: t.string({ required: true }) }),
});
const BindableKind = builder.enumType('BindableKind', { values: bindableKinds });
const SubjectKind = builder.enumType('SubjectKind', { values: ['identity', 'group'] as const });

export const Role = builder.node(builder.objectRef<RoleView>('Role'), {
  description: 'Permissions that are granted together. It cannot be changed, only replaced.',
  id: { resolve: ({ namespaceId, id }) => keyOf(namespaceId, id) },
  fields: (t) => ({
    roleId: t.exposeID('id'),
    namespaceId: t.exposeID('namespaceId'),
    name: t.exposeString('name', { nullable: true, description: 'A label; several Roles may have the same.' }),
    permissions: t.expose('permissions', { type: [Permission] }),
  }),
});

export const AccessBinding = builder.node(builder.objectRef<AccessBindingView>('AccessBinding'), {
  description: 'Grants the permissions of a Role to a principal: on one resource, of whose kind it conveys the permissions, or in the whole Namespace.',
  id: { resolve: ({ namespaceId, id }) => keyOf(namespaceId, id) },
  fields: (t) => ({
    bindingId: t.exposeID('id'),
    namespaceId: t.exposeID('namespaceId'),
    subjectKind: t.expose('subjectKind', { type: SubjectKind }),
    subjectId: t.exposeID('subjectId'),
    roleId: t.exposeID('roleId'),
    resourceKind: t.exposeString('resourceKind', { nullable: true }),
    resourceId: t.exposeID('resourceId', { nullable: true }),
  }),
});

const ServicePrincipal = builder.objectRef<ServicePrincipalView>('ServicePrincipal').implement({
  description: 'An identity for automation, called with service keys.',
  fields: (t) => ({ servicePrincipalId: t.exposeID('id'), namespaceId: t.exposeID('namespaceId') }),
});

const ServiceKey = builder.objectRef<IssuedServiceKey>('ServiceKey').implement({
  fields: (t) => ({
    keyId: t.exposeID('id'),
    servicePrincipalId: t.exposeID('servicePrincipalId'),
    namespaceId: t.exposeID('namespaceId', { nullable: true, description: 'The one Namespace it is good for; null for the whole Installation.' }),
    name: t.exposeString('name'),
    expiresAt: t.expose('expiresAt', { type: 'Timestamp' }),
    key: t.exposeString('key', { description: 'What is sent as `x-api-key`: shown here and never again.' }),
  }),
});

const rolesBelow = listLoader((namespaceId: string) => namespaceId, ({ services, caller }, namespaceIds, request) => services.iam.listRolesBelow(caller, namespaceIds, request));
const accessBindingsBelow = listLoader((namespaceId: string) => namespaceId, ({ services, caller }, namespaceIds, request) => services.iam.listAccessBindingsBelow(caller, namespaceIds, request));

const opaqueId = new RegExp(opaquePattern);
const isPolicyId = (text: string): boolean => opaqueId.test(text);

const RoleConnection = builder.connectionObject({ type: Role, name: 'RoleConnection' });
const AccessBindingConnection = builder.connectionObject({ type: AccessBinding, name: 'AccessBindingConnection' });

builder.objectFields(Namespace, (t) => ({
  roles: t.field({
    description: 'The Roles of the Namespace, in creation order; takes an administrator of the Installation.',
    type: RoleConnection,
    nullable: true,
    args: { first: t.arg.int(), after: t.arg.string() },
    resolve: async ({ id }, args, context) => {
      const page = pageOf(args, isPolicyId);
      return connectionOf(await rolesBelow(context, id, page), page, (role) => role.id);
    },
  }),
  accessBindings: t.field({
    description: 'The bindings of the Namespace, in creation order; takes an administrator of the Installation.',
    type: AccessBindingConnection,
    nullable: true,
    args: { first: t.arg.int(), after: t.arg.string() },
    resolve: async ({ id }, args, context) => {
      const page = pageOf(args, isPolicyId);
      return connectionOf(await accessBindingsBelow(context, id, page), page, (binding) => binding.id);
    },
  }),
}));

builder.queryFields((t) => ({
  role: t.field({
    type: Role,
    nullable: true,
    args: { id: t.arg.id({ required: true }), namespaceId: t.arg.id() },
    resolve: (_, args, { services, caller }) => services.iam.getRole(caller, rolePlace(args, caller)),
  }),
  accessBinding: t.field({
    type: AccessBinding,
    nullable: true,
    args: { id: t.arg.id({ required: true }), namespaceId: t.arg.id() },
    resolve: (_, args, { services, caller }) => services.iam.getAccessBinding(caller, accessBindingPlace(args, caller)),
  }),
}));

builder.relayMutationField(
  'createRole',
  {
    inputFields: (t) => ({
      namespaceId: t.id({ required: true }),
      name: t.string(),
      permissions: t.field({ type: [PermissionInput], required: true }),
    }),
  },
  {
    errors: {},
    resolve: async (_, { input }, { services, caller }) => ({
      role: await services.iam.createRole(caller, namespaceIdOf(input.namespaceId, 'namespaceId'), contentOf(createRoleInput, input)),
    }),
  },
  { outputFields: (t) => ({ role: t.expose('role', { type: Role }) }) },
);

builder.relayMutationField(
  'deleteRole',
  { inputFields: (t) => ({ id: t.id({ required: true }), namespaceId: t.id() }) },
  {
    errors: {},
    resolve: async (_, { input }, { services, caller }) => {
      const place = rolePlace(input, caller);
      await services.iam.deleteRole(caller, place);
      return place;
    },
  },
  { outputFields: (t) => ({ roleId: t.exposeID('roleId') }) },
);

builder.relayMutationField(
  'createAccessBinding',
  {
    inputFields: (t) => ({
      namespaceId: t.id({ required: true }),
      subjectKind: t.field({ type: SubjectKind, required: true, defaultValue: 'identity' }),
      subjectId: t.id({ required: true }),
      roleId: t.id({ required: true }),
      resourceKind: t.field({ type: BindableKind, required: true }),
      resourceId: t.id({ required: true }),
    }),
  },
  {
    errors: {},
    resolve: async (_, { input }, { services, caller }) => ({
      accessBinding: await services.iam.createAccessBinding(caller, namespaceIdOf(input.namespaceId, 'namespaceId'), contentOf(createAccessBindingInput, { ...input, roleId: rawOf(input.roleId, 'Role'), resourceId: rawOfAny(input.resourceId) })),
    }),
  },
  { outputFields: (t) => ({ accessBinding: t.expose('accessBinding', { type: AccessBinding }) }) },
);

builder.relayMutationField(
  'deleteAccessBinding',
  { inputFields: (t) => ({ id: t.id({ required: true }), namespaceId: t.id() }) },
  {
    errors: {},
    resolve: async (_, { input }, { services, caller }) => {
      const place = accessBindingPlace(input, caller);
      await services.iam.deleteAccessBinding(caller, place);
      return place;
    },
  },
  { outputFields: (t) => ({ bindingId: t.exposeID('bindingId') }) },
);

builder.relayMutationField(
  'createServicePrincipal',
  { inputFields: (t) => ({ namespaceId: t.id({ required: true }) }) },
  {
    errors: {},
    resolve: async (_, { input }, { services, caller }) => ({ servicePrincipal: await services.iam.createServicePrincipal(caller, namespaceIdOf(input.namespaceId, 'namespaceId')) }),
  },
  { outputFields: (t) => ({ servicePrincipal: t.expose('servicePrincipal', { type: ServicePrincipal }) }) },
);

builder.relayMutationField(
  'issueServiceKey',
  {
    inputFields: (t) => ({
      servicePrincipalId: t.id({ required: true }),
      namespaceId: t.id({ description: 'The Namespace of the principal; absent for one of the Installation.' }),
      name: t.string({ required: true }),
      expiresIn: t.int({ description: 'In seconds, from a day to a year; 30 days without it.' }),
    }),
  },
  {
    errors: {},
    resolve: async (_, { input }, { services, caller }) => {
      const { clientMutationId: _id, ...content } = input;
      const place = content.namespaceId == null ? {} : { namespaceId: rawOf(content.namespaceId, 'Namespace') };
      return { serviceKey: await services.serviceKeys.issue(caller, receive(issueServiceKeyInput, { ...content, ...place })) };
    },
  },
  { outputFields: (t) => ({ serviceKey: t.expose('serviceKey', { type: ServiceKey }) }) },
);

builder.relayMutationField(
  'revokeServiceKey',
  { inputFields: (t) => ({ keyId: t.id({ required: true }) }) },
  {
    errors: {},
    resolve: async (_, { input }, { services, caller }) => {
      const { id } = await services.serviceKeys.revoke(caller, opaque(input.keyId, 'keyId'));
      return { keyId: id };
    },
  },
  { outputFields: (t) => ({ keyId: t.exposeID('keyId') }) },
);
