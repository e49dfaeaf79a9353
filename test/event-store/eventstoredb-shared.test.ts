/** An EventStoreDB that others use as well, and operators who delete in it. */
import { BACKWARDS, END, streamNameFilter } from '@eventstore/db-client';
import type { EventStoreDBClient } from '@eventstore/db-client';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { noStream } from '../../src/event-store/event-store.ts';
import type { EventStore } from '../../src/event-store/event-store.ts';
import { createEventstoredbEventStore } from '../../src/event-store/eventstoredb.ts';
import { Fault as StoreFault } from '../../src/kernel/errors.ts';
import { collect, event, readToEnd } from '../contracts/event-store.ts';
import { revisions, useWorld } from '../support/eventstoredb/world.ts';

const world = useWorld();

describe('scenario 20: a shared event store', () => {
  it('neither foreign events nor `$` streams are delivered, read or counted', async () => {
    const store = world.open();
    world.appendForeign('foreign/s', 40);
    await store.append(world.stream, noStream, [event()]);
    world.appendForeign('foreign/s', 40);
    world.server.log.setSettings('foreign/s', { $maxCount: 1_000 });
    const { position } = await store.append(world.stream, 0, [event()]);
    world.appendForeign('foreign/s', 40);
    world.appendForeign(`x${world.prefix}s`, 3);
    expect(world.server.log.all.filter((record) => record.stream.startsWith('$')).length).toBeGreaterThan(10);
    expect(revisions((await readToEnd(store, null, { streamPrefix: world.prefix }, 10)).events)).toEqual([0, 1]);
    expect(await store.head({ streamPrefix: world.prefix })).toBe(position);
    expect(revisions(await collect(world.subscribe(store), world.abort, 'two events', (_, { end }) => end))).toEqual([0, 1]);
    const all = collect(store.subscribe(null, { streamPrefix: '' }, { limit: 1_000, signal: world.abort.signal }), world.abort, 'everything', (_, { end }) => end);
    expect((await all).filter((read) => read.stream.startsWith('$'))).toEqual([]);
    expect((await all).length).toBe(125);
  });

  it('the client’s own readAll ignores a filter', async () => {
    world.appendForeign('foreign/s', 3);
    const options = { fromPosition: END, direction: BACKWARDS, maxCount: 1, filter: streamNameFilter({ prefixes: [world.prefix] }) } as const;
    const streams: unknown[] = [];
    for await (const { event: read } of world.client().readAll(options)) streams.push(read?.streamId.startsWith(world.prefix));
    expect(streams).toEqual([false]);
  });

  it('much foreign history before the last own event costs few calls', async () => {
    const store = world.open();
    const { position } = await store.append(world.stream, noStream, [event()]);
    world.appendForeign('foreign/s', 2_000);
    const before = world.server.seen.length;
    expect(await store.head({ streamPrefix: world.prefix })).toBe(position);
    expect(world.server.seen.length - before).toBeLessThan(20);
  });

  it('rights that the user lacks are a Fault that names them, not an unavailable store', async () => {
    world.server.faults.next('read', 'deny');
    await expect(world.open().readAll(null, { streamPrefix: world.prefix }, 10)).rejects.toThrow(/rights/);
  });
});

