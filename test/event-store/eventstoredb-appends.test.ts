/** Appends to EventStoreDB whose outcome is unknown, and a server that is down. */
import { jsonEvent } from '@eventstore/db-client';
import { spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { noStream, StoreUnavailable, WrongExpectedRevision } from '../../src/event-store/event-store.ts';
import type { Position } from '../../src/event-store/event-store.ts';
import { connect } from '../../src/event-store/eventstoredb/connection.ts';
import { event } from '../contracts/event-store.ts';
import type { Fault } from '../support/eventstoredb/faults.ts';
import { revisions, upTo, useWorld } from '../support/eventstoredb/world.ts';
import { until } from '../support/until.ts';

const world = useWorld();

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
    const store = world.open({ callTimeoutMs: 300 });
    await store.append(world.stream, noStream, [event()]);
    world.server.faults.next('append', fault);
    const sent = [event('a'), event('b')];
    const appended = await store.append(world.stream, 0, sent);
    const stored = await store.readStream(world.stream, 0);
    expect(stored.slice(1)).toMatchObject(sent);
    expect(stored).toHaveLength(3);
    expect(appended).toEqual({ revision: 2, position: stored[2]!.position });
  });

  it('several lost answers in a row end in one append', async () => {
    const store = world.open({ callTimeoutMs: 300 });
    world.server.faults.next('append', 'drop', 'fail', 'store and drop', 'fail', 'store and time out');
    expect((await store.append(world.stream, noStream, [event()])).revision).toBe(0);
    expect(await store.readStream(world.stream, 0)).toHaveLength(1);
  });

  it('a conflict found when the answer was lost is a conflict, not an unavailable store', async () => {
    const store = world.open({ callTimeoutMs: 300 });
    let take = (): void => {};
    world.server.faults.next('append', { holdUntil: new Promise<void>((resolve) => (take = resolve)) });
    const late = store.append(world.stream, noStream, [event('late')]);
    await until('the append on its way', () => world.server.seen.filter(({ method }) => method === 'append').length, (count) => count === 1);
    await world.open().append(world.stream, noStream, [event('first')]);
    await expect(late).rejects.toBeInstanceOf(WrongExpectedRevision);
    take();
    expect((await store.readStream(world.stream, 0)).map(({ data }) => data)).toEqual(['"first"']);
  });

  it('a server that never answers makes the append StoreUnavailable in time, and a later resend is settled', async () => {
    const store = world.open({ budgetMs: 400, callTimeoutMs: 150 });
    const sent = [event()];
    world.server.faults.next('append', 'store and drop', ...upTo(1_000).map(() => 'drop' as const));
    await expect(store.append(world.stream, noStream, sent)).rejects.toBeInstanceOf(StoreUnavailable);
    world.server.faults.clear();
    expect((await store.append(world.stream, noStream, sent)).revision).toBe(0);
    expect(await store.readStream(world.stream, 0)).toHaveLength(1);
  });

  it('large appends under way when the server is killed are stored once, and do not end the process', async () => {
    const store = world.open();
    const many = upTo(20).map(() => ({ ...event(), data: `"${'x'.repeat(10_000)}"` }));
    const appends = upTo(5).map((n) => store.append(`${world.prefix}${n}`, noStream, many.map((one) => ({ ...one, id: randomUUID() }))));
    await until('an append on its way', () => world.server.seen.length, (count) => count > 0);
    world.server.kill();
    await world.server.start();
    expect((await Promise.all(appends)).map(({ revision }) => revision)).toEqual(upTo(5).map(() => 19));
    expect((await store.readStreams(upTo(5).map((n) => ({ stream: `${world.prefix}${n}`, fromRevision: 0 })))).map(({ length }) => length)).toEqual(upTo(5).map(() => 20));
  });

  it('every append is a call of its own with a deadline, at the leader; the shared batch call is never used', async () => {
    const store = world.open();
    await store.append(world.stream, noStream, [event()]);
    await store.append(world.stream, 0, [event(), event()]);
    expect(world.server.seen.filter(({ method }) => method === 'batchAppend')).toEqual([]);
    expect(world.server.seen.filter(({ method }) => method === 'append')).toMatchObject([
      { hasDeadline: true, requiresLeader: true },
      { hasDeadline: true, requiresLeader: true },
    ]);
  });

  it('the server ends the batch call: the client’s own append hangs, ours beside it does not', async () => {
    world.server.faults.next('batchAppend', 'end the call');
    let settled = false;
    void world.client()
      .appendToStream(`${world.prefix}raw`, jsonEvent({ type: 'Raw', data: {} }), { deadline: 100 })
      .catch(() => {})
      .finally(() => (settled = true));
    await until('the batch call', () => world.server.seen.filter(({ method }) => method === 'batchAppend').length, (count) => count === 1);
    const store = world.open();
    for (const revision of upTo(10)) await store.append(world.stream, revision - 1, [event()]);
    expect(settled).toBe(false);
  });

  it('the batch call fails: other clients’ batch appends fail with it, ours do not', async () => {
    const other = await world.startAnother();
    let release = (): void => {};
    other.faults.next('batchAppend', { storeAndHoldUntil: new Promise<void>((resolve) => (release = resolve)) });
    const healthy = world.client(other.url).appendToStream('healthy', jsonEvent({ type: 'Raw', data: {} }));
    const rejected = expect(healthy).rejects.toMatchObject({ type: 'unavailable' });
    await until('the healthy append', () => other.seen.length, (count) => count === 1);
    world.server.faults.next('batchAppend', 'fail');
    await world.client().appendToStream(`${world.prefix}raw`, jsonEvent({ type: 'Raw', data: {} })).catch(() => {});
    await rejected;
    expect((await world.open({ url: other.url }).append(world.stream, noStream, [event()])).revision).toBe(0);
    other.kill(); // a late answer would end this process
    release();
  });

  /** Another process, with the client as it comes. */
  const appendWithClient = (...urls: readonly [string, string?]) => {
    const script = fileURLToPath(new URL('../support/eventstoredb/append-with-client.ts', import.meta.url));
    const child = spawn(process.execPath, [script, urls[0], `${world.prefix}raw`, ...urls.slice(1).map(String)], { stdio: 'pipe' });
    let errors = '';
    child.stderr.on('data', (text: Buffer) => (errors += text.toString()));
    return { child, ended: once(child, 'exit').then(([code]) => ({ code: code as number, errors })) };
  };

  it('the server answers twice: a process with the client’s own append dies', async () => {
    world.server.faults.next('batchAppend', 'answer twice');
    const { code, errors } = await appendWithClient(world.server.url).ended;
    expect(errors).toContain('promiseBank.get(resultingId)');
    expect(code).not.toBe(0);
  });

  it('the server answers late, after another client’s call failed: a process with the client’s own appends dies', async () => {
    const late = await world.startAnother();
    const answer = Promise.withResolvers<void>();
    late.faults.next('batchAppend', { storeAndHoldUntil: answer.promise });
    world.server.faults.next('batchAppend', 'fail');
    const { child, ended } = appendWithClient(world.server.url, late.url);
    await until('the append that is answered late', () => late.seen.length, (count) => count === 1);
    const settled = once(child.stdout, 'data');
    child.stdin.write('go\n');
    await settled;
    answer.resolve();
    const { code, errors } = await ended;
    expect(errors).toContain('promiseBank.get(resultingId)');
    expect(code).not.toBe(0);
  });

  it('an answer to ours that comes after its deadline changes nothing', async () => {
    const store = world.open({ callTimeoutMs: 150 });
    const answer = Promise.withResolvers<void>();
    world.server.faults.next('append', { storeAndHoldUntil: answer.promise });
    expect((await store.append(world.stream, noStream, [event()])).revision).toBe(0);
    answer.resolve();
    expect((await store.append(world.stream, 0, [event()])).revision).toBe(1);
    expect(revisions(await store.readStream(world.stream, 0))).toEqual([0, 1]);
  });

  it('appends that begin while another call fails are neither lost nor the end of the process', async () => {
    const store = world.open();
    const chains = upTo(8).map(async (n) => {
      for (const revision of upTo(15)) {
        if (n === 0) world.server.faults.next('append', 'fail');
        await store.append(`${world.prefix}${n}`, revision - 1, [event()]);
      }
    });
    await Promise.all(chains);
    for (const n of upTo(8)) expect(revisions(await store.readStream(`${world.prefix}${n}`, 0))).toEqual(upTo(15));
  });

  it('a channel that a failing call closes still carries the append that is just about to begin', async () => {
    const { client: ours, options, close } = connect(world.server.url);
    const append = (revision: bigint | 'no_stream') => ours.appendToStream(world.stream, jsonEvent({ type: 'Raw', data: {} }), { ...options, expectedRevision: revision });
    await append('no_stream');
    const channel = await ours['getChannel']();
    const begun = append(0n);
    channel.close();
    expect(await begun).toMatchObject({ success: true, nextExpectedRevision: 1n });
    close();
  });

  it('throwOnAppendFailure=false: the client’s own append answers a conflict with a wrong revision', async () => {
    await world.open().append(world.stream, noStream, upTo(5).map(event));
    const raw = world.client(`${world.server.url}&throwOnAppendFailure=false`);
    const answer = await raw.appendToStream(world.stream, jsonEvent({ type: 'Raw', data: {} }), { expectedRevision: 2n });
    expect(answer).toMatchObject({ success: false, nextExpectedRevision: 1n });
  });

  it('throwOnAppendFailure=false in the URL does not turn a conflict into a success', async () => {
    const store = world.open({ url: `${world.server.url}&throwOnAppendFailure=false` });
    await store.append(world.stream, noStream, [event(), event()]);
    await expect(store.append(world.stream, 0, [event()])).rejects.toEqual(new WrongExpectedRevision(world.stream, 0));
    await expect(store.append(world.stream, 7, [event()])).rejects.toEqual(new WrongExpectedRevision(world.stream, 7));
  });

  it('data and metadata are stored as the bytes they are, beside id and type', async () => {
    const sent = { ...event(), data: '{"b":1.0,"a":"\\u00e9"}', metadata: '{ "schema":1}' };
    await world.open().append(world.stream, noStream, [sent]);
    const stored = world.server.log.all.find(({ id }) => id === sent.id)!;
    expect(stored).toMatchObject({ type: sent.type, contentType: 'application/octet-stream' });
    expect([stored.data, stored.metadata].map((bytes) => Buffer.from(bytes, 'base64').toString())).toEqual([sent.data, sent.metadata]);
  });
});

