/** The event history in the schema. */
import Type from 'typebox';
import type { Sought } from '../src/history/service.ts';
import type { AuditFilter as AuditFilterView, HistoryEventView, HistoryFilter as HistoryFilterView } from '../src/history/view.ts';
import { ref, type Operation } from '../src/iam/authorizer.ts';
import { Refusal } from '../src/kernel/errors.ts';
import type { Actor, AuditRecord, ResourceRef } from '../src/kernel/event.ts';
import { receive } from '../src/kernel/parse.ts';
import type { AgentPlace } from '../src/agent/service.ts';
import { Agent } from './agent.ts';
import { builder, type Context } from './builder.ts';
import { connectionOf, following, largestPage, pageOf, rowsOf } from './connection.ts';
import { listLoader } from './loading.ts';
import { Namespace } from './namespace.ts';
import { keyOf, namespaceIdOf, rawId, rawOfAny, timeOf } from './place.ts';
import { itemsOf } from './states.ts';

const EventActor = builder.objectRef<Actor>('EventActor').implement({
  fields: (t) => ({ principalId: t.exposeID('principalId'), kind: t.exposeString('kind'), serviceKeyId: t.exposeID('serviceKeyId', { nullable: true }) }),
});
const EventResource = builder.objectRef<ResourceRef>('EventResource').implement({
  fields: (t) => ({ kind: t.exposeString('kind'), id: t.exposeID('id'), namespaceId: t.exposeID('namespaceId', { nullable: true }) }),
});
const EventAuthorization = builder.objectRef<NonNullable<AuditRecord['authorization']>>('EventAuthorization').implement({
  description: 'The permission that was judged.',
  fields: (t) => ({ principalId: t.exposeID('principalId'), action: t.exposeString('action'), resource: t.expose('resource', { type: EventResource }) }),
});
const outcomes = ['success', 'denied', 'failure'] as const;
const AuditOutcome = builder.enumType('AuditOutcome', { values: outcomes });
/** A later build may have recorded another one. */
const isOutcome = (text: string): text is (typeof outcomes)[number] => (outcomes as readonly string[]).includes(text);
const EventAudit = builder.objectRef<AuditRecord>('EventAudit').implement({
  description: 'The audit record of the append this event opens.',
  fields: (t) => ({
    kind: t.exposeString('kind'),
    action: t.exposeString('action'),
    resource: t.expose('resource', { type: EventResource }),
    outcome: t.exposeString('outcome'),
    reasonCode: t.exposeString('reasonCode', { nullable: true }),
    authorization: t.expose('authorization', { type: EventAuthorization, nullable: true }),
    details: t.expose('details', { type: 'JSON', nullable: true }),
  }),
});

const keyOfEvent = ({ id }: HistoryEventView): string => id;

export const HistoryEvent = builder.loadableNode('HistoryEvent', {
  description: 'One fact, as it was recorded.',
  id: { resolve: keyOfEvent },
  load: async (keys: string[], { reads }): Promise<(HistoryEventView | Error)[]> => {
    const found = new Map((await reads.history.byIds(keys)).rows.map((event) => [keyOfEvent(event), event]));
    return keys.map((key) => found.get(key) ?? new Refusal('NOT_FOUND', 'The event was not found'));
  },
  fields: (t) => ({
    eventId: t.exposeID('id'),
    position: t.exposeString('position', { description: 'Its place in the order of all events, as this event store counts them.' }),
    stream: t.exposeString('stream'),
    revision: t.exposeInt('revision', { description: 'Its number in its stream, from 0.' }),
    type: t.exposeString('type'),
    unreadable: t.exposeBoolean('unreadable', { description: 'This build cannot read it: `data` is null, and so is what of its cause cannot be read.' }),
    schema: t.exposeInt('schema', { nullable: true, description: 'The version of the shape of its data.' }),
    occurredAt: t.expose('occurredAt', { type: 'Timestamp', nullable: true }),
    actor: t.expose('actor', { type: EventActor, nullable: true }),
    requestId: t.exposeString('requestId', { nullable: true }),
    correlationId: t.exposeString('correlationId', { nullable: true }),
    causationId: t.exposeID('causationId', { nullable: true, description: 'The event that caused this one; null for a request of a client.' }),
    policyRevision: t.exposeInt('policyRevision', { nullable: true, description: 'The revision of the policy it was judged by.' }),
    audit: t.expose('audit', { type: EventAudit, nullable: true }),
    namespaceId: t.exposeID('namespaceId', { nullable: true }),
    agentId: t.exposeID('agentId', { nullable: true }),
    data: t.expose('data', { type: 'JSON', nullable: true, description: 'The members an auditor may see.' }),
  }),
});

