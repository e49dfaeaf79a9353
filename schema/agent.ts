/** Agents in the schema: type, queries, commands. What hangs on their revisions is in agent-revision.ts and deployment.ts. */
import { createAgentInput, updateAgentInput } from '../src/agent/input.ts';
import type { AgentView, Point } from '../src/agent/view.ts';
import { largestBodyLimit } from '../src/http/rest/route.ts';
import { ref, type Permission } from '../src/iam/authorizer.ts';
import { isId } from '../src/kernel/ids.ts';
import { builder, type Context } from './builder.ts';
import { contentOf } from './command.ts';
import { Configuration } from './configuration.ts';
import { connectionOf, pageOf } from './connection.ts';
import { answered, listLoader } from './loading.ts';
import { Namespace } from './namespace.ts';
import { agentPlace, keyOf, malformed, namespaceIdOf, placeOf, rawOf, timeOf } from './place.ts';
import { ConfigurationReadError, readError, saved } from './read-error.ts';
import { reading } from './reading.ts';
import { statesOf } from './states.ts';

const keyOfAgent = ({ namespaceId, id }: AgentView): string => keyOf(namespaceId, id);

export const ExecutionMode = builder.enumType('ExecutionMode', { values: ['embedded', 'dedicated'] as const });
const AgentStatus = builder.enumType('AgentStatus', { values: ['active', 'deleting'] as const });
const RuntimeState = builder.enumType('RuntimeState', { values: ['running', 'stopped'] as const });

export const CredentialSourceRef = builder.objectRef<{ readonly sourceId: string }>('CredentialSourceRef').implement({
  fields: (t) => ({ sourceId: t.exposeID('sourceId') }),
});
const CredentialSourceInput = builder.inputType('CredentialSourceInput', { fields: (t) => ({ sourceId: t.id({ required: true }) }) });

export const PluginApprover = builder.objectRef<{ readonly channel: string; readonly id: string }>('PluginApprover').implement({
  fields: (t) => ({ channel: t.exposeString('channel'), id: t.exposeString('id') }),
});
const PluginApproverInput = builder.inputType('PluginApproverInput', {
  fields: (t) => ({ channel: t.string({ required: true }), id: t.string({ required: true }) }),
});

const may = (action: Permission[0]) => ({ namespaceId, id }: AgentView, _: object, { authorizer, caller }: Context) => authorizer.permits(caller, action, ref.in('agent', namespaceId, id));

const AgentPermissions = builder.objectRef<AgentView>('AgentPermissions').implement({
  description: 'What the caller may do with an Agent, judged without an audit record. A command may need more on what it refers to.',
  fields: (t) => ({
    read: t.boolean({ resolve: may('read') }),
    update: t.boolean({ resolve: may('update') }),
    deploy: t.boolean({ resolve: may('deploy') }),
    operate: t.boolean({ resolve: may('operate') }),
    delete: t.boolean({ resolve: may('delete') }),
    administer: t.boolean({ resolve: may('administer') }),
  }),
});

