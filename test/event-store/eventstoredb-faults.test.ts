/** The EventStoreDB event store where the client or the server misbehaves: every known trap, on the loopback server. */
import { BACKWARDS, END, EventStoreDBClient, jsonEvent, START, streamNameFilter } from '@eventstore/db-client';
import { spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { noStream, StoreUnavailable, WrongExpectedRevision } from '../../src/event-store/event-store.ts';
import type { EventStore, Page, Position, StoredEvent } from '../../src/event-store/event-store.ts';
import { createEventstoredbEventStore } from '../../src/event-store/eventstoredb.ts';
import type { EventstoredbEventStoreOptions } from '../../src/event-store/eventstoredb.ts';
import { connect } from '../../src/event-store/eventstoredb/connection.ts';
import { Fault as StoreFault } from '../../src/kernel/errors.ts';
import { collect, event, readToEnd } from '../contracts/event-store.ts';
import type { Fault } from '../support/eventstoredb/faults.ts';
import { startEventstoredb } from '../support/eventstoredb/server.ts';
import type { Eventstoredb } from '../support/eventstoredb/server.ts';
import { until } from '../support/until.ts';

let server: Eventstoredb;
let prefix: string;
let stream: string;
let abort: AbortController;
const closing: (() => Promise<unknown>)[] = [];

beforeEach(async () => {
  prefix = `ins_${randomUUID()}/`;
  stream = `${prefix}s`;
  abort = new AbortController();
  await start();
});
afterEach(async () => {
  abort.abort();
  for (const close of closing.splice(0).reverse()) await close();
});

const start = async (members = 1): Promise<void> => {
  server = await startEventstoredb({ members });
  const started = server;
  closing.push(() => started.close());
};
const open = (options: Partial<EventstoredbEventStoreOptions> = {}): EventStore => {
  const store = createEventstoredbEventStore({ url: server.url, ...options });
  closing.push(() => store.close());
  return store;
};
const client = (): EventStoreDBClient => EventStoreDBClient.connectionString(server.url);
/** Appends as somebody else who uses the same server. */
const appendForeign = (to: string, count = 1): void => {
  for (let n = 0; n < count; n += 1)
    server.log.append(to, 'any', [{ id: randomUUID(), type: 'Foreign', contentType: 'application/json', data: '', metadata: '' }]);
};
const subscribe = (store: EventStore, after: Position | null = null, limit = 10): AsyncIterable<Page> =>
  store.subscribe(after, { streamPrefix: prefix }, { limit, signal: abort.signal });
const revisions = (events: readonly StoredEvent[]): number[] => events.map(({ revision }) => revision);
const upTo = (count: number): number[] => Array.from({ length: count }, (_, n) => n);

describe('scenario 12: appends whose outcome is unknown', () => {
  it.each([
    'store and drop',
    'store and fail',
    'store and time out',
    'store and conflict',
    'store without position',
    'drop',
    'fail',
    'no leader',
  ] satisfies Fault[])('“%s”: the same bytes are sent again, and the answer is the first one', async (fault) => {
    const store = open({ callTimeoutMs: 300 });
    await store.append(stream, noStream, [event()]);
    server.faults.next('append', fault);
    const sent = [event('a'), event('b')];
    const appended = await store.append(stream, 0, sent);
    const stored = await store.readStream(stream, 0);
    expect(stored.slice(1)).toMatchObject(sent);
    expect(stored).toHaveLength(3);
    expect(appended).toEqual({ revision: 2, position: stored[2]!.position });
  });

  it('several lost answers in a row end in one append', async () => {
    const store = open({ callTimeoutMs: 300 });
    server.faults.next('append', 'drop', 'fail', 'store and drop', 'fail', 'store and time out');
    expect((await store.append(stream, noStream, [event()])).revision).toBe(0);
    expect(await store.readStream(stream, 0)).toHaveLength(1);
  });

  it('a conflict found when the answer was lost is a conflict, not an unavailable store', async () => {
    const store = open({ callTimeoutMs: 300 });
    let take = (): void => {};
    server.faults.next('append', { holdUntil: new Promise<void>((resolve) => (take = resolve)) });
    const late = store.append(stream, noStream, [event('late')]);
    await until('the append on its way', () => server.seen.filter(({ method }) => method === 'append').length, (count) => count === 1);
    await open().append(stream, noStream, [event('first')]);
    await expect(late).rejects.toBeInstanceOf(WrongExpectedRevision);
    take();
    expect((await store.readStream(stream, 0)).map(({ data }) => data)).toEqual(['"first"']);
  });

  it('a server that never answers makes the append StoreUnavailable in time, and a later resend is settled', async () => {
    const store = open({ budgetMs: 400, callTimeoutMs: 150 });
    const sent = [event()];
    server.faults.next('append', 'store and drop', ...upTo(20).map(() => 'drop' as const));
    const begin = performance.now();
    await expect(store.append(stream, noStream, sent)).rejects.toBeInstanceOf(StoreUnavailable);
    expect(performance.now() - begin).toBeLessThan(2_000);
    server.faults.clear();
    expect((await store.append(stream, noStream, sent)).revision).toBe(0);
    expect(await store.readStream(stream, 0)).toHaveLength(1);
  });

  it('large appends under way when the server is killed are stored once, and do not end the process', async () => {
    const store = open();
    const many = upTo(20).map(() => ({ ...event(), data: `"${'x'.repeat(10_000)}"` }));
    const appends = upTo(5).map((n) => store.append(`${prefix}${n}`, noStream, many.map((one) => ({ ...one, id: randomUUID() }))));
    await until('an append on its way', () => server.seen.length, (count) => count > 0);
    server.kill();
    await server.start();
    expect((await Promise.all(appends)).map(({ revision }) => revision)).toEqual(upTo(5).map(() => 19));
    expect((await store.readStreams(upTo(5).map((n) => ({ stream: `${prefix}${n}`, fromRevision: 0 })))).map(({ length }) => length)).toEqual(upTo(5).map(() => 20));
  });

  it('every append is a call of its own with a deadline, at the leader; the shared batch call is never used', async () => {
    const store = open();
    await store.append(stream, noStream, [event()]);
    await store.append(stream, 0, [event(), event()]);
    expect(server.seen.filter(({ method }) => method === 'batchAppend')).toEqual([]);
    expect(server.seen.filter(({ method }) => method === 'append')).toMatchObject([
      { hasDeadline: true, requiresLeader: true },
      { hasDeadline: true, requiresLeader: true },
    ]);
  });

  it('the server ends the batch call: the client’s own append hangs, ours beside it does not', async () => {
    server.faults.next('batchAppend', 'end the call');
    let settled = false;
    void client()
      .appendToStream(`${prefix}raw`, jsonEvent({ type: 'Raw', data: {} }), { deadline: 100 })
      .catch(() => {})
      .finally(() => (settled = true));
    await until('the batch call', () => server.seen.filter(({ method }) => method === 'batchAppend').length, (count) => count === 1);
    const store = open();
    for (const revision of upTo(10)) await store.append(stream, revision - 1, [event()]);
    expect(settled).toBe(false);
  });

  it('the batch call fails: other clients’ batch appends fail with it, ours do not', async () => {
    const other = await startEventstoredb();
    closing.push(() => other.close());
    let release = (): void => {};
    other.faults.next('batchAppend', { storeAndHoldUntil: new Promise<void>((resolve) => (release = resolve)) });
    const healthy = EventStoreDBClient.connectionString(other.url).appendToStream('healthy', jsonEvent({ type: 'Raw', data: {} }));
    const rejected = expect(healthy).rejects.toMatchObject({ type: 'unavailable' });
    await until('the healthy append', () => other.seen.length, (count) => count === 1);
    server.faults.next('batchAppend', 'fail');
    await client().appendToStream(`${prefix}raw`, jsonEvent({ type: 'Raw', data: {} })).catch(() => {});
    await rejected;
    expect((await open({ url: other.url }).append(stream, noStream, [event()])).revision).toBe(0);
    other.kill(); // a late answer would end this process
    release();
  });

  it('the server answers twice: a process with the client’s own append dies', async () => {
    server.faults.next('batchAppend', 'answer twice');
    const script = fileURLToPath(new URL('../support/eventstoredb/append-with-client.ts', import.meta.url));
    const child = spawn(process.execPath, [script, server.url, `${prefix}raw`], { stdio: ['ignore', 'ignore', 'pipe'] });
    let errors = '';
    child.stderr.on('data', (text: Buffer) => (errors += text.toString()));
    const [code] = (await once(child, 'exit')) as [number];
    expect(errors).toContain('promiseBank.get(resultingId)');
    expect(code).not.toBe(0);
  });

  it('appends that begin while another call fails are neither lost nor the end of the process', async () => {
    const store = open();
    const chains = upTo(8).map(async (n) => {
      for (const revision of upTo(15)) {
        if (n === 0) server.faults.next('append', 'fail');
        await store.append(`${prefix}${n}`, revision - 1, [event()]);
      }
    });
    await Promise.all(chains);
    for (const n of upTo(8)) expect(revisions(await store.readStream(`${prefix}${n}`, 0))).toEqual(upTo(15));
  });

  it('a channel that a failing call closes still carries the append that is just about to begin', async () => {
    const { client: ours, options, close } = connect(server.url);
    const append = (revision: bigint | 'no_stream') => ours.appendToStream(stream, jsonEvent({ type: 'Raw', data: {} }), { ...options, expectedRevision: revision });
    await append('no_stream');
    const channel = await ours['getChannel']();
    const begun = append(0n);
    channel.close();
    expect(await begun).toMatchObject({ success: true, nextExpectedRevision: 1n });
    close();
  });

  it('throwOnAppendFailure=false: the client’s own append answers a conflict with a wrong revision', async () => {
    await open().append(stream, noStream, upTo(5).map(event));
    const raw = EventStoreDBClient.connectionString(`${server.url}&throwOnAppendFailure=false`);
    const answer = await raw.appendToStream(stream, jsonEvent({ type: 'Raw', data: {} }), { expectedRevision: 2n });
    expect(answer).toMatchObject({ success: false, nextExpectedRevision: 1n });
  });

  it('throwOnAppendFailure=false in the URL does not turn a conflict into a success', async () => {
    const store = open({ url: `${server.url}&throwOnAppendFailure=false` });
    await store.append(stream, noStream, [event(), event()]);
    await expect(store.append(stream, 0, [event()])).rejects.toEqual(new WrongExpectedRevision(stream, 0));
    await expect(store.append(stream, 7, [event()])).rejects.toEqual(new WrongExpectedRevision(stream, 7));
  });

  it('data and metadata are stored as the bytes they are, beside id and type', async () => {
    const sent = { ...event(), data: '{"b":1.0,"a":"\\u00e9"}', metadata: '{ "schema":1}' };
    await open().append(stream, noStream, [sent]);
    const stored = server.log.all.find(({ id }) => id === sent.id)!;
    expect(stored).toMatchObject({ type: sent.type, contentType: 'application/octet-stream' });
    expect([stored.data, stored.metadata].map((bytes) => Buffer.from(bytes, 'base64').toString())).toEqual([sent.data, sent.metadata]);
  });
});

describe('scenario 12: a server that is down', () => {
  it('rejects calls as StoreUnavailable, never with a raw gRPC error, and serves them when it is back', async () => {
    const store = open({ budgetMs: 200 });
    await store.append(stream, noStream, [event()]);
    server.kill();
    const calls: (() => Promise<unknown>)[] = [
      () => store.append(stream, 0, [event()]),
      () => store.readStream(stream, 0),
      () => store.readStreams([{ stream, fromRevision: 0 }]),
      () => store.readAll(null, { streamPrefix: prefix }, 10),
      () => store.readAt(`${'0'.repeat(20)}/${'0'.repeat(20)}` as Position),
      () => store.head({ streamPrefix: prefix }),
    ];
    for (const call of calls) await expect(call()).rejects.toBeInstanceOf(StoreUnavailable);
    await server.start();
    expect(await store.readStream(stream, 0)).toHaveLength(1);
    for (const call of calls) await call();
  });

  it('appends that wait for it are stored when it comes', async () => {
    server.kill();
    const store = open();
    const waiting = [0, 1, 2].map((n) => store.append(`${prefix}${n}`, noStream, [event()]));
    await expect(open({ budgetMs: 100 }).append(stream, noStream, [event()])).rejects.toBeInstanceOf(StoreUnavailable);
    await server.start();
    expect((await Promise.all(waiting)).map(({ revision }) => revision)).toEqual([0, 0, 0]);
  });

  it('reads that are left without an answer, which the client gives no deadline, end and are repeated', async () => {
    const store = open({ callTimeoutMs: 150 });
    await store.append(stream, noStream, [event()]);
    server.faults.next('read', 'drop', 'fail', 'no leader');
    expect(await store.readStream(stream, 0)).toHaveLength(1);
    server.faults.next('read', 'drop', 'drop', 'drop', 'drop');
    await expect(open({ callTimeoutMs: 100, budgetMs: 200 }).readStream(stream, 0)).rejects.toBeInstanceOf(StoreUnavailable);
  });

  it('refuses calls after it is closed, and answers those that wait', async () => {
    const store = open();
    const waiting = store.append(stream, noStream, [event()]);
    await store.close();
    expect((await waiting).revision).toBe(0);
    await expect(store.append(stream, 0, [event()])).rejects.toBeInstanceOf(StoreUnavailable);
    await expect(store.readStream(stream, 0)).rejects.toBeInstanceOf(StoreUnavailable);
  });
});

describe('scenario 13: several members', () => {
  beforeEach(() => start(3));

  it('a follower that is behind is never believed: all reads go to the leader', async () => {
    await open().append(stream, noStream, [event('before')]);
    server.holdBack(1);
    server.holdBack(2);
    const { position } = await open().append(stream, 0, [event('revoked')]);
    const store = open({ url: server.urlOf(1) });
    expect((await store.readStream(stream, 0)).map(({ data }) => data)).toEqual(['"before"', '"revoked"']);
    expect((await store.readStreams([{ stream, fromRevision: 1 }]))[0]).toHaveLength(1);
    expect((await store.readAt(position))?.data).toBe('"revoked"');
    expect(await store.head({ streamPrefix: prefix })).toBe(position);
    expect((await readToEnd(store, null, { streamPrefix: prefix })).events).toHaveLength(2);
    expect(server.seen.filter(({ requiresLeader }) => !requiresLeader)).toEqual([]);
  });

  it('the client’s own read at that follower is stale', async () => {
    await open().append(stream, noStream, [event('before')]);
    server.holdBack(1);
    await open().append(stream, 0, [event('revoked')]);
    let count = 0;
    for await (const _ of EventStoreDBClient.connectionString(server.urlOf(1)).readStream(stream)) count += 1;
    expect(count).toBe(1);
  });

  it('the leader changes: appends and reads follow it', async () => {
    const store = open();
    for (const revision of upTo(9)) {
      if (revision % 3 === 2) server.changeLeader((server.leader() + 1) % 3);
      await store.append(stream, revision - 1, [event()]);
      expect(await store.readStream(stream, revision)).toHaveLength(1);
    }
    expect(revisions(await store.readStream(stream, 0))).toEqual(upTo(9));
  });

  it('the leader dies: the next one is found by gossip', async () => {
    const store = open();
    await store.append(stream, noStream, [event()]);
    server.kill(0);
    server.changeLeader(2);
    expect((await store.append(stream, 0, [event()])).revision).toBe(1);
    expect(await store.readStream(stream, 0)).toHaveLength(2);
  });

  it('no member answers: StoreUnavailable in time', async () => {
    server.kill();
    const begin = performance.now();
    await expect(open({ budgetMs: 300 }).append(stream, noStream, [event()])).rejects.toBeInstanceOf(StoreUnavailable);
    expect(performance.now() - begin).toBeLessThan(2_000);
  });

  it('a subscription survives changes of the leader and the death of its member', async () => {
    const store = open({ pollMs: 200 });
    const seen = collect(subscribe(store), abort, 'nine events', ({ length }) => length === 9);
    for (const revision of upTo(9)) {
      await store.append(stream, revision - 1, [event()]);
      if (revision === 2) server.changeLeader(1);
      if (revision === 5) server.kill(0);
      if (revision === 7) server.endSubscriptions('fail');
    }
    expect(revisions(await seen)).toEqual(upTo(9));
  });

  it('a subscription at a member that falls behind in silence moves to the leader', async () => {
    const store = open({ pollMs: 200 });
    await store.append(stream, noStream, [event()]);
    const seen = collect(subscribe(store), abort, 'two events', ({ length }) => length === 2);
    await until('a subscription', () => server.subscriptions(), (count) => count === 1);
    server.holdBack(0);
    server.changeLeader(1);
    await store.append(stream, 0, [event()]);
    expect(revisions(await seen)).toEqual([0, 1]);
  });
});

describe('subscriptions', () => {
  it.each(['fail', 'end'] as const)('that the server lets %s begin again after the last event, in order and without doubles', async (how) => {
    const store = open();
    const seen = collect(subscribe(store), abort, 'thirty events', ({ length }) => length === 30);
    for (const revision of upTo(30)) {
      await store.append(stream, revision - 1, [event()]);
      if (revision % 7 === 3) server.endSubscriptions(how);
    }
    expect(revisions(await seen)).toEqual(upTo(30));
  });

  it('the client’s own subscription never begins again', async () => {
    const raw = client().subscribeToAll({ filter: streamNameFilter({ prefixes: [prefix] }) });
    raw.on('error', () => {});
    raw.resume();
    await until('the subscription', () => server.subscriptions(), (count) => count === 1);
    server.endSubscriptions('end');
    await once(raw, 'end');
    expect(server.subscriptions()).toBe(0);
  });

  it('survive a kill and a restart of the server, and one that is not there at the start', async () => {
    server.kill();
    const store = open();
    const iterator = subscribe(store)[Symbol.asyncIterator]();
    const first = iterator.next();
    await server.start();
    expect((await first).value).toMatchObject({ events: [], end: true });
    await store.append(stream, noStream, [event(), event()]);
    expect(revisions(((await iterator.next()).value as Page).events)).toEqual([0, 1]);
    server.kill();
    const later = iterator.next();
    await server.start();
    await store.append(stream, 1, [event()]);
    expect(revisions(((await later).value as Page).events)).toEqual([2]);
    abort.abort();
    expect((await iterator.next()).done).toBe(true);
  });

  it('do not trust silence for ever', async () => {
    server.faults.next('read', 'go silent');
    const store = open({ pollMs: 200 });
    const seen = collect(subscribe(store), abort, 'one event', ({ length }) => length === 1);
    await until('a subscription', () => server.subscriptions(), (count) => count === 1);
    await store.append(stream, noStream, [event()]);
    expect(revisions(await seen)).toEqual([0]);
  });

  it('say that the end was reached once the history is delivered, whatever the page size', async () => {
    const store = open();
    await store.append(stream, noStream, upTo(50).map(event));
    for (const limit of [1, 7, 50, 1_000]) {
      const events: StoredEvent[] = [];
      for await (const page of subscribe(store, null, limit)) {
        expect(page.events.length).toBeLessThanOrEqual(limit);
        events.push(...page.events);
        if (page.end) break;
      }
      expect(revisions(events)).toEqual(upTo(50));
    }
  });

  it('hold their place while a consumer is slower than the server', async () => {
    const store = open();
    for (const n of upTo(6)) await store.append(`${prefix}${n}`, noStream, upTo(200).map(event));
    const events: StoredEvent[] = [];
    for await (const page of subscribe(store, null, 100)) {
      await new Promise(setImmediate);
      events.push(...page.events);
      if (page.end) break;
    }
    expect(events).toEqual((await readToEnd(store, null, { streamPrefix: prefix }, 1_000)).events);
  });

  it('end when they are abandoned, and leave no call behind', async () => {
    const store = open();
    for await (const page of subscribe(store)) if (page.end) break;
    await until('no subscription', () => server.subscriptions(), (count) => count === 0);
  });

  it('scenario 5: end with a Fault when the log was rewound behind what they delivered', async () => {
    const store = open();
    await store.append(stream, noStream, [event()]);
    const records = server.log.all.length;
    await store.append(stream, 0, [event()]);
    const iterator = subscribe(store)[Symbol.asyncIterator]();
    const delivered: StoredEvent[] = [];
    while (delivered.length < 2) delivered.push(...((await iterator.next()).value as Page).events);
    const next = (async () => {
      for (;;) if ((await iterator.next()).done) return;
    })();
    const refused = expect(next).rejects.toBeInstanceOf(StoreFault);
    server.rewind(records);
    await server.start();
    await refused;
    expect(await store.readAt(delivered[1]!.position)).toBeUndefined();
    expect((await store.readAt(delivered[0]!.position))?.id).toBe(delivered[0]!.id);
  });

  it('scenario 28: a position that is no event’s is refused as none of this store', async () => {
    const store = open();
    await store.append(stream, noStream, [event(), event()]);
    const between = `${'1'.padStart(20, '0')}/${'1'.padStart(20, '0')}` as Position;
    await expect(subscribe(store, between)[Symbol.asyncIterator]().next()).rejects.toBeInstanceOf(RangeError);
    await expect(subscribe(store, 'elsewhere' as Position)[Symbol.asyncIterator]().next()).rejects.toBeInstanceOf(RangeError);
    await expect(store.readAll(between, { streamPrefix: prefix }, 10)).rejects.toBeInstanceOf(RangeError);
    expect(await store.readAt(between)).toBeUndefined();
  });
});

describe('scenario 6: checkpoints of the server', () => {
  it('run ahead of the consumer in the client', async () => {
    await open().append(stream, noStream, upTo(5).map(event));
    appendForeign('foreign', 64);
    let checkpoints = 0;
    const raw = client().subscribeToAll({
      fromPosition: START,
      filter: streamNameFilter({ prefixes: [prefix], checkpointReached: () => void (checkpoints += 1) }),
    });
    raw.on('error', () => {});
    raw.on('readable', () => {}); // reads into its buffer, hands out nothing
    await until('a checkpoint before any of five events was taken', () => checkpoints, (count) => count > 0);
    expect(raw.readableLength).toBe(5);
    await raw.unsubscribe();
  });

  it('never move a page beyond the events it delivered', async () => {
    const store = open();
    await store.append(stream, noStream, upTo(5).map(event));
    appendForeign('foreign', 3_000);
    await store.append(stream, 4, [event()]);
    const events: StoredEvent[] = [];
    for await (const page of subscribe(store, null, 2)) {
      events.push(...page.events);
      expect(page.position).toBe(events.at(-1)?.position ?? null);
      if (events.length === 6) break;
    }
    expect(revisions(events)).toEqual(upTo(6));
  });

  it('a consumer killed with undelivered events in the buffer resumes without loss', async () => {
    const store = open();
    await store.append(stream, noStream, upTo(40).map(event));
    appendForeign('foreign', 200);
    const applied: StoredEvent[] = [];
    let checkpoint: Position | null = null;
    while (applied.length < 40) {
      const life = new AbortController();
      let pages = 0;
      for await (const page of open().subscribe(checkpoint, { streamPrefix: prefix }, { limit: 5, signal: life.signal })) {
        if (++pages === 3) break;
        applied.push(...page.events);
        checkpoint = page.position;
      }
      life.abort();
    }
    expect(revisions(applied)).toEqual(upTo(40));
  });
});

describe('scenario 20: a shared event store', () => {
  it('neither foreign events nor `$` streams are delivered, read or counted', async () => {
    const store = open();
    appendForeign('foreign/s', 40);
    await store.append(stream, noStream, [event()]);
    appendForeign('foreign/s', 40);
    server.log.setSettings('foreign/s', { $maxCount: 1_000 });
    const { position } = await store.append(stream, 0, [event()]);
    appendForeign('foreign/s', 40);
    appendForeign(`x${prefix}s`, 3);
    expect(server.log.all.filter((record) => record.stream.startsWith('$')).length).toBeGreaterThan(10);
    expect(revisions((await readToEnd(store, null, { streamPrefix: prefix }, 10)).events)).toEqual([0, 1]);
    expect(await store.head({ streamPrefix: prefix })).toBe(position);
    expect(revisions(await collect(subscribe(store), abort, 'two events', (_, { end }) => end))).toEqual([0, 1]);
    const all = collect(store.subscribe(null, { streamPrefix: '' }, { limit: 1_000, signal: abort.signal }), abort, 'everything', (_, { end }) => end);
    expect((await all).filter((read) => read.stream.startsWith('$'))).toEqual([]);
    expect((await all).length).toBe(125);
  });

  it('the client’s own readAll ignores a filter', async () => {
    appendForeign('foreign/s', 3);
    const options = { fromPosition: END, direction: BACKWARDS, maxCount: 1, filter: streamNameFilter({ prefixes: [prefix] }) } as const;
    const streams: unknown[] = [];
    for await (const { event: read } of client().readAll(options)) streams.push(read?.streamId.startsWith(prefix));
    expect(streams).toEqual([false]);
  });

  it('much foreign history before the last own event costs few calls', async () => {
    const store = open();
    const { position } = await store.append(stream, noStream, [event()]);
    appendForeign('foreign/s', 2_000);
    const before = server.seen.length;
    expect(await store.head({ streamPrefix: prefix })).toBe(position);
    expect(server.seen.length - before).toBeLessThan(20);
  });

  it('rights that the user lacks are a Fault that names them, not an unavailable store', async () => {
    server.faults.next('read', 'deny');
    await expect(open().readAll(null, { streamPrefix: prefix }, 10)).rejects.toThrow(/rights/);
  });
});

describe('scenario 30: deletes inside the event store', () => {
  const anyway = { deadline: 5_000 };

  it('a stream that was deleted softly is a Fault, not an absent stream', async () => {
    const store = open();
    await store.append(stream, noStream, [event()]);
    await client().deleteStream(stream, anyway);
    await expect(store.readStream(stream, 0)).rejects.toThrow(`Stream ${stream} was deleted in the event store`);
    await expect(store.readStream(stream, 0)).rejects.toBeInstanceOf(StoreFault);
  });

  it('one that goes on after that shows its gap, to the appender and to every reader', async () => {
    const store = open();
    await store.append(stream, noStream, [event(), event()]);
    await client().deleteStream(stream, anyway);
    await expect(store.append(stream, noStream, [event()])).rejects.toBeInstanceOf(StoreFault);
    await expect(store.readStream(stream, 0)).rejects.toThrow(`Stream ${stream} has a gap at revision 0`);
  });

  it('a tombstone is a Fault for readers and writers', async () => {
    const store = open();
    await store.append(stream, noStream, [event()]);
    await client().tombstoneStream(stream, anyway);
    await expect(store.readStream(stream, 0)).rejects.toBeInstanceOf(StoreFault);
    await expect(store.append(stream, 0, [event()])).rejects.toBeInstanceOf(StoreFault);
  });

  it.each([
    ['$maxCount', { maxCount: 2 }, 'has a gap at revision 0'],
    ['$tb', { truncateBefore: 1 }, 'has a gap at revision 0'],
    ['$tb beyond the end', { truncateBefore: 9 }, 'was truncated'],
  ])('%s set by an operator is a Fault, not a shorter history', async (_, settings, message) => {
    const store = open();
    await store.append(stream, noStream, [event(), event(), event()]);
    await client().setStreamMetadata(stream, settings);
    await expect(store.readStream(stream, 0)).rejects.toThrow(message);
    await expect(store.readStream(stream, 0)).rejects.toBeInstanceOf(StoreFault);
  });
});

describe('the URL', () => {
  it('never shows its password, not in errors and not in the client’s warnings', async () => {
    const warn = vi.spyOn(console, 'warn').mockImplementation(() => {});
    const url = server.url.replace('//', '//admin:s3cret@');
    const store = open({ url: `${url}&unheardOf=1` });
    await store.append(stream, noStream, [event()]);
    expect(warn.mock.calls.join()).not.toContain('s3cret');
    warn.mockRestore();
    for (const broken of ['esdb://admin:s3cret@', 'mysql://admin:s3cret@host', 'esdb://admin:s3cret@host:port?tls=maybe']) {
      const opening = (): EventStore => createEventstoredbEventStore({ url: broken });
      expect(opening).toThrow(StoreFault);
      expect(opening).not.toThrow(/s3cret/);
    }
  });

  it('with TLS must hold credentials', () => {
    expect(() => createEventstoredbEventStore({ url: 'esdb://localhost:2113' })).toThrow('must hold a user and a password');
  });
});
