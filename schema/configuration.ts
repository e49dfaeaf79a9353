/** Configurations in the schema: type, query, commands. */
import { createConfigurationInput, updateConfigurationInput } from '../src/configuration/input.ts';
import type { ConfigurationView } from '../src/configuration/view.ts';
import { builder } from './builder.ts';
import { contentOf } from './command.ts';
import { answered } from './loading.ts';
import { Namespace } from './namespace.ts';
import { configurationPlace, keyOf, namespaceIdOf, placeOf } from './place.ts';
import { ConfigurationReadError, readError, saved } from './read-error.ts';
import { reading } from './reading.ts';

const keyOfConfiguration = ({ namespaceId, id }: ConfigurationView): string => keyOf(namespaceId, id);

const ConfigurationKind = builder.enumType('ConfigurationKind', { values: ['agent'] as const });

export const Configuration = builder.loadableNode('Configuration', {
  description: 'A native document that Agents run with.',
  id: { resolve: keyOfConfiguration },
  load: async (keys: string[], { reads, services, caller }): Promise<(ConfigurationView | Error)[]> =>
    answered(keys, await reads.configurations.byIds(keys.map((key) => placeOf.configuration(key).configurationId)), keyOfConfiguration, (key) => services.configurations.get(caller, placeOf.configuration(key))),
  fields: (t) => ({
    configurationId: t.exposeID('id'),
    namespaceId: t.exposeID('namespaceId'),
    kind: t.expose('kind', { type: ConfigurationKind }),
    generation: t.exposeInt('generation', { description: 'Raised by every change; what `ifMatch` compares.' }),
    values: t.field({ type: 'JSON', nullable: true, resolve: ({ settings }) => saved(settings, ({ values }) => values) }),
    secretBindings: t.field({ type: 'JSON', nullable: true, resolve: ({ settings }) => saved(settings, ({ secretBindings }) => secretBindings) }),
    configurationReadError: t.field({ type: ConfigurationReadError, nullable: true, resolve: ({ settings }) => readError(settings) }),
    createdAt: t.expose('createdAt', { type: 'Timestamp' }),
    namespace: t.field({
      type: Namespace,
      nullable: true,
      authScopes: ({ namespaceId }) => ({ reads: reading.namespace(namespaceId) }),
      resolve: ({ namespaceId }) => namespaceId,
    }),
  }),
});

builder.queryField('configuration', (t) =>
  t.field({
    type: Configuration,
    nullable: true,
    args: { id: t.arg.id({ required: true }), namespaceId: t.arg.id() },
    resolve: async (_, args, context) =>
      context.services.configurations.get(context.caller, await configurationPlace(context, args, { action: 'openclaw.configurations.read', permission: 'read' })),
  }),
);

builder.relayMutationField(
  'createConfiguration',
  {
    inputFields: (t) => ({
      namespaceId: t.id({ required: true }),
      kind: t.field({ type: ConfigurationKind, required: true }),
      values: t.field({ type: 'JSON', required: true }),
      secretBindings: t.field({ type: 'JSON' }),
      idempotencyKey: t.string(),
    }),
  },
  {
    errors: {},
    resolve: async (_, { input }, { services, caller }) => ({
      configuration: await services.configurations.create(caller, namespaceIdOf(input.namespaceId, 'namespaceId'), contentOf(createConfigurationInput, input)),
    }),
  },
  { outputFields: (t) => ({ configuration: t.expose('configuration', { type: Configuration }) }) },
);

builder.relayMutationField(
  'updateConfiguration',
  {
    inputFields: (t) => ({
      id: t.id({ required: true }),
      namespaceId: t.id(),
      values: t.field({ type: 'JSON', required: true }),
      secretBindings: t.field({ type: 'JSON' }),
      ifMatch: t.int({ description: 'The generation the change was made from; a stale one is refused.' }),
    }),
  },
  {
    errors: {},
    resolve: async (_, { input }, context) => {
      const content = contentOf(updateConfigurationInput, input);
      const place = await configurationPlace(context, input, { action: 'openclaw.configurations.update', permission: 'update', content });
      return { configuration: await context.services.configurations.update(context.caller, place, content, { ifMatch: input.ifMatch ?? undefined }) };
    },
  },
  { outputFields: (t) => ({ configuration: t.expose('configuration', { type: Configuration }) }) },
);

builder.relayMutationField(
  'deleteConfiguration',
  { inputFields: (t) => ({ id: t.id({ required: true }), namespaceId: t.id() }) },
  {
    errors: {},
    resolve: async (_, { input }, context) => {
      const place = await configurationPlace(context, input, { action: 'openclaw.configurations.delete', permission: 'delete' });
      await context.services.configurations.delete(context.caller, place);
      return place;
    },
  },
  { outputFields: (t) => ({ configurationId: t.exposeID('configurationId') }) },
);