/** What reading one event asks for: the history of its Namespace, or of the Installation. */
export const readingEvent = async ({ authorizer, caller }: Context, event: HistoryEventView | undefined): Promise<Operation> => {
  const { installation } = (await authorizer.current(caller.arrivedAt)).state;
  const resource: ResourceRef = event?.namespaceId == null ? { kind: 'audit', id: installation?.installationId ?? '' } : ref.collection('audit', event.namespaceId);
  return { action: 'openclaw.audit.read', resource };
};

const HistoryFilter = builder.inputType('HistoryFilter', {
  fields: (t) => ({
    namespaceId: t.id({ description: 'Without it, the caller reads the history of the Installation.' }),
    agentId: t.id(),
    types: t.stringList(),
    stream: t.string({ description: 'For example `agent-agt_…`.' }),
  }),
});

const HistoryEventConnection = builder.connectionObject({ type: HistoryEvent, name: 'HistoryEventConnection' });

const eventId = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;
export const isEventId = (text: string): boolean => eventId.test(text);
const idOfEvent = ({ id }: HistoryEventView): string => id;

const anyFilter = Type.Object({ filter: Type.Unknown() });

/** What is sought with a filter; opened, it is one that a store can be asked for. */
const sought = <Filter extends { readonly namespaceId?: string | undefined }>(filter: Filter): Sought<Filter> => {
  const sent = receive(anyFilter, { filter });
  return { namespaceId: filter.namespaceId, filter: { open: () => sent.open().filter as Filter } };
};

const soughtBy = (filter: typeof HistoryFilter.$inferInput | null | undefined): Sought<HistoryFilterView> =>
  sought({
    namespaceId: filter?.namespaceId == null ? undefined : namespaceIdOf(filter.namespaceId, 'filter/namespaceId'),
    agentId: filter?.agentId == null ? undefined : rawId(filter.agentId, 'Agent', 'agt', 'filter/agentId'),
    types: filter?.types ?? undefined,
    stream: filter?.stream ?? undefined,
  });

const ofNamespaces = listLoader((namespaceId: string) => namespaceId, ({ services, caller }, namespaceIds, request) => services.history.ofNamespaces(caller, namespaceIds, request));
const ofAgents = listLoader(({ namespaceId, agentId }: AgentPlace) => keyOf(namespaceId, agentId), ({ services, caller }, places, request) => services.history.ofAgents(caller, places, request));

builder.objectField(Namespace, 'history', (t) =>
  t.field({
    description: 'Everything that happened in the Namespace, oldest first; takes an auditor.',
    type: HistoryEventConnection,
    nullable: true,
    args: { first: t.arg.int(), after: t.arg.string() },
    resolve: async ({ id }, args, context) => {
      const page = pageOf(args, isEventId);
      return connectionOf(await ofNamespaces(context, id, page), page, idOfEvent);
    },
  }),
);

builder.objectField(Agent, 'history', (t) =>
  t.field({
    description: 'What happened to the Agent, oldest first. To who may read the Agent and is no auditor: the events of its own stream, without the evidence of other actors and without those about a revision the caller may not read.',
    type: HistoryEventConnection,
    nullable: true,
    args: { first: t.arg.int(), after: t.arg.string() },
    resolve: async ({ namespaceId, id: agentId }, args, context) => {
      const page = pageOf(args, isEventId);
      return connectionOf(await ofAgents(context, { namespaceId, agentId }, page), page, idOfEvent);
    },
  }),
);

builder.queryField('eventHistory', (t) =>
  t.field({
    description: 'Every fact in order, oldest first.',
    type: HistoryEventConnection,
    nullable: true,
    args: { first: t.arg.int(), after: t.arg.string(), filter: t.arg({ type: HistoryFilter }) },
    resolve: async (_, { filter, ...args }, { services, caller }) => {
      const page = pageOf(args, isEventId);
      return connectionOf(await services.history.list(caller, soughtBy(filter), rowsOf(page)), page, idOfEvent);
    },
  }),
);

