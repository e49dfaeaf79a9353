/** Scenario 11: the hash chain does not break by itself, neither under many writers nor after an answer that was lost. */
import { expect, it } from 'vitest';
import { createAuditLog } from '../../src/audit/audit-log.ts';
import { namespaces } from '../../src/aggregates.ts';
import { StoreUnavailable, type EventStore } from '../../src/event-store/event-store.ts';
import { systemContext } from '../../src/installation/bootstrap.ts';
import { hashOf, type Metadata } from '../../src/kernel/event.ts';
import { newId } from '../../src/kernel/ids.ts';
import { createStreams } from '../../src/runtime/streams.ts';
import { createInMemoryEventStore } from '../support/in-memory-event-store.ts';

const prefix = 'ins_chain.';
const clock = { now: () => Date.parse('2026-01-01T00:00:00.000Z') };

/** Every stream with the number of its events, once each event has been seen to name the hash of its predecessor. */
const unbrokenStreams = async (store: EventStore): Promise<ReadonlyMap<string, number>> => {
  const { events } = await store.readAll(null, { streamPrefix: prefix }, 10_000);
  const heads = new Map<string, { hash: string; count: number }>();
  for (const event of events) {
    const head = heads.get(event.stream);
    const { previousHash } = JSON.parse(event.metadata) as Metadata;
    expect(previousHash, `the predecessor of ${event.stream}@${event.revision}`).toBe(head?.hash ?? null);
    heads.set(event.stream, { hash: hashOf(event.stream, event.revision, event), count: (head?.count ?? 0) + 1 });
  }
  return new Map([...heads].map(([stream, { count }]) => [stream, count]));
};

it('scenario 11: fifty concurrent denials on three replicas are all recorded, each replica on a stream of its own, and no chain breaks', async () => {
  const store = createInMemoryEventStore();
  const replicas = Array.from({ length: 3 }, () => createAuditLog(createStreams({ store, clock, prefix })));
  const namespaceId = newId('ns');
  const resource = { kind: 'agent', id: newId('agt'), namespaceId } as const;
  const deny = (replica: (typeof replicas)[number]) =>
    replica.record(
      { actor: { principalId: 'spn_x', kind: 'service_principal' }, requestId: newId('req') },
      { type: 'AuthorizationDenied', data: { namespaceId } },
      { kind: 'authorization_denial', action: 'openclaw.agents.read', resource, outcome: 'denied' },
      0,
    );
  await Promise.all(replicas.flatMap((replica) => Array.from({ length: 50 }, () => deny(replica))));
  expect([...(await unbrokenStreams(store)).values()]).toEqual([50, 50, 50]);
});

it('scenario 11: after an answer that was lost the next event names the bytes that were stored', async () => {
  const inner = createInMemoryEventStore();
  let lost = 0;
  const store: EventStore = {
    ...inner,
    append: async (stream, expectedRevision, events) => {
      const appended = await inner.append(stream, expectedRevision, events);
      if (lost++ % 2 === 0) throw new StoreUnavailable('the answer was lost');
      return appended;
    },
  };
  const namespaceId = newId('ns');
  const streams = createStreams({ store, clock, prefix });
  const context = systemContext('test');
  await streams.execute(namespaces, namespaceId, { type: 'CreateNamespace', namespaceId, name: 'chain' }, context);
  for (let number = 0; number < 6; number += 1)
    await streams.execute(namespaces, namespaceId, { type: 'AdmitResource', resource: { kind: 'configuration', id: newId('cfg') }, refersTo: [] }, context);
  expect([...(await unbrokenStreams(inner)).values()]).toEqual([7]);
});
