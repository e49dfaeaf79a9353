/** EventStoreDB with several members: followers that are behind, leaders that change and die. */
import { describe, expect, it } from 'vitest';
import { noStream, StoreUnavailable } from '../../src/event-store/event-store.ts';
import { collect, event, readToEnd } from '../contracts/event-store.ts';
import { revisions, upTo, useWorld } from '../support/eventstoredb/world.ts';
import { until } from '../support/until.ts';

const world = useWorld({ members: 3 });

describe('scenario 13: several members', () => {
  it('a follower that is behind is never believed: all reads go to the leader', async () => {
    await world.open().append(world.stream, noStream, [event('before')]);
    world.server.holdBack(1);
    world.server.holdBack(2);
    const { position } = await world.open().append(world.stream, 0, [event('revoked')]);
    const store = world.open({ url: world.server.urlOf(1) });
    expect((await store.readStream(world.stream, 0)).map(({ data }) => data)).toEqual(['"before"', '"revoked"']);
    expect((await store.readStreams([{ stream: world.stream, fromRevision: 1 }]))[0]).toHaveLength(1);
    expect((await store.readAt(position))?.data).toBe('"revoked"');
    expect(await store.head({ streamPrefix: world.prefix })).toBe(position);
    expect((await readToEnd(store, null, { streamPrefix: world.prefix })).events).toHaveLength(2);
    expect(world.server.seen.filter(({ requiresLeader }) => !requiresLeader)).toEqual([]);
  });

  it('the client’s own read at that follower is stale', async () => {
    await world.open().append(world.stream, noStream, [event('before')]);
    world.server.holdBack(1);
    await world.open().append(world.stream, 0, [event('revoked')]);
    let count = 0;
    for await (const _ of world.client(world.server.urlOf(1)).readStream(world.stream)) count += 1;
    expect(count).toBe(1);
  });

  it('the leader changes: appends and reads follow it', async () => {
    const store = world.open();
    for (const revision of upTo(9)) {
      if (revision % 3 === 2) world.server.changeLeader((world.server.leader() + 1) % 3);
      await store.append(world.stream, revision - 1, [event()]);
      expect(await store.readStream(world.stream, revision)).toHaveLength(1);
    }
    expect(revisions(await store.readStream(world.stream, 0))).toEqual(upTo(9));
  });

  it('the leader dies: the next one is found by gossip', async () => {
    const store = world.open();
    await store.append(world.stream, noStream, [event()]);
    world.server.kill(0);
    world.server.changeLeader(2);
    expect((await store.append(world.stream, 0, [event()])).revision).toBe(1);
    expect(await store.readStream(world.stream, 0)).toHaveLength(2);
  });

  it('no member answers: StoreUnavailable in time', async () => {
    world.server.kill();
    await expect(world.open({ budgetMs: 300 }).append(world.stream, noStream, [event()])).rejects.toBeInstanceOf(StoreUnavailable);
  });

  it('a subscription survives changes of the leader and the death of its member', async () => {
    const store = world.open({ pollMs: 200 });
    const seen = collect(world.subscribe(store), world.abort, 'nine events', ({ length }) => length === 9);
    for (const revision of upTo(9)) {
      await store.append(world.stream, revision - 1, [event()]);
      if (revision === 2) world.server.changeLeader(1);
      if (revision === 5) world.server.kill(0);
      if (revision === 7) world.server.endSubscriptions('fail');
    }
    expect(revisions(await seen)).toEqual(upTo(9));
  });

  it('a subscription at a member that falls behind in silence moves to the leader', async () => {
    const store = world.open({ pollMs: 200 });
    await store.append(world.stream, noStream, [event()]);
    const seen = collect(world.subscribe(store), world.abort, 'two events', ({ length }) => length === 2);
    await until('a subscription', () => world.server.subscriptions(), (count) => count === 1);
    world.server.holdBack(0);
    world.server.changeLeader(1);
    await store.append(world.stream, 0, [event()]);
    expect(revisions(await seen)).toEqual([0, 1]);
  });
});
