/** Subscriptions to EventStoreDB: that they go on, that they lose nothing, and that they never pretend. */
import { START, streamNameFilter } from '@eventstore/db-client';
import { once } from 'node:events';
import { describe, expect, it } from 'vitest';
import { noStream } from '../../src/event-store/event-store.ts';
import type { Page, Position, StoredEvent } from '../../src/event-store/event-store.ts';
import { Fault as StoreFault } from '../../src/kernel/errors.ts';
import { collect, event, readToEnd } from '../contracts/event-store.ts';
import { revisions, upTo, useWorld } from '../support/eventstoredb/world.ts';
import { until } from '../support/until.ts';

const world = useWorld();

describe('subscriptions', () => {
  it.each(['fail', 'end'] as const)('that the server lets %s begin again after the last event, in order and without doubles', async (how) => {
    const store = world.open();
    const seen = collect(world.subscribe(store), world.abort, 'thirty events', ({ length }) => length === 30);
    for (const revision of upTo(30)) {
      await store.append(world.stream, revision - 1, [event()]);
      if (revision % 7 === 3) world.server.endSubscriptions(how);
    }
    expect(revisions(await seen)).toEqual(upTo(30));
  });

  it('the client’s own subscription never begins again', async () => {
    const raw = world.client().subscribeToAll({ filter: streamNameFilter({ prefixes: [world.prefix] }) });
    raw.on('error', () => {});
    raw.resume();
    await until('the subscription', () => world.server.subscriptions(), (count) => count === 1);
    world.server.endSubscriptions('end');
    await once(raw, 'end');
    expect(world.server.subscriptions()).toBe(0);
  });

  it('survive a kill and a restart of the server, and one that is not there at the start', async () => {
    world.server.kill();
    const store = world.open();
    const iterator = world.subscribe(store)[Symbol.asyncIterator]();
    const first = iterator.next();
    await world.server.start();
    expect((await first).value).toMatchObject({ events: [], end: true });
    await store.append(world.stream, noStream, [event(), event()]);
    expect(revisions(((await iterator.next()).value as Page).events)).toEqual([0, 1]);
    world.server.kill();
    const later = iterator.next();
    await world.server.start();
    await store.append(world.stream, 1, [event()]);
    expect(revisions(((await later).value as Page).events)).toEqual([2]);
    world.abort.abort();
    expect((await iterator.next()).done).toBe(true);
  });

  it('do not trust silence for ever', async () => {
    world.server.faults.next('read', 'go silent');
    const store = world.open({ pollMs: 200 });
    const seen = collect(world.subscribe(store), world.abort, 'one event', ({ length }) => length === 1);
    await until('a subscription', () => world.server.subscriptions(), (count) => count === 1);
    await store.append(world.stream, noStream, [event()]);
    expect(revisions(await seen)).toEqual([0]);
  });

  it('say that the end was reached once the history is delivered, whatever the page size', async () => {
    const store = world.open();
    await store.append(world.stream, noStream, upTo(50).map(event));
    for (const limit of [1, 7, 50, 1_000]) {
      const events: StoredEvent[] = [];
      for await (const page of world.subscribe(store, null, limit)) {
        expect(page.events.length).toBeLessThanOrEqual(limit);
        events.push(...page.events);
        if (page.end) break;
      }
      expect(revisions(events)).toEqual(upTo(50));
    }
  });

  it('hold their place while a consumer is slower than the server', async () => {
    const store = world.open();
    for (const n of upTo(6)) await store.append(`${world.prefix}${n}`, noStream, upTo(200).map(event));
    const events: StoredEvent[] = [];
    for await (const page of world.subscribe(store, null, 100)) {
      await new Promise(setImmediate);
      events.push(...page.events);
      if (page.end) break;
    }
    expect(events).toEqual((await readToEnd(store, null, { streamPrefix: world.prefix }, 1_000)).events);
  });

  it('end when they are abandoned, and leave no call behind', async () => {
    const store = world.open();
    for await (const page of world.subscribe(store)) if (page.end) break;
    await until('no subscription', () => world.server.subscriptions(), (count) => count === 0);
  });

  it('scenario 5: end with a Fault when the log was rewound behind what they delivered', async () => {
    const store = world.open();
    await store.append(world.stream, noStream, [event()]);
    const records = world.server.log.all.length;
    await store.append(world.stream, 0, [event()]);
    const iterator = world.subscribe(store)[Symbol.asyncIterator]();
    const delivered: StoredEvent[] = [];
    while (delivered.length < 2) delivered.push(...((await iterator.next()).value as Page).events);
    const next = (async () => {
      for (;;) if ((await iterator.next()).done) return;
    })();
    const refused = expect(next).rejects.toBeInstanceOf(StoreFault);
    world.server.rewind(records);
    await world.server.start();
    await refused;
    expect(await store.readAt(delivered[1]!.position)).toBeUndefined();
    expect((await store.readAt(delivered[0]!.position))?.id).toBe(delivered[0]!.id);
  });

  it('scenario 28: a position that is no event’s is refused as none of this store', async () => {
    const store = world.open();
    await store.append(world.stream, noStream, [event(), event()]);
    const between = `${'1'.padStart(20, '0')}/${'1'.padStart(20, '0')}` as Position;
    await expect(world.subscribe(store, between)[Symbol.asyncIterator]().next()).rejects.toBeInstanceOf(RangeError);
    await expect(world.subscribe(store, 'elsewhere' as Position)[Symbol.asyncIterator]().next()).rejects.toBeInstanceOf(RangeError);
    await expect(store.readAll(between, { streamPrefix: world.prefix }, 10)).rejects.toBeInstanceOf(RangeError);
    expect(await store.readAt(between)).toBeUndefined();
  });
});

