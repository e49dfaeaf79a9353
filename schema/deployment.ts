/** Deployments in the schema: type, query, subscription, and where Agents and revisions show them. */
import { createContextCache } from '@pothos/core';
import DataLoader from 'dataloader';
import { deploymentView, type DeploymentView, type RevisionPlace } from '../src/agent-revision/service.ts';
import type { AgentPlace } from '../src/agent/service.ts';
import type { Point } from '../src/agent/view.ts';
import type { DeploymentReads } from '../src/deployment/view.ts';
import { AgentRevision } from './agent-revision.ts';
import { Agent } from './agent.ts';
import { builder, type Context } from './builder.ts';
import { answered } from './loading.ts';
import { keyOf, placeOf, revisionPlace, type Located } from './place.ts';
import { reading } from './reading.ts';
import { statesOf } from './states.ts';

const placeOfDeployment = ({ namespaceId, agentId, deploymentId }: DeploymentView): RevisionPlace => ({ namespaceId, agentId, revisionId: deploymentId });

const keyOfDeployment = ({ namespaceId, agentId, deploymentId }: DeploymentView): string => keyOf(namespaceId, agentId, deploymentId);

type Row = Awaited<ReturnType<DeploymentReads['byIds']>>['rows'][number];
const view = ({ record, work }: Row): DeploymentView => deploymentView(record, work);

const DeploymentStatus = builder.enumType('DeploymentStatus', { values: ['queued', 'running', 'succeeded', 'failed'] as const });
const CleanupStatus = builder.enumType('CleanupStatus', { values: ['queued', 'running', 'succeeded'] as const });

const DeploymentError = builder.objectRef<NonNullable<DeploymentView['error']>>('DeploymentError').implement({
  fields: (t) => ({ code: t.exposeString('code'), message: t.exposeString('message'), data: t.field({ type: 'JSON', nullable: true, resolve: ({ data }) => data as object | undefined }) }),
});
const DeploymentWarning = builder.objectRef<DeploymentView['warnings'][number]>('DeploymentWarning').implement({
  fields: (t) => ({ code: t.exposeString('code'), pluginId: t.exposeString('pluginId') }),
});

type Progress = NonNullable<DeploymentView['progress']>;
const DeploymentAttempt = builder.objectRef<NonNullable<Progress['lastAttempt']>>('DeploymentAttempt').implement({
  fields: (t) => ({ at: t.expose('at', { type: 'Timestamp' }), code: t.exposeString('code'), message: t.exposeString('message') }),
});
const DeploymentProgress = builder.objectRef<Progress>('DeploymentProgress').implement({
  fields: (t) => ({
    lastAttempt: t.expose('lastAttempt', { type: DeploymentAttempt, nullable: true, description: 'The latest recorded result; null is no proof that nothing ran.' }),
    nextAttemptAt: t.expose('nextAttemptAt', { type: 'Timestamp', nullable: true, description: 'The earliest next try, not a promise; null while one is under way.' }),
  }),
});
const DeploymentCleanup = builder.objectRef<NonNullable<DeploymentView['cleanup']>>('DeploymentCleanup').implement({
  fields: (t) => ({ status: t.expose('status', { type: CleanupStatus }), nextAttemptAt: t.expose('nextAttemptAt', { type: 'Timestamp', nullable: true }) }),
});

export const Deployment = builder.loadableNode('Deployment', {
  description: 'What became of one deploy: its status, and how far it has come.',
  id: { resolve: keyOfDeployment },
  load: async (keys: string[], { reads, services, caller }): Promise<(DeploymentView | Error)[]> => {
    const { rows, fresh } = await reads.deployments.byIds(keys.map((key) => placeOf.revision(key).revisionId));
    return answered(keys, { rows: rows.map(view), fresh }, keyOfDeployment, (key) => services.revisions.deployment(caller, placeOf.revision(key)));
  },
  fields: (t) => ({
    deploymentId: t.exposeID('deploymentId', { description: 'Also the id of its revision.' }),
    namespaceId: t.exposeID('namespaceId'),
    agentId: t.exposeID('agentId'),
    status: t.expose('status', { type: DeploymentStatus }),
    error: t.expose('error', { type: DeploymentError, nullable: true }),
    warnings: t.expose('warnings', { type: [DeploymentWarning] }),
    progress: t.expose('progress', { type: DeploymentProgress, nullable: true, description: 'Null once it is over.' }),
    cleanup: t.expose('cleanup', { type: DeploymentCleanup, nullable: true }),
    revision: t.field({
      type: AgentRevision,
      nullable: true,
      authScopes: (deployment) => ({ reads: reading.revision(placeOfDeployment(deployment)) }),
      resolve: keyOfDeployment,
    }),
    agent: t.field({
      type: Agent,
      nullable: true,
      authScopes: (deployment) => ({ reads: reading.agent(deployment) }),
      resolve: ({ namespaceId, agentId }) => keyOf(namespaceId, agentId),
    }),
  }),
});