export const Agent = builder.loadableNode('Agent', {
  description: 'A managed Agent: its draft, and what it should be doing.',
  id: { resolve: keyOfAgent },
  load: async (keys: string[], { reads, services, caller }): Promise<(AgentView | Error)[]> =>
    answered(keys, await reads.agents.byIds(keys.map((key) => placeOf.agent(key).agentId)), keyOfAgent, (key) => services.agents.get(caller, placeOf.agent(key))),
  fields: (t) => ({
    agentId: t.exposeID('id'),
    namespaceId: t.exposeID('namespaceId'),
    name: t.exposeString('name'),
    servicePrincipalId: t.exposeID('servicePrincipalId'),
    configurationId: t.exposeID('configurationId'),
    backendId: t.exposeID('backendId', { nullable: true }),
    executionMode: t.expose('executionMode', { type: ExecutionMode }),
    harnessAuth: t.field({ type: 'JSON', nullable: true, resolve: ({ settings }) => saved(settings, ({ harnessAuth }) => harnessAuth) }),
    credentialSources: t.field({ type: [CredentialSourceRef], nullable: true, resolve: ({ settings }) => saved(settings, ({ credentialSources }) => credentialSources) }),
    plugins: t.field({ type: 'JSON', nullable: true, resolve: ({ settings }) => saved(settings, ({ plugins }) => plugins) }),
    pluginApprovers: t.field({ type: [PluginApprover], nullable: true, resolve: ({ settings }) => saved(settings, ({ pluginApprovers }) => pluginApprovers) }),
    configurationReadError: t.field({ type: ConfigurationReadError, nullable: true, resolve: ({ settings }) => readError(settings) }),
    desiredRuntimeState: t.expose('desiredRuntimeState', { type: RuntimeState }),
    activeRevisionId: t.exposeID('activeRevisionId', { nullable: true, description: 'The selected revision; not a health signal.' }),
    status: t.expose('status', { type: AgentStatus }),
    createdAt: t.expose('createdAt', { type: 'Timestamp' }),
    draftRevision: t.exposeInt('draftRevision', { description: 'Moved by every change of the draft; what `ifMatch` compares.' }),
    viewerCan: t.field({ type: AgentPermissions, resolve: (agent) => agent }),
    namespace: t.field({
      type: Namespace,
      nullable: true,
      authScopes: ({ namespaceId }) => ({ reads: reading.namespace(namespaceId) }),
      resolve: ({ namespaceId }) => namespaceId,
    }),
    configuration: t.field({
      description: 'The Configuration the draft names.',
      type: Configuration,
      nullable: true,
      authScopes: (agent) => ({ reads: reading.configuration(agent) }),
      resolve: ({ namespaceId, configurationId }) => keyOf(namespaceId, configurationId),
    }),
  }),
});

const agentsBelow = listLoader((namespaceId: string) => namespaceId, ({ services, caller }, namespaceIds, request) => services.agents.listBelow(caller, namespaceIds, request));

const AgentConnection = builder.connectionObject({ type: Agent, name: 'AgentConnection' });

builder.objectField(Namespace, 'agents', (t) =>
  t.field({
    description: 'The Agents the caller may read, in creation order.',
    type: AgentConnection,
    nullable: true,
    args: { first: t.arg.int(), after: t.arg.string() },
    resolve: async ({ id }, args, context) => {
      const page = pageOf(args, (text) => isId('agt', text));
      return connectionOf(await agentsBelow(context, id, page), page, (agent) => agent.id);
    },
  }),
);

const HistoryPoint = builder.inputType('HistoryPoint', {
  isOneOf: true,
  description: 'A point of the history.',
  fields: (t) => ({
    position: t.string({ description: 'After the event with this `position`.' }),
    time: t.field({ type: 'Timestamp', description: 'After everything that had happened to the Agent by then.' }),
  }),
});

const positionText = /^[\d/]{1,64}$/;

/** The point an argument names. @throws Refusal INVALID_REQUEST for what is none */
const pointOf = ({ position, time }: typeof HistoryPoint.$inferInput): Point => {
  if (time != null) return { time: timeOf(time, 'at/time')! };
  if (position == null || !positionText.test(position)) throw malformed('at/position');
  return { position };
};

builder.queryField('agent', (t) =>
  t.field({
    type: Agent,
    nullable: true,
    args: {
      id: t.arg.id({ required: true }),
      namespaceId: t.arg.id(),
      at: t.arg({
        type: HistoryPoint,
        description: 'The Agent as it was, with its revisions and deployments; what it refers to by id, its history and what may be done with it are as of now. One that is removed takes an auditor, and its Namespace where `id` does not name it.',
      }),
    },
    resolve: async (_, { at, ...args }, context) => {
      const point = at == null ? undefined : pointOf(at);
      const place = await agentPlace(context, args, { action: 'openclaw.agents.read', permission: 'read' });
      return point === undefined ? context.services.agents.get(context.caller, place) : context.services.past.agent(context.caller, place, point);
    },
  }),
);