describe('scenario 6: checkpoints of the server', () => {
  it('run ahead of the consumer in the client', async () => {
    await world.open().append(world.stream, noStream, upTo(5).map(event));
    world.appendForeign('foreign', 64);
    let checkpoints = 0;
    const raw = world.client().subscribeToAll({
      fromPosition: START,
      filter: streamNameFilter({ prefixes: [world.prefix], checkpointReached: () => void (checkpoints += 1) }),
    });
    raw.on('error', () => {});
    raw.on('readable', () => {}); // reads into its buffer, hands out nothing
    await until('a checkpoint before any of five events was taken', () => checkpoints, (count) => count > 0);
    expect(raw.readableLength).toBe(5);
    await raw.unsubscribe();
  });

  it('never move a page beyond the events it delivered', async () => {
    const store = world.open();
    await store.append(world.stream, noStream, upTo(5).map(event));
    world.appendForeign('foreign', 3_000);
    await store.append(world.stream, 4, [event()]);
    const events: StoredEvent[] = [];
    for await (const page of world.subscribe(store, null, 2)) {
      events.push(...page.events);
      expect(page.position).toBe(events.at(-1)?.position ?? null);
      if (events.length === 6) break;
    }
    expect(revisions(events)).toEqual(upTo(6));
  });

  it('a consumer killed with undelivered events in the buffer resumes without loss', async () => {
    const store = world.open();
    await store.append(world.stream, noStream, upTo(40).map(event));
    world.appendForeign('foreign', 200);
    const applied: StoredEvent[] = [];
    let checkpoint: Position | null = null;
    while (applied.length < 40) {
      const life = new AbortController();
      let pages = 0;
      for await (const page of world.open().subscribe(checkpoint, { streamPrefix: world.prefix }, { limit: 5, signal: life.signal })) {
        if (++pages === 3) break;
        applied.push(...page.events);
        checkpoint = page.position;
      }
      life.abort();
    }
    expect(revisions(applied)).toEqual(upTo(40));
  });
});
