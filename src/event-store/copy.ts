/** Copies the history of one Installation into another store: ids, order, bytes and so hashes stay, positions change. (failure scenario 28) */
import { Fault } from '../kernel/errors.ts';
import { createChain, everyEvent } from './chain.ts';
import { appendBytes, maxAppendBytes, type EventStore, type StoredEvent } from './event-store.ts';

export interface CopyOptions {
  readonly from: EventStore;
  readonly to: EventStore;
  /** With what every stream of the Installation begins. */
  readonly prefix: string;
  /** With what streams begin that may not be in the target unless they are copies. */
  readonly exclusivePrefix: string;
  readonly onProgress?: (events: number) => void;
}

export interface Copied {
  /** Events that were in the target already, byte for byte and in the same order. */
  readonly present: number;
  readonly copied: number;
}

const isSame = (one: StoredEvent, other: StoredEvent): boolean =>
  one.stream === other.stream && one.revision === other.revision && one.id === other.id && one.type === other.type && one.data === other.data && one.metadata === other.metadata;

const otherEvent = ({ stream, revision }: StoredEvent): Fault => new Fault(`The target holds other events: ${stream} at revision ${revision} is not what the source has in its place`);

/**
 * One pass: compares what the target has with the beginning of the source, then appends the rest in order, each stream at
 * its exact revision. Interrupted, it is begun again; a pass that copies nothing has found the whole history in the target.
 * @throws Fault when the chain of the source is broken or the target holds anything else; StoreUnavailable
 */
const copyOnce = async ({ from, to, prefix, exclusivePrefix, onProgress = () => {} }: CopyOptions): Promise<Copied> => {
  const chain = createChain();
  const target = everyEvent(to, { streamPrefix: exclusivePrefix });
  let present = 0;
  let copied = 0;
  let isComparing = true;
  /** Neighbours of one stream that go into one append. */
  let run: StoredEvent[] = [];
  let runBytes = 0;

  const flush = async (): Promise<void> => {
    const [first] = run;
    if (first === undefined) return;
    await to.append(first.stream, first.revision - 1, run.map(({ id, type, data, metadata }) => ({ id, type, data, metadata })));
    copied += run.length;
    run = [];
    runBytes = 0;
    onProgress(present + copied);
  };

  for await (const event of everyEvent(from, { streamPrefix: prefix })) {
    chain.take(event);
    if (isComparing) {
      const found = await target.next();
      if (found.done !== true) {
        if (!isSame(found.value, event)) throw otherEvent(found.value);
        present += 1;
        continue;
      }
      isComparing = false;
    }
    const bytes = appendBytes([event]);
    if (run[0] !== undefined && (run[0].stream !== event.stream || runBytes + bytes > maxAppendBytes)) await flush();
    run.push(event);
    runBytes += bytes;
  }
  await flush();
  if (isComparing) {
    const more = await target.next();
    if (more.done !== true) throw otherEvent(more.value);
  }
  return { present, copied };
};

/**
 * Copies until a whole pass finds nothing left to copy, which proves what the target holds.
 * @throws as {@link copyOnce} does
 */
export const copyEvents = async (options: CopyOptions): Promise<Copied> => {
  const first = await copyOnce(options);
  let copied = first.copied;
  for (let last = first; last.copied > 0; copied += last.copied) last = await copyOnce(options);
  return { present: first.present, copied };
};
