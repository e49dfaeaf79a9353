/** What every event store must do, run against each adapter. */
import { randomUUID } from 'node:crypto';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { UnstorableAppend } from '../../src/event-store/check-append.ts';
import { appendBytes, AppendTooLarge, maxAppendBytes, noStream, WrongExpectedRevision } from '../../src/event-store/event-store.ts';
import type { EventStore, Filter, Page, Position, StoredEvent } from '../../src/event-store/event-store.ts';
import type { EventBytes } from '../../src/kernel/event.ts';

/** Opens one more instance on the same store, as another process would. */
export type OpenEventStore = () => EventStore;

export const event = (data: unknown = {}): EventBytes => ({
  id: randomUUID(),
  type: 'SomethingHappened',
  data: JSON.stringify(data),
  metadata: '{"schema":1}',
});

/** All events after a position, and where reading ended. */
export const readToEnd = async (store: EventStore, after: Position | null, filter: Filter, limit = 100) => {
  const events: StoredEvent[] = [];
  const pages: Page[] = [];
  for (let end = false; !end; ) {
    const page = await store.readAll(pages.at(-1)?.position ?? after, filter, limit);
    pages.push(page);
    events.push(...page.events);
    end = page.end;
  }
  return { events, pages, position: pages.at(-1)!.position };
};

/** Reads a subscription until the condition holds on what came so far; fails after 30 s saying what was missing. */
export const collect = async (
  pages: AsyncIterable<Page>,
  abort: AbortController,
  what: string,
  enough: (events: readonly StoredEvent[], page: Page) => boolean,
): Promise<readonly StoredEvent[]> => {
  const events: StoredEvent[] = [];
  let late = false;
  const timer = setTimeout(() => {
    late = true;
    abort.abort();
  }, 30_000);
  try {
    for await (const page of pages) {
      events.push(...page.events);
      if (enough(events, page)) return events;
    }
  } finally {
    clearTimeout(timer);
  }
  throw new Error(`The subscription ${late ? 'did not bring' : 'ended before'} ${what}; it brought ${events.length} events`);
};

const distinct = (events: readonly StoredEvent[]): StoredEvent[] => [...new Map(events.map((event) => [event.id, event])).values()];

/**
 * Defines the suite; `create` is called once and answers with how to open instances on one store. Fewer appends per
 * writer suit a store whose every call crosses a wire.
 */
