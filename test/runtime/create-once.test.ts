/** What a creation reads before it creates: nothing for an id of its own making, the stream of the id its idempotency key gives. */
import { expect, it } from 'vitest';
import { register } from '../../src/aggregates.ts';
import { createOnce } from '../../src/create-once.ts';
import type { EventStore } from '../../src/event-store/event-store.ts';
import type { Caller } from '../../src/iam/caller.ts';
import { systemContext } from '../../src/installation/bootstrap.ts';
import { createStreams, noStream, type Loaded } from '../../src/runtime/streams.ts';
import { createInMemoryEventStore } from '../support/in-memory-event-store.ts';

const caller: Caller = { actor: { principalId: 'prn_1', kind: 'principal' }, keyNamespaceId: undefined, arrivedAt: 0, requestId: 'req_1' };

const openCounted = () => {
  const memory = createInMemoryEventStore();
  const read: string[] = [];
  const store: EventStore = { ...memory, readStream: (stream, from) => (read.push(stream), memory.readStream(stream, from)) };
  const streams = createStreams({ store, clock: { now: () => 0 }, prefix: 'ins_1.' });
  /** Streams of names, each under an id of its own. */
  const aggregate = { ...register, streamOf: (id: string) => `made-${id}` };
  const create = (key: string | undefined, make: (id: string, empty: Loaded<typeof aggregate.decider.initial>) => Promise<string>) =>
    createOnce({
      ...{ caller, operation: 'make', parent: 'ins_1', key, input: {}, prefix: 'ns', kind: 'Thing', streams, aggregate, make },
      found: () => undefined,
      assertReadable: () => Promise.resolve(),
    });
  const write = (id: string, empty: Loaded<typeof aggregate.decider.initial>) =>
    streams.append(aggregate, empty, [{ type: 'NamespaceNameTaken', data: { namespaceId: id, name: id } } as const], systemContext('test')).then(({ revision }) => `${id}@${revision}`);
  return { memory, read, create, write };
};

it('a creation without a key reads no stream, and creates at the beginning of one', async () => {
  const { read, create, write } = openCounted();
  expect(await create(undefined, write)).toMatch(/^ns_.*@0$/);
  expect(read).toEqual([]);
});

it('where somebody has written the stream before, it begins again with another id', async () => {
  const { memory, create, write } = openCounted();
  const ids: string[] = [];
  const made = await create(undefined, async (id, empty) => {
    if (ids.push(id) === 1) await memory.append(`ins_1.made-${id}`, noStream, [{ id: '00000000-0000-4000-8000-000000000000', type: 'Foreign', data: '{}', metadata: '{}' }]);
    return write(id, empty);
  });
  expect(new Set(ids).size).toBe(2);
  expect(made).toBe(`${ids[1]}@0`);
});

it('a creation with a key reads the stream that the key gives', async () => {
  const { read, create, write } = openCounted();
  const made = await create('a-key-of-the-client', write);
  expect(read).toEqual([`ins_1.made-${made.split('@')[0]}`]);
});
