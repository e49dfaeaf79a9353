/** The Relay entry points: any resource by its global id, each judged as its own read. */
import { brandWithType } from '@pothos/core';
import type { Operation } from '../src/iam/authorizer.ts';
import { invalidRequest } from '../src/kernel/parse.ts';
import { AgentRevision } from './agent-revision.ts';
import { Agent } from './agent.ts';
import { builder, type Context } from './builder.ts';
import { Configuration } from './configuration.ts';
import { largestPage } from './connection.ts';
import { Deployment } from './deployment.ts';
import { HistoryEvent, isEventId, readingEvent } from './history.ts';
import { Namespace } from './namespace.ts';
import { globalId, malformed, placeOf } from './place.ts';
import { reading } from './reading.ts';

/** Judges what a key names, and loads it. */
type Find = (context: Context, key: string) => Promise<object>;

const judge = ({ authorizer, caller }: Context, operation: Operation) => authorizer.require(caller, operation, [['read', operation.resource]]);

const finders: Readonly<Record<string, Find>> = {
  Namespace: async (context, key) => {
    await judge(context, reading.namespace(placeOf.namespace(key).namespaceId));
    return Namespace.getDataloader(context).load(key);
  },
  Configuration: async (context, key) => {
    await judge(context, reading.configuration(placeOf.configuration(key)));
    return Configuration.getDataloader(context).load(key);
  },
  Agent: async (context, key) => {
    await judge(context, reading.agent(placeOf.agent(key)));
    return Agent.getDataloader(context).load(key);
  },
  AgentRevision: async (context, key) => {
    await judge(context, reading.revision(placeOf.revision(key)));
    return AgentRevision.getDataloader(context).load(key);
  },
  Deployment: async (context, key) => {
    await judge(context, reading.deployment(placeOf.revision(key)));
    return Deployment.getDataloader(context).load(key);
  },
  Role: (context, key) => context.services.iam.getRole(context.caller, placeOf.role(key)),
  AccessBinding: (context, key) => context.services.iam.getAccessBinding(context.caller, placeOf.accessBinding(key)),
  HistoryEvent: async (context, key) => {
    if (!isEventId(key)) throw malformed('id');
    const events = HistoryEvent.getDataloader(context);
    // Whose history it belongs to, only the event itself knows; one that does not exist is judged as the Installation's.
    await judge(context, await readingEvent(context, await events.load(key).catch(() => undefined)));
    return events.load(key);
  },
};

const find = async (context: Context, id: string, argument: string): Promise<object> => {
  const named = globalId(id);
  const finder = named === undefined ? undefined : finders[named.typename];
  if (named === undefined || finder === undefined) throw malformed(argument);
  const found = await finder(context, named.key);
  brandWithType(found, named.typename as never);
  return found;
};

builder.queryFields((t) => ({
  node: t.field({
    type: builder.nodeInterfaceRef(),
    nullable: true,
    args: { id: t.arg.id({ required: true }) },
    resolve: (_, { id }, context) => find(context, id, 'id'),
  }),
  nodes: t.field({
    type: [builder.nodeInterfaceRef()],
    nullable: { list: false, items: true },
    args: { ids: t.arg.idList({ required: true }) },
    resolve: (_, { ids }, context) => {
      if (ids.length > largestPage) throw invalidRequest([{ path: '/ids', code: 'INVALID_VALUE' }]);
      return ids.map((id, index) => find(context, id, `ids/${index}`));
    },
  }),
}));