/** Deployments as they were, all those of an Agent at one point of the history together. */
const pastOf = (context: Context, place: AgentPlace, at: Point) => {
  const loaders = pastLoaders(context);
  const key = JSON.stringify([place, at]);
  const loader = loaders.get(key) ?? new DataLoader((revisionIds: readonly string[]) => context.services.past.deployments(context.caller, place, revisionIds, at), { cache: false });
  loaders.set(key, loader);
  return loader;
};
const pastLoaders = createContextCache((_: Context) => new Map<string, DataLoader<string, DeploymentView>>());

builder.objectField(AgentRevision, 'deployment', (t) =>
  t.field({
    type: Deployment,
    nullable: true,
    authScopes: ({ namespaceId, agentId, id, at }) => (at === undefined ? { reads: reading.deployment({ namespaceId, agentId, revisionId: id }) } : true),
    resolve: ({ namespaceId, agentId, id, at }, _, context) => (at === undefined ? keyOf(namespaceId, agentId, id) : pastOf(context, { namespaceId, agentId }, at).load(id)),
  }),
);

/** The newest deployment of each Agent, all in one statement. */
const latestOf = createContextCache(({ reads, services, caller }: Context) => {
  const load = async (places: readonly AgentPlace[]): Promise<(DeploymentView | null)[]> => {
    const { rows, fresh } = await reads.deployments.latestOfAgents(places.map(({ agentId }) => agentId));
    const [alone] = places;
    if (places.length === 1 && !fresh) return [await services.revisions.latestDeployment(caller, alone!)];
    const byAgent = new Map(rows.map((row) => [row.record.agentId, view(row)]));
    return places.map(({ agentId }) => byAgent.get(agentId) ?? null);
  };
  return new DataLoader(load, { cacheKeyFn: ({ namespaceId, agentId }: AgentPlace) => keyOf(namespaceId, agentId) });
});

builder.objectField(Agent, 'latestDeployment', (t) =>
  t.field({
    type: Deployment,
    nullable: true,
    resolve: async ({ namespaceId, id, at }, _, context) => {
      if (at !== undefined) return context.services.past.latestDeployment(context.caller, { namespaceId, agentId: id }, at);
      const latest = await latestOf(context).load({ namespaceId, agentId: id });
      if (latest === null) return null;
      // Which one it is, is known only now; it is judged before it is shown.
      const operation = reading.deployment(placeOfDeployment(latest));
      await context.authorizer.require(context.caller, operation, [['read', operation.resource]]);
      return latest;
    },
  }),
);

const placeFrom = (context: Context, located: Located): Promise<RevisionPlace> =>
  revisionPlace(context, 'Deployment', located, { action: 'openclaw.agent_deployments.read', permission: 'read' });

builder.queryField('deployment', (t) =>
  t.field({
    type: Deployment,
    nullable: true,
    args: { id: t.arg.id({ required: true }), namespaceId: t.arg.id(), agentId: t.arg.id() },
    resolve: async (_, args, context) => context.services.revisions.deployment(context.caller, await placeFrom(context, args)),
  }),
);

builder.subscriptionField('deploymentChanged', (t) =>
  t.field({
    description: 'The current state, then every change of it, also when a try starts or its lease runs out; completes when the Agent is gone.',
    type: Deployment,
    args: { id: t.arg.id({ required: true }), namespaceId: t.arg.id(), agentId: t.arg.id() },
    subscribe: async (_, args, context) => {
      const place = await placeFrom(context, args);
      return statesOf(context, (caller) => context.services.revisions.deployment(caller, place), (changed) => context.watches.deployments.subscribe(place.revisionId, changed));
    },
    resolve: (deployment) => deployment,
  }),
);
