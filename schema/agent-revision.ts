/** AgentRevisions in the schema: type, query, the deploy that makes them, and where an Agent shows them. */
import type { AgentView } from '../src/agent/view.ts';
import type { AgentPlace } from '../src/agent/service.ts';
import type { RevisionView } from '../src/agent-revision/view.ts';
import { isId } from '../src/kernel/ids.ts';
import { Agent, CredentialSourceRef, ExecutionMode, PluginApprover } from './agent.ts';
import { builder } from './builder.ts';
import { keyed } from './command.ts';
import { Configuration } from './configuration.ts';
import { connectionOf, pageOf, rowsOf } from './connection.ts';
import { answered, listLoader } from './loading.ts';
import { agentPlace, keyOf, placeOf, revisionPlace } from './place.ts';
import { ConfigurationReadError, readError, saved } from './read-error.ts';
import { reading } from './reading.ts';

const keyOfRevision = ({ namespaceId, agentId, id }: RevisionView): string => keyOf(namespaceId, agentId, id);

const Harness = builder.objectRef<RevisionView['harness']>('Harness').implement({
  fields: (t) => ({ id: t.exposeID('id'), version: t.exposeString('version'), mode: t.expose('mode', { type: ExecutionMode }) }),
});
const Compute = builder.objectRef<RevisionView['compute']>('Compute').implement({
  fields: (t) => ({ id: t.exposeID('id'), implementation: t.exposeString('implementation') }),
});

export const AgentRevision = builder.loadableNode('AgentRevision', {
  description: 'What one deploy fixed, for ever.',
  id: { resolve: keyOfRevision },
  load: async (keys: string[], { reads, services, caller }): Promise<(RevisionView | Error)[]> =>
    answered(keys, await reads.revisions.byIds(keys.map((key) => placeOf.revision(key).revisionId)), keyOfRevision, (key) => services.revisions.get(caller, placeOf.revision(key))),
  fields: (t) => ({
    revisionId: t.exposeID('id', { description: 'Also the id of its deployment.' }),
    namespaceId: t.exposeID('namespaceId'),
    agentId: t.exposeID('agentId'),
    revision: t.exposeInt('revision', { description: 'Counts the revisions of the Agent, from 1.' }),
    backendId: t.exposeID('backendId', { nullable: true }),
    configurationId: t.exposeID('configurationId'),
    configurationGeneration: t.exposeInt('configurationGeneration'),
    configuration: t.field({ type: 'JSON', nullable: true, description: 'The native document as admitted.', resolve: ({ settings }) => saved(settings, ({ configuration }) => configuration) }),
    harness: t.expose('harness', { type: Harness }),
    compute: t.expose('compute', { type: Compute }),
    harnessAuth: t.field({ type: 'JSON', nullable: true, resolve: ({ settings }) => saved(settings, ({ harnessAuth }) => harnessAuth) }),
    secretBindings: t.field({ type: 'JSON', nullable: true, resolve: ({ settings }) => saved(settings, ({ secretBindings }) => secretBindings) }),
    credentialSources: t.field({ type: [CredentialSourceRef], nullable: true, resolve: ({ settings }) => saved(settings, ({ credentialSources }) => credentialSources) }),
    plugins: t.field({ type: 'JSON', nullable: true, resolve: ({ settings }) => saved(settings, ({ plugins }) => plugins) }),
    pluginApprovers: t.field({ type: [PluginApprover], nullable: true, resolve: ({ settings }) => saved(settings, ({ pluginApprovers }) => pluginApprovers) }),
    configurationReadError: t.field({ type: ConfigurationReadError, nullable: true, resolve: ({ settings }) => readError(settings) }),
    createdAt: t.expose('createdAt', { type: 'Timestamp' }),
    agent: t.field({
      type: Agent,
      nullable: true,
      authScopes: (revision) => ({ reads: reading.agent(revision) }),
      resolve: ({ namespaceId, agentId }) => keyOf(namespaceId, agentId),
    }),
    savedConfiguration: t.field({
      description: 'The Configuration it was copied from, as it is now.',
      type: Configuration,
      nullable: true,
      authScopes: (revision) => ({ reads: reading.configuration(revision) }),
      resolve: ({ namespaceId, configurationId }) => keyOf(namespaceId, configurationId),
    }),
  }),
});

const revisionsBelow = listLoader(
  ({ namespaceId, agentId }: AgentPlace) => keyOf(namespaceId, agentId),
  ({ services, caller }, places, request) => services.revisions.listBelow(caller, places, request),
);

const AgentRevisionConnection = builder.connectionObject({ type: AgentRevision, name: 'AgentRevisionConnection' });

const placeOfAgent = ({ namespaceId, id }: AgentView): AgentPlace => ({ namespaceId, agentId: id });

builder.objectFields(Agent, (t) => ({
  revisions: t.field({
    description: 'The revisions the caller may read, oldest first.',
    type: AgentRevisionConnection,
    nullable: true,
    args: { first: t.arg.int(), after: t.arg.string() },
    resolve: async (agent, args, context) => {
      const page = pageOf(args, (text) => isId('rev', text));
      const place = placeOfAgent(agent);
      const rows = agent.at === undefined ? revisionsBelow(context, place, page) : context.services.past.revisions(context.caller, place, agent.at, rowsOf(page));
      return connectionOf(await rows, page, ({ id }) => id);
    },
  }),
  activeRevision: t.field({
    description: 'The selected revision.',
    type: AgentRevision,
    nullable: true,
    authScopes: ({ activeRevisionId, ...agent }) => (activeRevisionId === null || agent.at !== undefined ? true : { reads: reading.revision({ ...placeOfAgent(agent as AgentView), revisionId: activeRevisionId }) }),
    resolve: ({ namespaceId, id, activeRevisionId, at }, _, { services, caller }) => {
      if (activeRevisionId === null) return null;
      return at === undefined ? keyOf(namespaceId, id, activeRevisionId) : services.past.revision(caller, { namespaceId, agentId: id, revisionId: activeRevisionId }, at);
    },
  }),
}));

builder.queryField('agentRevision', (t) =>
  t.field({
    type: AgentRevision,
    nullable: true,
    args: { id: t.arg.id({ required: true }), namespaceId: t.arg.id(), agentId: t.arg.id() },
    resolve: async (_, args, context) =>
      context.services.revisions.get(context.caller, await revisionPlace(context, 'AgentRevision', args, { action: 'openclaw.agent_revisions.read', permission: 'read' })),
  }),
);

builder.relayMutationField(
  'deployAgent',
  { inputFields: (t) => ({ id: t.id({ required: true }), namespaceId: t.id(), idempotencyKey: t.string() }) },
  {
    errors: {},
    description: 'Copies the draft into a new revision and queues its start; also how a stopped Agent resumes.',
    resolve: async (_, { input }, context) => {
      const { idempotencyKey } = keyed(input);
      const place = await agentPlace(context, input, { action: 'openclaw.agents.deploy', permission: 'deploy' });
      return { revision: await context.services.agents.deploy(context.caller, place, { idempotencyKey }) };
    },
  },
  { outputFields: (t) => ({ revision: t.expose('revision', { type: AgentRevision }) }) },
);