builder.subscriptionField('agentChanged', (t) =>
  t.field({
    description: 'The current state, then every change of it; completes when the Agent is gone.',
    type: Agent,
    args: { id: t.arg.id({ required: true }), namespaceId: t.arg.id() },
    subscribe: async (_, args, context) => {
      const place = await agentPlace(context, args, { action: 'openclaw.agents.read', permission: 'read' });
      return statesOf(context, (caller) => context.services.agents.get(caller, place), (changed) => context.watches.agents.subscribe(place.agentId, changed));
    },
    resolve: (agent) => agent,
  }),
);

builder.relayMutationField(
  'createAgent',
  {
    inputFields: (t) => ({
      namespaceId: t.id({ required: true }),
      name: t.string({ required: true }),
      configurationId: t.id({ required: true }),
      executionMode: t.field({ type: ExecutionMode }),
      backendId: t.string(),
      harnessAuth: t.field({ type: 'JSON' }),
      credentialSources: t.field({ type: [CredentialSourceInput] }),
      plugins: t.field({ type: 'JSON' }),
      pluginApprovers: t.field({ type: [PluginApproverInput] }),
      initialWorkspaceFiles: t.field({ type: 'JSON', description: 'Contents by file name.' }),
      workspaceDefaultsId: t.string(),
      idempotencyKey: t.string(),
    }),
  },
  {
    errors: {},
    resolve: async (_, { input }, { services, caller }) => ({
      agent: await services.agents.create(caller, namespaceIdOf(input.namespaceId, 'namespaceId'), contentOf(createAgentInput, { ...input, configurationId: rawOf(input.configurationId, 'Configuration') }, largestBodyLimit)),
    }),
  },
  { outputFields: (t) => ({ agent: t.expose('agent', { type: Agent }) }) },
);

builder.relayMutationField(
  'updateAgent',
  {
    inputFields: (t) => ({
      id: t.id({ required: true }),
      namespaceId: t.id(),
      configurationId: t.id({ required: true }),
      executionMode: t.field({ type: ExecutionMode }),
      backendId: t.string(),
      harnessAuth: t.field({ type: 'JSON' }),
      credentialSources: t.field({ type: [CredentialSourceInput] }),
      plugins: t.field({ type: 'JSON' }),
      pluginApprovers: t.field({ type: [PluginApproverInput] }),
      ifMatch: t.int({ description: 'The `draftRevision` the change was made from; a stale one is refused.' }),
    }),
  },
  {
    errors: {},
    resolve: async (_, { input }, context) => {
      const content = contentOf(updateAgentInput, { ...input, configurationId: rawOf(input.configurationId, 'Configuration') });
      const place = await agentPlace(context, input, { action: 'openclaw.agents.update', permission: 'update', content });
      return { agent: await context.services.agents.update(context.caller, place, content, { ifMatch: input.ifMatch ?? undefined }) };
    },
  },
  { outputFields: (t) => ({ agent: t.expose('agent', { type: Agent }) }) },
);

builder.relayMutationField(
  'stopAgent',
  { inputFields: (t) => ({ id: t.id({ required: true }), namespaceId: t.id() }) },
  {
    errors: {},
    resolve: async (_, { input }, context) => ({
      agent: await context.services.agents.stop(context.caller, await agentPlace(context, input, { action: 'openclaw.agents.stop', permission: 'operate' })),
    }),
  },
  { outputFields: (t) => ({ agent: t.expose('agent', { type: Agent }) }) },
);

builder.relayMutationField(
  'deleteAgent',
  { inputFields: (t) => ({ id: t.id({ required: true }), namespaceId: t.id() }) },
  {
    errors: {},
    resolve: async (_, { input }, context) => ({
      agent: await context.services.agents.delete(context.caller, await agentPlace(context, input, { action: 'openclaw.agents.delete', permission: 'delete' })),
    }),
  },
  { outputFields: (t) => ({ agent: t.expose('agent', { type: Agent }) }) },
);
