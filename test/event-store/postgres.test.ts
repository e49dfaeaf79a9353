/** The PostgreSQL event store: the contract, and what it does when connections, processes or the server fail. */
import { spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import pg from 'pg';
import { afterEach, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import { noStream, StoreUnavailable, WrongExpectedRevision } from '../../src/event-store/event-store.ts';
import type { EventStore, Page } from '../../src/event-store/event-store.ts';
import { createPostgresEventStore } from '../../src/event-store/postgres.ts';
import type { PostgresEventStoreOptions } from '../../src/event-store/postgres.ts';
import { collect, describeEventStore, event, readToEnd } from '../contracts/event-store.ts';
import { createDatabase } from '../support/database.ts';
import type { TestDatabase } from '../support/database.ts';
import { startTcpProxy } from '../support/tcp-proxy.ts';
import type { TcpProxy } from '../support/tcp-proxy.ts';

describeEventStore('PostgreSQL', async () => {
  const { url, pool } = await createDatabase();
  return () => createPostgresEventStore({ url, pool });
});

describe('PostgreSQL event store', () => {
  let database: TestDatabase;
  let prefix: string;
  let stream: string;
  const closing: (() => Promise<unknown>)[] = [];

  beforeAll(async () => {
    database = await createDatabase();
  });
  beforeEach(() => {
    prefix = `ins_${randomUUID()}/`;
    stream = `${prefix}s`;
  });
  afterEach(async () => {
    for (const close of closing.splice(0).reverse()) await close();
  });

  const open = (options: Partial<PostgresEventStoreOptions> = {}): EventStore => {
    const store = createPostgresEventStore({ ...database, ...options });
    closing.push(() => store.close());
    return store;
  };
  const openProxy = async (): Promise<TcpProxy> => {
    const proxy = await startTcpProxy(database.url);
    closing.push(() => proxy.close());
    return proxy;
  };
  const connect = async (): Promise<pg.Client> => {
    const client = new pg.Client(database.url);
    await client.connect();
    closing.push(() => client.end());
    return client;
  };
  const terminate = async (applicationName: string): Promise<number> =>
    (
      await database.pool.query(
        `select pg_terminate_backend(pid) from pg_stat_activity where application_name = $1 and datname = current_database()`,
        [applicationName],
      )
    ).rows.length;

  describe('the group-commit lane', () => {
    it('judges appends to one stream that wait together in the order they came', async () => {
      const store = open();
      const twice = event();
      const outcomes = await Promise.allSettled([
        store.append(stream, noStream, [twice]),
        store.append(stream, 0, [event(), event()]),
        store.append(stream, 0, [event()]),
        store.append(stream, noStream, [twice]),
        store.append(stream, 2, [event()]),
        store.append(`${prefix}t`, 5, [event()]),
        store.append(`${prefix}t`, noStream, [event()]),
      ]);
      const answer = (outcome: PromiseSettledResult<{ revision: number }>) =>
        outcome.status === 'fulfilled' ? outcome.value.revision : (outcome.reason as Error).name;
      expect(outcomes.map(answer)).toEqual([0, 2, 'WrongExpectedRevision', 0, 3, 'WrongExpectedRevision', 0]);
      expect(outcomes[3]).toEqual(outcomes[0]);
      expect(await store.readStream(stream, 0)).toHaveLength(4);
    });

    it('notifies once for all appends of a call', async () => {
      const listener = await connect();
      let notifications = 0;
      listener.on('notification', ({ channel }) => (notifications += channel === 'event_appended' ? 1 : 0));
      await listener.query('listen event_appended');
      const store = open();
      await Promise.all(Array.from({ length: 64 }, (_, n) => store.append(`${prefix}${n}`, noStream, [event()])));
      await listener.query('select'); // answered behind every notification sent before
      expect(notifications).toBe(1);
    });

    it('an append the database refuses fails alone', async () => {
      const client = await connect();
      await client.query(`create function refuse_poison() returns trigger language plpgsql
                            as $$ begin raise exception 'poison'; end $$`);
      await client.query(`create trigger refuse_poison before insert on event
                            for each row when (new.type = 'Poison') execute function refuse_poison()`);
      const store = open();
      const outcomes = await Promise.allSettled([
        store.append(`${prefix}a`, noStream, [event()]),
        store.append(stream, noStream, [{ ...event(), type: 'Poison' }]),
        store.append(`${prefix}b`, noStream, [event()]),
      ]);
      expect(outcomes.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled']);
      expect(outcomes[1]).toMatchObject({ reason: { message: 'poison' } });
      expect((await store.append(stream, noStream, [event()])).revision).toBe(0);
    });

    it('refuses appends after it is closed, and answers those that wait', async () => {
      const store = open();
      const waiting = store.append(stream, noStream, [event()]);
      await store.close();
      expect((await waiting).revision).toBe(0);
      await expect(store.append(stream, 0, [event()])).rejects.toBeInstanceOf(StoreUnavailable);
    });
  });

  describe('scenario 12: unknown outcomes', () => {
    it('an answer lost after the commit is settled by sending the same bytes again', async () => {
      const proxy = await openProxy();
      const store = open({ url: proxy.url });
      await store.append(stream, noStream, [event()]);
      const lost = proxy.loseNextAnswer();
      const appended = await store.append(stream, 0, [event(), event()]);
      await lost;
      const stored = await store.readStream(stream, 0);
      expect(stored).toHaveLength(3);
      expect(appended).toEqual({ revision: 2, position: stored[2]!.position });
    });

    it('an append whose time ended while it waited is not stored by a later call; one that was under way has the answer of its call', async () => {
      const store = open({ appendBudgetMs: 200 });
      await store.append(stream, noStream, [event()]);
      const holder = await connect();
      await holder.query(`select pg_advisory_lock('event'::regclass::oid::bigint)`);
      const inFlight = store.append(stream, 0, [event()]);
      await vi.waitUntil(async () => (await holder.query(`select from pg_locks where locktype = 'advisory' and not granted`)).rows.length === 1, { timeout: 30_000, interval: 5 });
      await expect(store.append(`${prefix}late`, noStream, [event()])).rejects.toBeInstanceOf(StoreUnavailable);
      await holder.query('select pg_advisory_unlock_all()');
      expect((await inFlight).revision).toBe(1);
      await store.append(`${prefix}next`, noStream, [event()]);
      expect(await store.readStream(`${prefix}late`, 0)).toEqual([]);
    });

    it('connections that are ended are replaced without anybody noticing', async () => {
      const store = open();
      for (let revision = noStream; revision < 20; revision += 5) {
        const appends = Promise.all([0, 1, 2, 3, 4].map((n) => store.append(stream, revision + n, [event()])));
        await terminate('exuvia append');
        await appends;
      }
      expect(await store.readStream(stream, 0)).toHaveLength(25);
    });

    it.each(['refuse', 'swallow answers'] as const)('a server that does %s makes the append StoreUnavailable in time', async (how) => {
      const proxy = await openProxy();
      const store = open({ url: proxy.url, appendBudgetMs: 2_000 });
      await store.append(stream, noStream, [event()]);
      proxy.behave(how);
      if (how === 'refuse') proxy.cut();
      const sent = [event()];
      await expect(store.append(stream, 0, sent)).rejects.toBeInstanceOf(StoreUnavailable);
      proxy.behave('pass');
      proxy.cut();
      const later = open();
      expect((await later.append(stream, 0, sent)).revision).toBe(1);
      expect(await later.readStream(stream, 0)).toHaveLength(2);
    });

    it('appends that wait while the server is away are stored when it is back', async () => {
      const proxy = await openProxy();
      const store = open({ url: proxy.url });
      proxy.behave('refuse');
      const waiting = [0, 1, 2].map((n) => store.append(stream, n - 1, [event()]));
      await expect(open({ url: proxy.url, appendBudgetMs: 100 }).append(`${prefix}t`, noStream, [event()])).rejects.toThrow(StoreUnavailable);
      proxy.behave('pass');
      expect((await Promise.all(waiting)).map(({ revision }) => revision)).toEqual([0, 1, 2]);
    });

    it('an unreachable server makes reads StoreUnavailable', async () => {
      const proxy = await openProxy();
      const pool = new pg.Pool({ connectionString: proxy.url });
      closing.push(() => pool.end());
      proxy.behave('refuse');
      await expect(open({ pool }).readStream(stream, 0)).rejects.toBeInstanceOf(StoreUnavailable);
    });
  });

  describe('scenario 23: the append lock is never held across a round trip', () => {
    it('a process that is suspended while it appends stops nobody', async () => {
      const script = fileURLToPath(new URL('./append-without-end.ts', import.meta.url));
      const child = spawn(process.execPath, [script, database.url, `${prefix}suspended`], { stdio: ['ignore', 'pipe', 'inherit'] });
      const exited = once(child, 'exit');
      closing.push(async () => {
        child.kill('SIGKILL');
        await exited;
      });
      await once(child.stdout, 'data');
      const store = open({ appendBudgetMs: 20_000 });
      for (let revision = noStream; revision < 20; revision += 1) {
        child.kill('SIGSTOP');
        expect((await store.append(stream, revision, [event()])).revision).toBe(revision + 1);
        child.kill('SIGCONT');
      }
    });

    it('open transactions elsewhere stop neither appends nor readers', async () => {
      const store = open({ appendBudgetMs: 20_000 });
      const other = await connect();
      await other.query('create table elsewhere (number integer)');
      await other.query('begin');
      await other.query('insert into elsewhere values (1)');
      await other.query('select count(*) from event');
      const { position } = await store.append(stream, noStream, [event()]);
      expect((await readToEnd(open(), null, { streamPrefix: prefix })).events.map((read) => read.position)).toEqual([position]);
      await other.query('rollback');
    });

    it('no lock is left when an append is answered', async () => {
      await open().append(stream, noStream, [event()]);
      const { rows } = await database.pool.query(
        `select * from pg_locks where locktype = 'advisory' and database = (select oid from pg_database where datname = current_database())`,
      );
      expect(rows).toEqual([]);
    });

    it('a lock held by a stuck server process ends in StoreUnavailable, not in waiting', async () => {
      const stuck = await connect();
      await stuck.query('begin');
      await stuck.query(`select pg_advisory_xact_lock('event'::regclass::oid::bigint)`);
      const store = open({ appendBudgetMs: 300 });
      await expect(store.append(stream, noStream, [event()])).rejects.toBeInstanceOf(StoreUnavailable);
      await stuck.query('rollback');
    });
  });

  describe('reads', () => {
    it('scenario 26: the tails of many streams cost one statement', async () => {
      const store = open();
      await Promise.all([0, 1, 2, 3].map((n) => store.append(`${prefix}${n}`, noStream, [event(n)])));
      let statements = 0;
      const count = (): void => void (statements += 1);
      database.pool.on('acquire', count);
      const answers = await store.readStreams([0, 1, 2, 3].map((n) => ({ stream: `${prefix}${n}`, fromRevision: 0 })));
      database.pool.off('acquire', count);
      expect(answers.map((events) => events.map(({ data }) => data))).toEqual([['0'], ['1'], ['2'], ['3']]);
      expect(statements).toBe(1);
    });

    it('scenario 30: what is stored cannot be changed, deleted or truncated', async () => {
      await open().append(stream, noStream, [event()]);
      for (const statement of [`update event set data = '{}'`, 'delete from event', 'truncate event'])
        await expect(database.pool.query(statement)).rejects.toThrow('never changed');
    });
  });

  describe('subscriptions', () => {
    const next = async (iterator: AsyncIterator<Page>): Promise<Page> => (await iterator.next()).value as Page;

    it.each(['exuvia listen', 'exuvia append'])('go on after the connection “%s” is ended', async (connection) => {
      const store = open({ pollMs: 100 });
      const abort = new AbortController();
      const pages = store.subscribe(null, { streamPrefix: prefix }, { limit: 10, signal: abort.signal });
      const seen = collect(pages, abort, 'ten events', (events) => events.length === 10);
      for (let revision = noStream; revision < 9; revision += 1) {
        await store.append(stream, revision, [event()]);
        await terminate(connection);
      }
      expect((await seen).map(({ revision }) => revision)).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
      abort.abort();
    });

    it('survive a server that goes away for reads as well, and resume where they were', async () => {
      const proxy = await openProxy();
      const pool = new pg.Pool({ connectionString: proxy.url });
      pool.on('error', () => {});
      closing.push(() => pool.end());
      const store = open({ pool, url: proxy.url, pollMs: 100 });
      const writer = open();
      const abort = new AbortController();
      const pages = store.subscribe(null, { streamPrefix: prefix }, { limit: 10, signal: abort.signal });
      const iterator = pages[Symbol.asyncIterator]();
      await writer.append(stream, noStream, [event()]);
      expect((await next(iterator)).events).toHaveLength(1);
      proxy.behave('refuse');
      proxy.cut();
      const later = next(iterator);
      await writer.append(stream, 0, [event()]);
      proxy.behave('pass');
      expect((await later).events.map(({ revision }) => revision)).toEqual([1]);
      abort.abort();
      expect((await iterator.next()).done).toBe(true);
    });

    it('poll when notifications do not come', async () => {
      const proxy = await openProxy();
      proxy.behave('refuse');
      const store = open({ url: proxy.url, pollMs: 50 });
      const abort = new AbortController();
      const pages = store.subscribe(null, { streamPrefix: prefix }, { limit: 10, signal: abort.signal });
      const seen = collect(pages, abort, 'one event', (events) => events.length === 1);
      await open().append(stream, noStream, [event()]);
      await seen;
    });

    it('many share one LISTEN connection', async () => {
      const store = open();
      const abort = new AbortController();
      const seen = Array.from({ length: 10 }, () =>
        collect(
          store.subscribe(null, { streamPrefix: prefix }, { limit: 10, signal: abort.signal }),
          abort,
          'one event',
          (events) => events.length === 1,
        ),
      );
      await store.append(stream, noStream, [event()]);
      await Promise.all(seen);
      const { rows } = await database.pool.query(
        `select count(*)::integer as count from pg_stat_activity where application_name = 'exuvia listen' and datname = current_database()`,
      );
      expect(rows).toEqual([{ count: 1 }]);
    });

    it('end with the error when it is no passing one', async () => {
      const store = open();
      const signal = new AbortController().signal;
      const pages = store.subscribe('elsewhere' as never, { streamPrefix: prefix }, { limit: 10, signal });
      await expect(pages[Symbol.asyncIterator]().next()).rejects.toBeInstanceOf(RangeError);
    });
  });

  it('conflicts are told apart from an unavailable store', async () => {
    await expect(open().append(stream, 3, [event()])).rejects.toBeInstanceOf(WrongExpectedRevision);
  });
});
