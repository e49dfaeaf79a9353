/** Namespaces in the schema: type, queries, commands. */
import { ref } from '../src/iam/authorizer.ts';
import { isId } from '../src/kernel/ids.ts';
import { createNamespaceInput } from '../src/namespace/input.ts';
import type { NamespaceView } from '../src/namespace/view.ts';
import { builder } from './builder.ts';
import { contentOf, keyed } from './command.ts';
import { connectionOf, pageOf, rowsOf } from './connection.ts';
import { answered } from './loading.ts';
import { namespaceIdOf } from './place.ts';

const NamespaceStatus = builder.enumType('NamespaceStatus', { values: ['provisioning', 'ready', 'failed', 'deleting'] as const });

const NamespacePermissions = builder.objectRef<NamespaceView>('NamespacePermissions').implement({
  description: 'What the caller may do in a Namespace, judged without an audit record. A command may need more on what it refers to.',
  fields: (t) => ({
    read: t.boolean({ resolve: ({ id }, _, { authorizer, caller }) => authorizer.permits(caller, 'read', ref.namespace(id)) }),
    delete: t.boolean({ resolve: ({ id }, _, { authorizer, caller }) => authorizer.permits(caller, 'delete', ref.namespace(id)) }),
    createAgent: t.boolean({ resolve: ({ id }, _, { authorizer, caller }) => authorizer.permits(caller, 'create', ref.collection('agent', id)) }),
    createConfiguration: t.boolean({ resolve: ({ id }, _, { authorizer, caller }) => authorizer.permits(caller, 'create', ref.collection('configuration', id)) }),
    readHistory: t.boolean({ resolve: ({ id }, _, { authorizer, caller }) => authorizer.permits(caller, 'read', ref.collection('audit', id)) }),
  }),
});

const keyOfNamespace = ({ id }: NamespaceView): string => id;

export const Namespace = builder.loadableNode('Namespace', {
  description: 'The tenant boundary: names are unique, and permissions are granted, inside one.',
  id: { resolve: keyOfNamespace },
  load: async (keys: string[], { reads, services, caller }): Promise<(NamespaceView | Error)[]> =>
    answered(keys, await reads.namespaces.byIds(keys), keyOfNamespace, (key) => services.namespaces.get(caller, key)),
  fields: (t) => ({
    namespaceId: t.exposeID('id'),
    name: t.exposeString('name'),
    status: t.expose('status', { type: NamespaceStatus }),
    createdAt: t.expose('createdAt', { type: 'Timestamp' }),
    viewerCan: t.field({ type: NamespacePermissions, resolve: (namespace) => namespace }),
  }),
});

const NamespaceConnection = builder.connectionObject({ type: Namespace, name: 'NamespaceConnection' });

builder.queryFields((t) => ({
  namespaces: t.field({
    description: 'The Namespaces the caller may read, in creation order.',
    type: NamespaceConnection,
    nullable: true,
    args: { first: t.arg.int(), after: t.arg.string() },
    resolve: async (_, args, { services, caller }) => {
      const page = pageOf(args, (text) => isId('ns', text));
      return connectionOf(await services.namespaces.list(caller, rowsOf(page)), page, ({ id }) => id);
    },
  }),
  namespace: t.field({
    type: Namespace,
    nullable: true,
    args: { id: t.arg.id({ required: true }) },
    resolve: (_, { id }, { services, caller }) => services.namespaces.get(caller, namespaceIdOf(id)),
  }),
}));

builder.relayMutationField(
  'createNamespace',
  {
    inputFields: (t) => ({
      name: t.string({ required: true }),
      existingNamespace: t.string({ description: 'A Namespace of Compute to adopt; takes an administrator of the Installation.' }),
      idempotencyKey: t.string(),
    }),
  },
  {
    errors: {},
    resolve: async (_, { input }, { services, caller }) => {
      const { idempotencyKey, content } = keyed(input);
      return { namespace: await services.namespaces.create(caller, contentOf(createNamespaceInput, content), { idempotencyKey }) };
    },
  },
  { outputFields: (t) => ({ namespace: t.expose('namespace', { type: Namespace }) }) },
);

builder.relayMutationField(
  'deleteNamespace',
  { inputFields: (t) => ({ id: t.id({ required: true }) }) },
  { errors: {}, resolve: async (_, { input }, { services, caller }) => ({ namespace: await services.namespaces.delete(caller, namespaceIdOf(input.id)) }) },
  { outputFields: (t) => ({ namespace: t.expose('namespace', { type: Namespace }) }) },
);