describe('scenario 12: a server that is down', () => {
  it('makes the client’s own read fail with a raw gRPC error', async () => {
    world.server.kill();
    const read = async () => {
      for await (const _ of world.client().readStream(world.stream)) break;
    };
    await expect(read()).rejects.toMatchObject({ code: 14 });
  });

  it('rejects calls as StoreUnavailable, never with a raw gRPC error, and serves them when it is back', async () => {
    const store = world.open({ budgetMs: 3_000 });
    await store.append(world.stream, noStream, [event()]);
    world.server.kill();
    const calls: (() => Promise<unknown>)[] = [
      () => store.append(world.stream, 0, [event()]),
      () => store.readStream(world.stream, 0),
      () => store.readStreams([{ stream: world.stream, fromRevision: 0 }]),
      () => store.readAll(null, { streamPrefix: world.prefix }, 10),
      () => store.readAt(`${'0'.repeat(20)}/${'0'.repeat(20)}` as Position),
      () => store.head({ streamPrefix: world.prefix }),
    ];
    await Promise.all(calls.map((call) => expect(call()).rejects.toBeInstanceOf(StoreUnavailable)));
    await world.server.start();
    expect(await store.readStream(world.stream, 0)).toHaveLength(1);
    for (const call of calls) await call();
  });

  it('appends that wait for it are stored when it comes', async () => {
    world.server.kill();
    const store = world.open();
    const waiting = [0, 1, 2].map((n) => store.append(`${world.prefix}${n}`, noStream, [event()]));
    await expect(world.open({ budgetMs: 100 }).append(world.stream, noStream, [event()])).rejects.toBeInstanceOf(StoreUnavailable);
    await world.server.start();
    expect((await Promise.all(waiting)).map(({ revision }) => revision)).toEqual([0, 0, 0]);
  });

  it('reads that are left without an answer, which the client gives no deadline, end and are repeated', async () => {
    const store = world.open({ callTimeoutMs: 150 });
    await store.append(world.stream, noStream, [event()]);
    world.server.faults.next('read', 'drop', 'fail', 'no leader');
    expect(await store.readStream(world.stream, 0)).toHaveLength(1);
    world.server.faults.next('read', 'drop', 'drop', 'drop', 'drop');
    await expect(world.open({ callTimeoutMs: 100, budgetMs: 200 }).readStream(world.stream, 0)).rejects.toBeInstanceOf(StoreUnavailable);
  });

  it('refuses calls after it is closed, and answers those that wait', async () => {
    const store = world.open();
    const waiting = store.append(world.stream, noStream, [event()]);
    await store.close();
    expect((await waiting).revision).toBe(0);
    await expect(store.append(world.stream, 0, [event()])).rejects.toBeInstanceOf(StoreUnavailable);
    await expect(store.readStream(world.stream, 0)).rejects.toBeInstanceOf(StoreUnavailable);
  });
});