export const describeEventStore = (name: string, create: () => Promise<OpenEventStore>, { appendsPerWriter = 40 }: { readonly appendsPerWriter?: number } = {}): void => {
  describe(`event store: ${name}`, () => {
    let open: OpenEventStore;
    let store: EventStore;
    let filter: Filter;
    let stream: (name: string) => string;
    let abort: AbortController;
    let created: Promise<OpenEventStore> | undefined;
    const instances: EventStore[] = [];

    beforeEach(async () => {
      const openOne = await (created ??= create());
      open = () => {
        const instance = openOne();
        instances.push(instance);
        return instance;
      };
      store = open();
      filter = { streamPrefix: `ins_${randomUUID()}/` };
      stream = (name) => `${filter.streamPrefix}${name}`;
      abort = new AbortController();
    });

    afterEach(async () => {
      abort.abort();
      await Promise.all(instances.splice(0).map((instance) => instance.close()));
    });

    const subscribe = (after: Position | null, limit = 10): AsyncIterable<Page> =>
      store.subscribe(after, filter, { limit, signal: abort.signal });

    describe('append', () => {
      it('begins a stream at revision 0 and goes on from the expected revision', async () => {
        const [a, b, c] = [event('a'), event('b'), event('c')];
        const first = await store.append(stream('s'), noStream, [a]);
        const second = await store.append(stream('s'), 0, [b, c]);
        expect([first.revision, second.revision]).toEqual([0, 2]);
        const stored = await store.readStream(stream('s'), 0);
        expect(stored).toEqual([
          { ...a, stream: stream('s'), revision: 0, position: first.position },
          { ...b, stream: stream('s'), revision: 1, position: stored[1]!.position },
          { ...c, stream: stream('s'), revision: 2, position: second.position },
        ]);
      });

      it.each([
        ['a stream that exists already', noStream],
        ['a revision the stream has passed', 0],
        ['a revision the stream has not reached', 2],
      ])('refuses %s and stores nothing', async (_, expected) => {
        await store.append(stream('s'), noStream, [event(), event()]);
        const before = await store.readStream(stream('s'), 0);
        const refused = store.append(stream('s'), expected, [event()]);
        await expect(refused).rejects.toEqual(new WrongExpectedRevision(stream('s'), expected));
        await expect(refused).rejects.toMatchObject({ stream: stream('s'), expected });
        expect(await store.readStream(stream('s'), 0)).toEqual(before);
      });

      it('refuses a revision of a stream that does not exist', async () => {
        await expect(store.append(stream('s'), 0, [event()])).rejects.toBeInstanceOf(WrongExpectedRevision);
        expect(await store.readStream(stream('s'), 0)).toEqual([]);
      });

      it('answers a resend as the first time, also later and through another instance', async () => {
        const sent = [event(), event()];
        const first = await store.append(stream('s'), noStream, sent);
        expect(await store.append(stream('s'), noStream, sent)).toEqual(first);
        const next = [event()];
        const later = await store.append(stream('s'), 1, next);
        expect(await open().append(stream('s'), noStream, sent)).toEqual(first);
        expect(await open().append(stream('s'), 1, next)).toEqual(later);
        expect(await store.readStream(stream('s'), 0)).toHaveLength(3);
      });

      it('refuses ids that are stored at another revision', async () => {
        const sent = event();
        await store.append(stream('s'), noStream, [event(), sent, event()]);
        await expect(store.append(stream('s'), noStream, [sent])).rejects.toBeInstanceOf(WrongExpectedRevision);
        await expect(store.append(stream('s'), 1, [sent])).rejects.toBeInstanceOf(WrongExpectedRevision);
        expect((await store.append(stream('other'), noStream, [sent])).revision).toBe(0);
      });

      it('refuses a resend of which only a part is stored, and stores none of it', async () => {
        const [a, b, c] = [event(), event(), event()];
        await store.append(stream('s'), noStream, [a, b]);
        await expect(store.append(stream('s'), noStream, [a, b, c])).rejects.toBeInstanceOf(WrongExpectedRevision);
        await expect(store.append(stream('s'), noStream, [a, c])).rejects.toBeInstanceOf(WrongExpectedRevision);
        expect((await store.readStream(stream('s'), 0)).map(({ id }) => id)).toEqual([a.id, b.id]);
      });

      it('stores all events of an append or none', async () => {
        const many = Array.from({ length: 200 }, (_, n) => event(n));
        const other = open();
        const outcomes = await Promise.allSettled([store.append(stream('s'), noStream, many), other.append(stream('s'), noStream, [event()])]);
        expect(outcomes.map(({ status }) => status).sort()).toEqual(['fulfilled', 'rejected']);
        expect([1, 200]).toContain((await store.readStream(stream('s'), 0)).length);
      });

      it('scenario 14: takes an append of exactly the largest size and refuses one byte more', async () => {
        const small = event();
        const padded = { ...small, data: small.data + ' '.repeat(maxAppendBytes - appendBytes([small])) };
        await expect(store.append(stream('s'), noStream, [{ ...padded, data: `${padded.data} ` }])).rejects.toBeInstanceOf(AppendTooLarge);
        expect(await store.readStream(stream('s'), 0)).toEqual([]);
        await store.append(stream('s'), noStream, [padded]);
        expect((await store.readStream(stream('s'), 0))[0]!.data).toBe(padded.data);
      });

      it('scenario 14: counts bytes, not characters, over all events of the append', async () => {
        const half = { ...event(), data: '€'.repeat(maxAppendBytes / 6) };
        await store.append(stream('s'), noStream, [half]);
        await expect(store.append(stream('s'), 0, [half, half])).rejects.toBeInstanceOf(AppendTooLarge);
      });

      it('scenario 29: data and metadata come back byte for byte, member order and escapes included', async () => {
        const bytes = {
          id: randomUUID(),
          type: 'Höchst„seltsam“',
          data: '{"b":1,"a":{"z":"\\u0000\\ud800 \\u20ac € 𝄞","10":1,"9":2},"b":1.50,"n":1e20}',
          metadata: ' {"tab":"\\t",\t"quote":"\\"","backslash":"\\\\ {},;\'"}\r\n',
        };
        await store.append(stream('s'), noStream, [bytes]);
        const [read] = await store.readStream(stream('s'), 0);
        expect(read).toMatchObject(bytes);
        expect((await readToEnd(store, null, filter)).events).toEqual([read]);
      });

      it.each([
        ['a NUL character', { data: '"\0"' }],
        ['a lone surrogate', { metadata: '"\ud800"' }],
        ['a type without a name', { type: '' }],
        ['an id that would come back in lower case', { id: randomUUID().toUpperCase() }],
      ])('scenario 29: refuses %s before anything is sent', async (_, part) => {
        const refused = store.append(stream('s'), noStream, [event(), { ...event(), ...part }]);
        const beside = store.append(stream('beside'), noStream, [event()]);
        await expect(refused).rejects.toBeInstanceOf(UnstorableAppend);
        expect((await beside).revision).toBe(0);
        expect(await store.readStream(stream('s'), 0)).toEqual([]);
      });

      it.each([
        ['no events', 'name', noStream, 0],
        ['a revision below no stream', 'name', -2, 1],
        ['a fraction of a revision', 'name', 0.5, 1],
        ['a very long stream name', 'n'.repeat(600), noStream, 1],
      ])('refuses %s', async (_, name, revision, count) => {
        const events = Array.from({ length: count }, () => event());
        await expect(store.append(stream(name), revision, events)).rejects.toBeInstanceOf(UnstorableAppend);
      });

      it('lets exactly one of two instances win each revision', async () => {
        const other = open();
        for (let revision = noStream; revision < 20; revision += 1) {
          const outcomes = await Promise.allSettled([store, other].map((one) => one.append(stream('s'), revision, [event()])));
          expect(outcomes.map(({ status }) => status).sort()).toEqual(['fulfilled', 'rejected']);
          const lost = outcomes.find((outcome) => outcome.status === 'rejected')!;
          expect(lost.reason).toBeInstanceOf(WrongExpectedRevision);
        }
        expect(await store.readStream(stream('s'), 0)).toHaveLength(21);
      });
    });

    describe('readStream and readStreams', () => {
      it('read from a revision on, and nothing where there is nothing', async () => {
        await store.append(stream('s'), noStream, [event('a'), event('b'), event('c')]);
        expect((await store.readStream(stream('s'), 1)).map(({ revision }) => revision)).toEqual([1, 2]);
        expect(await store.readStream(stream('s'), 3)).toEqual([]);
        expect(await store.readStream(stream('absent'), 0)).toEqual([]);
      });

      it('see an append that another instance has acknowledged', async () => {
        const other = open();
        for (let revision = 0; revision < 20; revision += 1) {
          await other.append(stream('s'), revision - 1, [event()]);
          expect(await store.readStream(stream('s'), revision)).toHaveLength(1);
        }
      });

      it('answer many requests in their order, doubled and empty ones too', async () => {
        await store.append(stream('a'), noStream, [event('a0'), event('a1')]);
        await store.append(stream('b'), noStream, [event('b0')]);
        const requests = [
          { stream: stream('b'), fromRevision: 0 },
          { stream: stream('absent'), fromRevision: 0 },
          { stream: stream('a'), fromRevision: 1 },
          { stream: stream('a'), fromRevision: 0 },
          { stream: stream('a'), fromRevision: 7 },
        ];
        const answers = await store.readStreams(requests);
        expect(answers.map((events) => events.map(({ data }) => data))).toEqual([['"b0"'], [], ['"a1"'], ['"a0"', '"a1"'], []]);
        expect(answers[3]).toEqual(await store.readStream(stream('a'), 0));
        expect(await store.readStreams([])).toEqual([]);
      });
    });

    describe('readAll, readAt and head', () => {
      const appendSome = async (): Promise<void> => {
        await store.append(stream('a'), noStream, [event(), event()]);
        await store.append('foreign/a', (await store.readStream('foreign/a', 0)).length - 1, [event()]);
        await store.append(stream('b'), noStream, [event()]);
        await store.append(stream('a'), 1, [event(), event()]);
        await store.append('foreign/a', (await store.readStream('foreign/a', 0)).length - 1, [event()]);
      };

      it('gives one order over all streams, the same for every page size', async () => {
        await appendSome();
        const { events } = await readToEnd(store, null, filter);
        expect(events.map(({ stream, revision }) => [stream, revision])).toEqual([
          [stream('a'), 0],
          [stream('a'), 1],
          [stream('b'), 0],
          [stream('a'), 2],
          [stream('a'), 3],
        ]);
        for (const limit of [1, 2, 3, 7]) expect((await readToEnd(store, null, filter, limit)).events).toEqual(events);
      });

      it('scenario 28: positions ascend as text by code units', async () => {
        for (let revision = noStream; revision < 20; revision += 1) await store.append(stream('s'), revision, [event()]);
        const positions = (await readToEnd(store, null, filter)).events.map(({ position }) => position);
        expect(positions).toEqual([...new Set(positions)].sort());
        expect(new Set(positions.map(({ length }) => length)).size).toBe(1);
      });

      it('scenario 20: moves past what the filter does not keep, and never shows it', async () => {
        await appendSome();
        const { events, pages, position } = await readToEnd(store, null, filter, 2);
        expect(events.every(({ stream }) => stream.startsWith(filter.streamPrefix))).toBe(true);
        expect(position! > events.at(-1)!.position).toBe(true);
        for (const page of pages) {
          const rest = events.filter(({ position }) => page.position === null || position > page.position);
          expect((await readToEnd(store, page.position, filter)).events).toEqual(rest);
        }
        expect((await readToEnd(store, null, { streamPrefix: '' })).events.filter(({ stream }) => stream.startsWith('$'))).toEqual([]);
      });

      it('says that the end was reached, and stays where it was', async () => {
        await appendSome();
        const { position } = await readToEnd(store, null, filter);
        expect(await store.readAll(position, filter, 10)).toEqual({ events: [], position, end: true });
        expect((await store.readAll(null, filter, 1)).end).toBe(false);
      });

      it('finds the event at a position again, and no event at another store’s position', async () => {
        await appendSome();
        for (const event of (await readToEnd(store, null, filter)).events) expect(await store.readAt(event.position)).toEqual(event);
        expect(await store.readAt('elsewhere' as Position)).toBeUndefined();
        await expect(store.readAll('elsewhere' as Position, filter, 10)).rejects.toBeInstanceOf(RangeError);
      });

      it('knows the last event the filter keeps', async () => {
        expect(await store.head(filter)).toBeNull();
        await appendSome();
        expect(await store.head(filter)).toBe((await readToEnd(store, null, filter)).events.at(-1)!.position);
        expect(await store.head({ streamPrefix: stream('b') })).toBe((await store.readStream(stream('b'), 0))[0]!.position);
      });
    });

    describe('subscribe', () => {
      it('brings what is there, then what any instance appends', async () => {
        const [a, b, c] = [event('a'), event('b'), event('c')];
        await store.append(stream('s'), noStream, [a]);
        const pages = subscribe(null);
        await collect(pages, abort, 'the first event', (events) => events.length > 0);
        const rest = subscribe(null);
        const other = open();
        const collected = collect(rest, abort, 'three events', (events) => distinct(events).length === 3);
        await other.append(stream('s'), 0, [b]);
        await store.append(stream('t'), noStream, [c]);
        expect(distinct(await collected).map(({ id }) => id)).toEqual([a.id, b.id, c.id]);
      });

      it('begins after a position', async () => {
        const { position } = await store.append(stream('s'), noStream, [event(), event()]);
        const later = event();
        await store.append(stream('s'), 1, [later]);
        const events = await collect(subscribe(position), abort, 'the later event', ({ length }) => length > 0);
        expect(events.map(({ id }) => id)).toEqual([later.id]);
      });

      it('gives its first page at once, even when there is nothing', async () => {
        const { position } = await readToEnd(store, null, filter);
        const first = await subscribe(position)[Symbol.asyncIterator]().next();
        expect(first.value).toMatchObject({ events: [], end: true });
      });

      it('ends without an error when aborted, before, while it waits and while it is read', async () => {
        await store.append(stream('s'), noStream, [event(), event(), event()]);
        const waiting = (async () => {
          let pages = 0;
          for await (const page of subscribe(null)) if (page.end && ++pages === 1) setImmediate(() => abort.abort());
          return 'ended';
        })();
        expect(await waiting).toBe('ended');
        expect((await subscribe(null)[Symbol.asyncIterator]().next()).done).toBe(true);
        abort = new AbortController();
        for await (const page of subscribe(null, 1)) if (page.events.length > 0) abort.abort();
      });

      it('ends when the store is closed', async () => {
        const iterator = subscribe(null)[Symbol.asyncIterator]();
        await iterator.next();
        const [next] = await Promise.all([
          (async () => {
            for (;;) if ((await iterator.next()).done) return 'ended';
          })(),
          store.close(),
        ]);
        expect(next).toBe('ended');
      });

      it('scenario 6: a slow consumer that is killed resumes after the last page it applied and loses nothing', async () => {
        const sent = Array.from({ length: 60 }, (_, n) => event(n));
        const writing = (async () => {
          for (const [n, one] of sent.entries()) await store.append(stream(`s${n % 3}`), Math.floor(n / 3) - 1, [one]);
        })();
        const applied: StoredEvent[] = [];
        let checkpoint: Position | null = null;
        const deadline = performance.now() + 30_000;
        while (distinct(applied).length < sent.length) {
          expect(performance.now(), `60 events; applied ${applied.length}`).toBeLessThan(deadline);
          const life = new AbortController();
          const consumer = store.subscribe(checkpoint, filter, { limit: 4, signal: life.signal });
          let pages = 0;
          for await (const page of consumer) {
            if (++pages === 3) break; // killed while it holds a page that it has not applied
            await new Promise(setImmediate);
            applied.push(...page.events);
            checkpoint = page.position;
            if (distinct(applied).length === sent.length) break;
          }
          life.abort();
        }
        await writing;
        expect(distinct(applied).map(({ id }) => id)).toEqual((await readToEnd(store, null, filter)).events.map(({ id }) => id));
      });

      it('eight writers: readers that follow miss nothing and see no stream out of order', async () => {
        const perWriter = appendsPerWriter;
        const writers = Array.from({ length: 8 }, (_, n) => ({ instance: open(), own: stream(`writer-${n}`) }));
        const seen = collect(subscribe(null, 7), abort, `${16 * perWriter} events`, (events) => distinct(events).length === 16 * perWriter);
        const chase = (async () => {
          const events: StoredEvent[] = [];
          for (let after: Position | null = null; events.length < 16 * perWriter && !abort.signal.aborted; ) {
            const page: Page = await store.readAll(after, filter, 5);
            events.push(...page.events);
            after = page.position;
          }
          return events;
        })();
        await Promise.all(
          writers.map(async ({ instance, own }) => {
            let shared = noStream;
            for (let n = 0; n < perWriter; n += 1) {
              await instance.append(own, n - 1, [event(n)]);
              const contended = event(n);
              for (let stored = false; !stored; ) {
                await instance.append(stream('shared'), shared, [contended]).then(
                  ({ revision }) => {
                    stored = true;
                    shared = revision;
                  },
                  (error: unknown) => {
                    if (!(error instanceof WrongExpectedRevision)) throw error;
                    shared += 1;
                  },
                );
              }
            }
          }),
        );
        for (const events of [distinct(await seen), await chase]) {
          expect(events).toHaveLength(16 * perWriter);
          const next = new Map<string, number>();
          for (const { stream, revision } of events) {
            expect(revision).toBe(next.get(stream) ?? 0);
            next.set(stream, revision + 1);
          }
          expect(events.map(({ position }) => position)).toEqual(events.map(({ position }) => position).sort());
        }
      });
    });
  });
};
