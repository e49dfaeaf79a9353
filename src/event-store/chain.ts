/** Reads a whole history in order, and holds every event against the one before it in its stream. (failure scenarios 11, 28, 30) */
import { Fault } from '../kernel/errors.ts';
import { hashOf, type Metadata } from '../kernel/event.ts';
import type { EventStore, Filter, Position, StoredEvent } from './event-store.ts';

const pageLimit = 500;

/** Every event the filter keeps, from the first to the last one there is when the reader gets there. */
export async function* everyEvent(store: EventStore, filter: Filter): AsyncGenerator<StoredEvent, void, undefined> {
  let after: Position | null = null;
  for (let end = false; !end; ) {
    const page = await store.readAll(after, filter, pageLimit);
    yield* page.events;
    after = page.position;
    end = page.end;
  }
}

export interface Chain {
  /** Takes the next event of the history in. @throws Fault that names the event when it does not follow its predecessor */
  take(event: StoredEvent): void;
  /** Streams seen. */
  readonly streams: number;
}

/** The hash chains of all streams of one history. */
export const createChain = (): Chain => {
  const tails = new Map<string, { readonly revision: number; readonly hash: string }>();
  return {
    take: (event) => {
      const { stream, revision } = event;
      const tail = tails.get(stream);
      const { previousHash } = JSON.parse(event.metadata) as Metadata;
      if (revision !== (tail?.revision ?? -1) + 1) throw new Fault(`The history is not whole: stream ${stream} has no event at revision ${(tail?.revision ?? -1) + 1}`);
      if (previousHash !== (tail?.hash ?? null)) throw new Fault(`The history was changed: the event of stream ${stream} at revision ${revision} does not carry the hash of the one before it`);
      tails.set(stream, { revision, hash: hashOf(stream, revision, event) });
    },
    get streams() {
      return tails.size;
    },
  };
};

/** With what every stream of every Installation begins. */
export const anyInstallation = 'ins_';

/** The Installation a stream belongs to. */
export const installationOf = ({ stream }: Pick<StoredEvent, 'stream'>): string => stream.slice(0, stream.indexOf('.'));

export interface Survey {
  readonly events: number;
  readonly streams: number;
  /** The first event that does not follow the one before it in its stream; undefined in a whole history. */
  readonly broken: Fault | undefined;
}

/** What a store holds of each Installation, by id. */
export const survey = async (store: EventStore): Promise<ReadonlyMap<string, Survey>> => {
  const found = new Map<string, { readonly chain: Chain; events: number; broken: Fault | undefined }>();
  for await (const event of everyEvent(store, { streamPrefix: anyInstallation })) {
    const id = installationOf(event);
    const own = found.get(id) ?? { chain: createChain(), events: 0, broken: undefined };
    found.set(id, own);
    own.events += 1;
    if (own.broken !== undefined) continue;
    try {
      own.chain.take(event);
    } catch (error) {
      if (!(error instanceof Fault)) throw error;
      own.broken = error;
    }
  }
  return new Map([...found].map(([id, { chain, events, broken }]) => [id, { events, streams: chain.streams, broken }]));
};
