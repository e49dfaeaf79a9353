/** The native admin UI of an Agent in the schema: whether it can be opened, and where. (agent-lifecycle 9.1) */
import { createContextCache } from '@pothos/core';
import DataLoader from 'dataloader';
import type { AgentPlace } from '../src/agent/service.ts';
import { nativeAdminStatuses, type NativeAdminView } from '../src/native-admin/view.ts';
import { Agent } from './agent.ts';
import { builder, type Context } from './builder.ts';

const NativeAdminStatus = builder.enumType('NativeAdminStatus', { values: nativeAdminStatuses });

const NativeAdmin = builder.objectRef<NativeAdminView>('NativeAdmin').implement({
  fields: (t) => ({
    status: t.expose('status', { type: NativeAdminStatus }),
    activeRevisionId: t.exposeID('activeRevisionId', { nullable: true }),
    host: t.exposeString('host', { nullable: true }),
    origin: t.exposeString('origin', { nullable: true }),
    url: t.exposeString('url', { nullable: true, description: 'What to open; with `available` only.' }),
  }),
});

/** Of all Agents of a page together. */
const availabilities = createContextCache(({ services, caller }: Context) => new DataLoader((places: readonly AgentPlace[]) => services.nativeAdmin.availabilities(caller, places), { cache: false }));

builder.objectField(Agent, 'nativeAdmin', (t) =>
  t.field({
    description: 'Whether the native admin UI of the gateway can be opened, and where; takes a session and `administer`.',
    type: NativeAdmin,
    nullable: true,
    resolve: ({ namespaceId, id: agentId }, _, context) => availabilities(context).load({ namespaceId, agentId }),
  }),
);
