/** The event history in the schema. */
import type { HistoryEventView } from '../src/history/view.ts';
import { ref, type Operation } from '../src/iam/authorizer.ts';
import { Refusal } from '../src/kernel/errors.ts';
import type { Actor, AuditRecord, ResourceRef } from '../src/kernel/event.ts';
import { builder, type Context } from './builder.ts';
import { connectionOf, oneMore, pageOf } from './connection.ts';
import { namespaceIdOf, rawId } from './place.ts';

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
    position: t.exposeString('position', { description: 'Its place in the order of all events; also its cursor.' }),
    stream: t.exposeString('stream'),
    revision: t.exposeInt('revision', { description: 'Its number in its stream, from 0.' }),
    type: t.exposeString('type'),
    schema: t.exposeInt('schema', { description: 'The version of the shape of its data.' }),
    occurredAt: t.expose('occurredAt', { type: 'Timestamp' }),
    actor: t.expose('actor', { type: EventActor }),
    requestId: t.exposeString('requestId', { nullable: true }),
    correlationId: t.exposeString('correlationId'),
    causationId: t.exposeID('causationId', { nullable: true, description: 'The event that caused this one; null for a request of a client.' }),
    policyRevision: t.exposeInt('policyRevision', { nullable: true, description: 'The revision of the policy it was judged by.' }),
    audit: t.expose('audit', { type: EventAudit, nullable: true }),
    namespaceId: t.exposeID('namespaceId', { nullable: true }),
    agentId: t.exposeID('agentId', { nullable: true }),
    data: t.expose('data', { type: 'JSON', description: 'The members an auditor may see.' }),
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

builder.queryField('eventHistory', (t) =>
  t.field({
    description: 'Every fact in order, oldest first.',
    type: HistoryEventConnection,
    nullable: true,
    args: { first: t.arg.int(), after: t.arg.string(), filter: t.arg({ type: HistoryFilter }) },
    resolve: async (_, { filter, ...args }, { services, caller }) => {
      const page = pageOf(args, (text) => text !== '');
      const wanted = {
        namespaceId: filter?.namespaceId == null ? undefined : namespaceIdOf(filter.namespaceId, 'filter/namespaceId'),
        agentId: filter?.agentId == null ? undefined : rawId(filter.agentId, 'Agent', 'agt', 'filter/agentId'),
        types: filter?.types ?? undefined,
        stream: filter?.stream ?? undefined,
      };
      return connectionOf(await services.history.list(caller, wanted, oneMore(page)), page, ({ position }) => position);
    },
  }),
);
