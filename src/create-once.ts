/** One creation per idempotency key, whatever is created: the key gives the id, an earlier result is answered again, and who loses a race starts over. (architecture section 10, failure scenario 1) */
import { idempotencyOf } from './core.ts';
import type { Caller } from './iam/caller.ts';
import { Refusal } from './kernel/errors.ts';
import { derivedId, newId, type Prefix } from './kernel/ids.ts';
import type { Message } from './kernel/decider.ts';
import { WrongExpectedRevision, noStream, type Aggregate, type Loaded, type Streams } from './runtime/streams.ts';

/** A view without one is of something created and gone since. */
export interface Found<View> {
  readonly view?: View;
  /** The digest of the input it was created from, where the stream still knows it. */
  readonly createdFrom?: string | null;
}

export interface Creation<P extends Prefix, State, Command, Event extends Message, View> {
  readonly caller: Caller;
  /** Scopes the key, together with the caller and the parent. */
  readonly operation: string;
  readonly parent: string;
  readonly key: string | undefined;
  /** What a repeated request has to repeat. */
  readonly input: unknown;
  readonly prefix: P;
  /** As messages name it, for example `Agent`. */
  readonly kind: string;
  readonly streams: Pick<Streams, 'load' | 'unwritten'>;
  readonly aggregate: Aggregate<State, Command, Event>;
  /** What a stream has come to; undefined when it holds no creation. */
  readonly found: (state: State, id: Id<P>) => Found<View> | undefined;
  /** Judges afresh whether the caller may see an earlier result. @throws Refusal FORBIDDEN */
  readonly assertReadable: (id: Id<P>) => Promise<unknown>;
  /** Creates at exactly the empty stream. @throws WrongExpectedRevision when somebody was quicker */
  readonly make: (id: Id<P>, empty: Loaded<State>, context: { readonly idempotency?: ReturnType<typeof idempotencyOf> }) => Promise<View>;
}

type Id<P extends Prefix> = ReturnType<typeof newId<P>>;

/**
 * Creates, or answers what an earlier request with the same key has created.
 * @throws Refusal RESOURCE_CONFLICT when the key came with another input, or its result was deleted since
 */
export const createOnce = async <P extends Prefix, State, Command, Event extends Message, View>(creation: Creation<P, State, Command, Event, View>): Promise<View> => {
  const { caller, operation, parent, key, input, prefix, kind, streams, aggregate, found, assertReadable, make } = creation;
  const idempotency = key === undefined ? undefined : idempotencyOf(caller, operation, parent, key, input);

  /** Never an id that a fence has ended before it was created, so that what the fence takes away stays away. */
  const place = async (fences = 0): Promise<readonly [Id<P>, Loaded<State>]> => {
    if (idempotency === undefined) {
      const fresh = newId(prefix);
      return [fresh, streams.unwritten(aggregate, fresh)];
    }
    const id = derivedId(prefix, idempotency.key, ...(fences === 0 ? [] : [String(fences)]));
    const loaded = await streams.load(aggregate, id);
    const isFenced = found(loaded.state, id) === undefined && loaded.revision !== noStream;
    return isFenced ? place(fences + 1) : [id, loaded];
  };

  for (;;) {
    const [id, loaded] = await place();
    const earlier = found(loaded.state, id);
    if (earlier !== undefined) {
      if (earlier.createdFrom !== undefined && earlier.createdFrom !== idempotency?.input) throw new Refusal('RESOURCE_CONFLICT', 'The idempotency key was used for a different request');
      await assertReadable(id);
      if (earlier.view === undefined) throw new Refusal('RESOURCE_CONFLICT', `The ${kind} made under this idempotency key was deleted since`);
      return earlier.view;
    }
    try {
      return await make(id, loaded, idempotency === undefined ? {} : { idempotency });
    } catch (error) {
      if (!(error instanceof WrongExpectedRevision)) throw error;
    }
  }
};
