/** An EventStoreDB with TLS, users and access lists, and the rights a start looks for. */
import { jsonEvent } from '@eventstore/db-client';
import { beforeEach, describe, expect, it, vi } from 'vitest';
import { noStream, StoreUnavailable } from '../../src/event-store/event-store.ts';
import { Fault } from '../../src/kernel/errors.ts';
import { collect, event, readToEnd } from '../contracts/event-store.ts';
import type { Right } from '../support/eventstoredb/access.ts';
import { revisions, useWorld } from '../support/eventstoredb/world.ts';

const world = useWorld({
  users: {
    admin: { password: 'changeit', groups: ['$admins'] },
    exuvia: { password: 's3cret', groups: ['products'] },
  },
});

const open = (user = 'exuvia') => world.open({ url: world.server.urlAs(user) });
const anyway = { deadline: 5_000 };

/** As the administrator of the event store would. */
const letReadAll = async (...readRoles: readonly string[]): Promise<void> =>
  void (await world.client(world.server.urlAs('admin')).setStreamMetadata('$all', { acl: { readRoles: [...readRoles] } }, anyway));
const setDefaultRights = async (userStreams: Readonly<Partial<Record<Right, string>>>): Promise<void> =>
  void (await world.client(world.server.urlAs('admin')).appendToStream('$settings', jsonEvent({ type: 'update-default-acl', data: { $userStreamAcl: userStreams } }), anyway));

describe('TLS and credentials of the URL', () => {
  it('go with every call: appends, reads of a stream and of all, and subscriptions', async () => {
    await letReadAll('products');
    const store = open();
    const { position } = await store.append(world.stream, noStream, [event(), event()]);
    expect(revisions(await store.readStream(world.stream, 0))).toEqual([0, 1]);
    expect(revisions((await readToEnd(store, null, { streamPrefix: world.prefix })).events)).toEqual([0, 1]);
    expect((await store.readAt(position))?.revision).toBe(1);
    expect(revisions(await collect(world.subscribe(store), world.abort, 'two events', ({ length }) => length === 2))).toEqual([0, 1]);
  });

  it('a user or a password that the server does not know is a Fault that shows neither', async () => {
    for (const user of ['exuvia:wrong', 'nobody:s3cret']) {
      const store = world.open({ url: world.server.url.replace('//', `//${user}@`) });
      await expect(store.readStream(world.stream, 0)).rejects.toEqual(new Fault('EventStoreDB does not accept the user and the password of its URL'));
      await expect(store.append(world.stream, noStream, [event()])).rejects.toBeInstanceOf(Fault);
      await expect(store.check()).rejects.toThrow('does not accept the user');
    }
    expect(world.server.log.all.filter(({ stream }) => stream === world.stream)).toEqual([]);
  });

  it('a certificate that nobody vouches for is not trusted, whatever the URL says of verifying', async () => {
    const warn = vi.spyOn(console, 'warn').mockImplementation(() => {});
    const url = world.server.urlAs('admin').replace(/tlsCAFile=[^&]*/, 'tlsVerifyCert=false');
    await expect(world.open({ url, budgetMs: 300 }).append(world.stream, noStream, [event()])).rejects.toBeInstanceOf(StoreUnavailable);
    expect(world.server.seen).toEqual([]);
    expect(warn.mock.calls.join()).not.toContain('changeit');
    warn.mockRestore();
  });

  it('the file of the certificate authority that is not there is named', () => {
    const url = world.server.urlAs('admin').replace(/tlsCAFile=[^&]*/, 'tlsCAFile=/nowhere/ca.pem');
    expect(() => world.open({ url })).toThrow(/certificate/);
  });
});

describe('scenario 20: the rights a start looks for', () => {
  beforeEach(() => letReadAll('$admins', 'exuvia'));

  it('a user with all of them passes, and so does an administrator; nothing is written', async () => {
    const records = world.server.log.all.length;
    for (const user of ['exuvia', 'admin']) {
      await open(user).check(world.prefix);
      await open(user).check();
    }
    expect(world.server.log.all).toHaveLength(records);
  });

  it('$all is read by administrators only, unless its metadata say otherwise', async () => {
    await letReadAll('$admins');
    const sentence = 'The event store does not let its user exuvia read $all: it lacks the right $r on $all';
    await expect(open().check(world.prefix)).rejects.toEqual(new Fault(sentence));
    await expect(open().check()).rejects.toEqual(new Fault(sentence));
    await letReadAll('products');
    await open().check(world.prefix);
  });

  it.each([
    ['$r', 'read stream'],
    ['$w', 'append to stream'],
    ['$mr', 'read the metadata of stream'],
  ] as const)('the right %s that $settings keep to others is a Fault that names it', async (right, what) => {
    await setDefaultRights({ [right]: '$admins' });
    await expect(open().check(world.prefix)).rejects.toEqual(
      new Fault(`The event store does not let its user exuvia ${what} ${world.prefix}store: it lacks the right ${right}`),
    );
    await open('admin').check(world.prefix);
  });

  it('a right that is taken away later is a Fault, not an unavailable store', async () => {
    const store = open();
    await store.append(world.stream, noStream, [event()]);
    await world.client(world.server.urlAs('admin')).setStreamMetadata(world.stream, { acl: { writeRoles: ['$admins'] } }, anyway);
    await expect(store.append(world.stream, 0, [event()])).rejects.toThrow(/rights/);
    expect(await store.readStream(world.stream, 0)).toHaveLength(1);
  });
});
