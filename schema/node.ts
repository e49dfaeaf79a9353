/** The Relay entry points: any resource by its global id, each judged as its own read. */
import { brandWithType } from '@pothos/core';
import { decodeGlobalID } from '@pothos/plugin-relay';
import type { Operation } from '../src/iam/authorizer.ts';
import { invalidRequest } from '../src/kernel/parse.ts';
import { AgentRevision } from './agent-revision.ts';
import { Agent } from './agent.ts';
import { builder, type Context } from './builder.ts';
import { Configuration } from './configuration.ts';
import { Deployment } from './deployment.ts';
import { HistoryEvent, readingEvent } from './history.ts';
import { Namespace } from './namespace.ts';
import { idsOf, revisionPlaceOf } from './place.ts';
import { reading } from './reading.ts';

type Find = (context: Context, key: string) => Promise<object>;

const require = ({ authorizer, caller }: Context, operation: Operation) => authorizer.require(caller, operation, [['read', operation.resource]]);

const nodes: Readonly<Record<string, Find>> = {
  Namespace: async (context, key) => {
    const [namespaceId] = idsOf(key, ['ns']);
    await require(context, reading.namespace(namespaceId!));
    return Namespace.getDataloader(context).load(key);
  },
  Configuration: async (context, key) => {
    const [namespaceId, configurationId] = idsOf(key, ['ns', 'cfg']);
    await require(context, reading.configuration({ namespaceId: namespaceId!, configurationId: configurationId! }));
    return Configuration.getDataloader(context).load(key);
  },
  Agent: async (context, key) => {
    const [namespaceId, agentId] = idsOf(key, ['ns', 'agt']);
    await require(context, reading.agent({ namespaceId: namespaceId!, agentId: agentId! }));
    return Agent.getDataloader(context).load(key);
  },
  AgentRevision: async (context, key) => {
    await require(context, reading.revision(revisionPlaceOf(key)));
    return AgentRevision.getDataloader(context).load(key);
  },
  Deployment: async (context, key) => {
    await require(context, reading.deployment(revisionPlaceOf(key)));
    return Deployment.getDataloader(context).load(key);
  },
  HistoryEvent: async (context, key) => {
    const event = await HistoryEvent.getDataloader(context).load(key).catch(() => undefined);
    await require(context, await readingEvent(context, event));
    return HistoryEvent.getDataloader(context).load(key);
  },
};

const find = async (context: Context, id: string, argument: string): Promise<object> => {
  const malformed = invalidRequest([{ path: `/${argument}`, code: 'INVALID_FORMAT' }]);
  const { typename, id: key } = ((): { typename: string; id: string } => {
    try {
      return decodeGlobalID(id);
    } catch {
      throw malformed;
    }
  })();
  const node = nodes[typename];
  if (node === undefined) throw malformed;
  const found = await node(context, key);
  brandWithType(found, typename as never);
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
    resolve: (_, { ids }, context) => ids.map((id, index) => find(context, id, `ids/${index}`)),
  }),
}));