builder.subscriptionField('historyAppended', (t) =>
  t.field({
    description: 'Every event from now on, or after the one named; none is left out.',
    type: HistoryEvent,
    args: { after: t.arg.string({ description: 'A cursor of `eventHistory`, or the `eventId` of the last event received.' }), filter: t.arg({ type: HistoryFilter }) },
    subscribe: async (_, { filter, ...args }, context) => {
      const { services, caller, watches } = context;
      const wanted = soughtBy(filter);
      const { after, limit } = pageOf({ ...args, first: largestPage }, isEventId);
      let last = after ?? (await services.history.newest(caller, wanted));
      return itemsOf(context, {
        round: async (now) => following(await services.history.list(now, wanted, rowsOf({ after: last, limit: limit - 1 }), watches.history), last, idOfEvent),
        subscribe: (changed) => watches.history.subscribe(changed),
        atOnce: limit,
        sending: ({ id }) => {
          last = id;
        },
      });
    },
    resolve: (event) => event,
  }),
);

/** What only an audit record says is null where the event could not be read so far. */
const recorded = <Value>(read: (audit: AuditRecord) => Value) => ({ audit }: HistoryEventView): Value | null => (audit === null ? null : read(audit));

const AuditEvent = builder.objectRef<HistoryEventView>('AuditEvent').implement({
  description: 'One change, or one denial: what an append or a refused permission left in the history.',
  fields: (t) => ({
    eventId: t.exposeID('id', { description: 'The event that opened the append.' }),
    position: t.exposeString('position'),
    stream: t.exposeString('stream'),
    type: t.exposeString('type'),
    unreadable: t.exposeBoolean('unreadable', { description: 'This build cannot read the event; what of its record cannot be read either is null.' }),
    occurredAt: t.expose('occurredAt', { type: 'Timestamp', nullable: true }),
    actor: t.expose('actor', { type: EventActor, nullable: true }),
    requestId: t.exposeString('requestId', { nullable: true }),
    namespaceId: t.exposeID('namespaceId', { nullable: true }),
    kind: t.string({ nullable: true, resolve: recorded(({ kind }) => kind) }),
    action: t.string({ nullable: true, resolve: recorded(({ action }) => action) }),
    resource: t.field({ type: EventResource, nullable: true, resolve: recorded(({ resource }) => resource) }),
    outcome: t.field({ type: AuditOutcome, nullable: true, resolve: recorded(({ outcome }) => (isOutcome(outcome) ? outcome : null)) }),
    reasonCode: t.string({ nullable: true, resolve: recorded(({ reasonCode }) => reasonCode ?? null) }),
    authorization: t.field({ type: EventAuthorization, nullable: true, resolve: recorded(({ authorization }) => authorization ?? null) }),
    details: t.field({ type: 'JSON', nullable: true, resolve: recorded(({ details }) => details ?? null) }),
  }),
});

const AuditFilterInput = builder.inputType('AuditFilter', {
  fields: (t) => ({
    namespaceId: t.id({ description: 'Without it, the caller reads the records of the Installation.' }),
    actorId: t.id(),
    action: t.string({ description: 'For example `openclaw.agents.deploy`.' }),
    resourceId: t.id({ description: 'The raw or the global id of what was acted on.' }),
    outcome: t.field({ type: AuditOutcome }),
    since: t.field({ type: 'Timestamp', description: 'Included.' }),
    until: t.field({ type: 'Timestamp', description: 'Excluded.' }),
  }),
});

const AuditEventConnection = builder.connectionObject({ type: AuditEvent, name: 'AuditEventConnection' });

builder.queryField('auditEvents', (t) =>
  t.field({
    description: 'The audit records, oldest first: every change and every denial, one record for each append.',
    type: AuditEventConnection,
    nullable: true,
    args: { first: t.arg.int(), after: t.arg.string(), filter: t.arg({ type: AuditFilterInput }) },
    resolve: async (_, { filter, ...args }, { services, caller }) => {
      const page = pageOf(args, isEventId);
      const wanted = sought<AuditFilterView>({
        namespaceId: filter?.namespaceId == null ? undefined : namespaceIdOf(filter.namespaceId, 'filter/namespaceId'),
        actorId: filter?.actorId ?? undefined,
        action: filter?.action ?? undefined,
        resourceId: filter?.resourceId == null ? undefined : rawOfAny(filter.resourceId),
        outcome: filter?.outcome ?? undefined,
        since: timeOf(filter?.since, 'filter/since'),
        until: timeOf(filter?.until, 'filter/until'),
      });
      return connectionOf(await services.history.listAudit(caller, wanted, rowsOf(page)), page, idOfEvent);
    },
  }),
);