describe('scenario 30: deletes inside the event store', () => {
  const anyway = { deadline: 5_000 };

  it('a stream that was deleted softly is a Fault, not an absent stream', async () => {
    const store = world.open();
    await store.append(world.stream, noStream, [event()]);
    await world.client().deleteStream(world.stream, anyway);
    await expect(store.readStream(world.stream, 0)).rejects.toThrow(`Stream ${world.stream} was deleted in the event store`);
    await expect(store.readStream(world.stream, 0)).rejects.toBeInstanceOf(StoreFault);
  });

  it('one that goes on after that shows its gap, to the appender and to every reader', async () => {
    const store = world.open();
    await store.append(world.stream, noStream, [event(), event()]);
    await world.client().deleteStream(world.stream, anyway);
    await expect(store.append(world.stream, noStream, [event()])).rejects.toBeInstanceOf(StoreFault);
    await expect(store.readStream(world.stream, 0)).rejects.toThrow(`Stream ${world.stream} has a gap at revision 0`);
  });

  it('a tombstone is a Fault for readers and writers', async () => {
    const store = world.open();
    await store.append(world.stream, noStream, [event()]);
    await world.client().tombstoneStream(world.stream, anyway);
    await expect(store.readStream(world.stream, 0)).rejects.toBeInstanceOf(StoreFault);
    await expect(store.append(world.stream, 0, [event()])).rejects.toBeInstanceOf(StoreFault);
  });

  it.each([
    ['$maxCount', { maxCount: 2 }, 'has a gap at revision 0'],
    ['$tb', { truncateBefore: 1 }, 'has a gap at revision 0'],
    ['$tb beyond the end', { truncateBefore: 9 }, 'was truncated'],
    ['$maxAge', { maxAge: 1 }, 'was truncated'],
  ])('%s set by an operator is a Fault, not a shorter history', async (_, settings, message) => {
    const store = world.open();
    await store.append(world.stream, noStream, [event(), event(), event()]);
    await world.client().setStreamMetadata(world.stream, settings);
    vi.useFakeTimers({ toFake: ['Date'], now: Date.now() + 10_000 });
    onTestFinished(() => void vi.useRealTimers());
    await expect(store.readStream(world.stream, 0)).rejects.toThrow(message);
    await expect(store.readStream(world.stream, 0)).rejects.toBeInstanceOf(StoreFault);
  });
});

describe('scenario 30: settings of streams that a start looks for', () => {
  const set = (stream: string, settings: Parameters<EventStoreDBClient['setStreamMetadata']>[1]) => world.client().setStreamMetadata(stream, settings, { deadline: 5_000 });

  it.each([
    ['$maxAge', { maxAge: 86_400 }],
    ['$maxCount', { maxCount: 1_000_000 }],
    ['$tb', { truncateBefore: 1 }],
  ])('%s on a stream of ours is a Fault that names both, before anything has gone', async (setting, settings) => {
    const store = world.open();
    await store.append(world.stream, noStream, [event(), event()]);
    await store.check(world.prefix);
    await set(world.stream, settings);
    await expect(store.check(world.prefix)).rejects.toEqual(
      new StoreFault(`The event store would let events of stream ${world.stream} go: ${setting} is set in its metadata and must be taken out`),
    );
    await set(world.stream, { cacheControl: 10 });
    await store.check(world.prefix);
  });

  it('a stream that was deleted softly, and one that is not there yet, are named as well', async () => {
    const store = world.open();
    await store.append(world.stream, noStream, [event()]);
    await world.client().deleteStream(world.stream, { deadline: 5_000 });
    await expect(store.check(world.prefix)).rejects.toThrow(`stream ${world.stream} go: $tb`);
    await set(world.stream, { truncateBefore: 0 });
    await set(`${world.prefix}later`, { maxCount: 1 });
    await expect(store.check(world.prefix)).rejects.toThrow(`stream ${world.prefix}later go: $maxCount`);
  });

  it('what others set on their streams, and metadata that are no settings, keep nobody from starting', async () => {
    const store = world.open();
    world.appendForeign('foreign/s', 2_000);
    await set('foreign/s', { maxCount: 1 });
    await set(`x${world.prefix}s`, { maxCount: 1 });
    world.appendForeign(`$$${world.stream}`);
    await store.check(world.prefix);
  });
});

describe('the URL', () => {
  it('never shows its password, not in errors and not in the client’s warnings', async () => {
    const warn = vi.spyOn(console, 'warn').mockImplementation(() => {});
    const url = world.server.url.replace('//', '//admin:s3cret@');
    const store = world.open({ url: `${url}&unheardOf=1` });
    await store.append(world.stream, noStream, [event()]);
    expect(warn.mock.calls.join()).not.toContain('s3cret');
    warn.mockRestore();
    for (const broken of ['esdb://admin:s3cret@', 'mysql://admin:s3cret@host', 'esdb://admin:s3cret/%@host?tls=false', 'esdb://admin:s3cret@host:port?tls=maybe']) {
      const opening = (): EventStore => createEventstoredbEventStore({ url: broken });
      expect(opening).toThrow(StoreFault);
      expect(opening).not.toThrow(/s3cret/);
    }
  });

  it('with TLS must hold credentials', () => {
    expect(() => createEventstoredbEventStore({ url: 'esdb://localhost:2113' })).toThrow('must hold a user and a password');
  });
});
