/**
 * Adds to a plain event store what EventStoreDB adds: positions with gaps that are no numbers, system events
 * between ours, answers in another order than the requests, and events delivered twice by subscriptions.
 */
import { randomUUID } from 'node:crypto';
import type { EventStore, Filter, Page, Position, StoredEvent } from '../../src/event-store/event-store.ts';
import { noStream } from '../../src/event-store/event-store.ts';

/** System events go into a stream of this name in the inner store; readers never see it. */
const systemStream = 'system:statistics';
const gap = 137;

/** `C:<hex>/P:<hex>`, fixed width: sorts as text, is no number, and neighbours are far apart. */
const outward = (inner: Position): Position => {
  const hex = (Number(inner) * gap).toString(16).padStart(12, '0');
  return `C:${hex}/P:${hex}` as Position;
};

const inward = (outer: Position): Position | undefined => {
  const hex = /^C:([0-9a-f]{12})\/P:\1$/.exec(outer)?.[1];
  const number = hex === undefined ? NaN : parseInt(hex, 16) / gap;
  return Number.isInteger(number) ? (String(number).padStart(8, '0') as Position) : undefined;
};

const translate = (event: StoredEvent): StoredEvent => ({ ...event, position: outward(event.position) });
const ours = ({ stream }: StoredEvent): boolean => stream !== systemStream;

/** Wraps an in-memory store. The wrapper passes the same contract suite, so users that pass on it expect no more than the port says. */
export const withStoreQuirks = (store: EventStore): EventStore => {
  let turn = 0;
  /** Answers after one to three turns of the event loop, so that later requests overtake earlier ones. */
  const answer = async <T>(value: Promise<T>): Promise<T> => {
    const settled = await value;
    for (let turns = (turn++ % 3) + 1; turns > 0; turns--) await new Promise(setImmediate);
    return settled;
  };

  const addSystemEvent = async (): Promise<void> => {
    const revision = (await store.readStream(systemStream, 0)).length + noStream;
    const event = { id: randomUUID(), type: 'statistics', data: '{}', metadata: '{}' };
    // Another instance may have been quicker; then there is a system event all the same.
    await store.append(systemStream, revision, [event]).catch(() => {});
  };

  const page = ({ events, position, end }: Page): Page => ({
    events: events.filter(ours).map(translate),
    position: position === null ? null : outward(position),
    end,
  });

  const known = (position: Position): Position => {
    const inner = inward(position);
    if (inner === undefined) throw new RangeError(`${position} is not a position of this store`);
    return inner;
  };
  const start = (after: Position | null): Position | null => (after === null ? null : known(after));

  /** Every second page begins with the last event of the page before it, as after a reconnection. */
  async function* subscribe(after: Position | null, filter: Filter, options: { limit: number; signal: AbortSignal }) {
    let pages = 0;
    let last: StoredEvent | undefined;
    for await (const inner of store.subscribe(start(after), filter, options)) {
      const outer = page(inner);
      const again = last !== undefined && pages++ % 2 === 0 ? [last] : [];
      last = outer.events.at(-1) ?? last;
      yield { ...outer, events: [...again, ...outer.events] };
    }
  }

  return {
    async append(stream, expectedRevision, events) {
      const appended = await store.append(stream, expectedRevision, events);
      await addSystemEvent();
      return answer(Promise.resolve({ revision: appended.revision, position: outward(appended.position) }));
    },
    readStream: (stream, fromRevision) => answer(store.readStream(stream, fromRevision).then((events) => events.map(translate))),
    readStreams: (requests) =>
      answer(store.readStreams(requests).then((answers) => answers.map((events) => events.map(translate)))),
    readAll: async (after, filter, limit) => answer(store.readAll(start(after), filter, limit).then(page)),
    async readAt(position) {
      const inner = inward(position);
      const event = inner === undefined ? undefined : await store.readAt(inner);
      return answer(Promise.resolve(event && translate(event)));
    },
    subscribe,
    async head(filter) {
      let head: Position | null = null;
      for (let after: Position | null = null, end = false; !end; ) {
        const read: Page = await store.readAll(after, filter, 1_000);
        head = read.events.findLast(ours)?.position ?? head;
        ({ position: after, end } = read);
      }
      return answer(Promise.resolve(head === null ? null : outward(head)));
    },
    close: () => store.close(),
  };
};
