/**
 * The shell around deciders: folds a stream to its tail, decides, and appends at exactly the revision the
 * decision was made at. Commands waiting in this process for one stream are decided one after the other
 * against the same fold and appended as one batch. (architecture sections 3 and 4, failure scenario 12)
 */
import { v7 as uuid } from 'uuid';
import { canonicalText } from '../kernel/canonical.ts';
import type { Codec } from '../kernel/codec.ts';
import { isRefusal, type Decider, type Decision, type Message } from '../kernel/decider.ts';
import { Fault, Refusal, unavailable } from '../kernel/errors.ts';
import { hashOf, type Actor, type AuditRecord, type Envelope, type EventBytes, type Metadata } from '../kernel/event.ts';
import { redacted } from '../kernel/redact.ts';
import {
  AppendTooLarge,
  StoreUnavailable,
  WrongExpectedRevision,
  appendBytes,
  maxAppendBytes,
  noStream,
  type EventStore,
  type Position,
  type StoredEvent,
} from '../event-store/event-store.ts';
import { timestamp, type Clock } from './clock.ts';

/** An aggregate: where its streams are, how its events are read, and how it decides. */
export interface Aggregate<S, C, E extends Message> {
  /** Stream name without the Installation prefix. */
  readonly streamOf: (id: string) => string;
  readonly codec: Codec<E>;
  readonly decider: Decider<S, C, E>;
}

/** A stream folded to its tail. */
export interface Loaded<S> {
  readonly stream: string;
  readonly state: S;
  /** Revision of the last event; -1 for a stream that does not exist. */
  readonly revision: number;
  readonly lastHash: string | null;
  readonly lastEventId: string | null;
  readonly lastPosition: Position | null;
}

/** Who asks, and what the events of the answer will say about it. */
export interface CommandContext {
  readonly actor: Actor;
  readonly requestId: string | null;
  readonly correlationId: string;
  readonly causationId: string | null;
  readonly policyRevision: number | null;
  readonly idempotency?: { readonly key: string; readonly input: string };
  readonly work?: { readonly key: string; readonly claimToken: string };
  readonly audit?: AuditRecord;
}

export interface Executed<S, E> extends Loaded<S> {
  /** The events this command appended; none when there was nothing to change. */
  readonly events: readonly E[];
  /** Their ids, for causation. */
  readonly eventIds: readonly string[];
}

interface Prepared<E> {
  readonly bytes: EventBytes;
  readonly event: E;
  readonly envelope: Envelope;
}

interface Waiter<S, C, E> {
  readonly command: C | ((state: S, revision: number) => Decision<E>);
  readonly context: CommandContext;
  readonly guard: (() => Promise<Partial<CommandContext>>) | undefined;
  readonly resolve: (executed: Executed<S, E>) => void;
  readonly reject: (error: unknown) => void;
}

const batchLimit = 64;
/** More than the metadata of any one event takes. */
const metadataBytes = 2_000;
const tryLimit = 20;
/** Folds kept per aggregate; a revision's snapshot may hold 64 KiB. */
const cacheLimit = 2_000;

const tooLarge = (): Refusal => new Refusal('PAYLOAD_TOO_LARGE', 'The request is too large to be stored');

/** Whether a stored event lies before the point to which a stream is folded. */
export type StoredBefore = (stored: StoredEvent) => boolean;

/** A foreign write came between; the caller folds again and decides again. */
export { WrongExpectedRevision, noStream } from '../event-store/event-store.ts';

export interface Streams {
  /** Folds a stream to its tail as the store has it now. @throws Refusal DEPENDENCY_UNAVAILABLE, Fault on a gap */
  load<S, C, E extends Message>(aggregate: Aggregate<S, C, E>, id: string): Promise<Loaded<S>>;
  /** The stream of an id that was made at random just now: nothing is read, and an append fails where somebody has written it. */
  unwritten<S, C, E extends Message>(aggregate: Aggregate<S, C, E>, id: string): Loaded<S>;
  /** Folds a stream as it was: up to the first event that does not lie before a point. */
  loadBefore<S, C, E extends Message>(aggregate: Aggregate<S, C, E>, id: string, isBefore: StoredBefore): Promise<Loaded<S>>;
  /** {@link load} of many streams of one kind in one round trip. */
  loadMany<S, C, E extends Message>(aggregate: Aggregate<S, C, E>, ids: readonly string[]): Promise<readonly Loaded<S>[]>;
  /**
   * Appends at exactly the revision that was loaded.
   * @throws WrongExpectedRevision when the stream has moved, Refusal PAYLOAD_TOO_LARGE or DEPENDENCY_UNAVAILABLE
   */
  append<S, C, E extends Message>(
    aggregate: Aggregate<S, C, E>,
    loaded: Loaded<S>,
    events: readonly E[],
    context: CommandContext,
  ): Promise<Executed<S, E>>;
  /**
   * Decides and appends; a stream that moved is folded and decided again. A refusal is always judged on a
   * fresh tail. The guard runs right before each append, may refuse, and may complete the context.
   */
  execute<S, C, E extends Message>(
    aggregate: Aggregate<S, C, E>,
    id: string,
    command: C | ((state: S, revision: number) => Decision<E>),
    context: CommandContext,
    guard?: () => Promise<Partial<CommandContext>>,
  ): Promise<Executed<S, E>>;
  /**
   * Refuses a command before its first append when its last one would be too large. (failure scenario 14)
   * @throws Refusal PAYLOAD_TOO_LARGE
   */
  assertStorable<E extends Message>(codec: Codec<E>, events: readonly E[]): void;
}

export const createStreams = ({
  store,
  clock,
  prefix,
}: {
  readonly store: EventStore;
  readonly clock: Clock;
  /** Begins every stream name: the Installation's id and a dot. */
  readonly prefix: string;
}): Streams => {
  const caches = new WeakMap<object, Map<string, Loaded<unknown>>>();
  const waiting = new Map<string, Waiter<never, never, never>[]>();

  const foldsOf = (aggregate: object): Map<string, Loaded<unknown>> => {
    let folds = caches.get(aggregate);
    if (folds === undefined) caches.set(aggregate, (folds = new Map()));
    return folds;
  };

  const remember = <S>(aggregate: object, loaded: Loaded<S>): Loaded<S> => {
    const folds = foldsOf(aggregate);
    folds.delete(loaded.stream);
    folds.set(loaded.stream, loaded);
    if (folds.size > cacheLimit) folds.delete(folds.keys().next().value!);
    return loaded;
  };

  const unborn = <S, C, E extends Message>(aggregate: Aggregate<S, C, E>, stream: string): Loaded<S> => ({
    stream,
    state: aggregate.decider.initial,
    revision: noStream,
    lastHash: null,
    lastEventId: null,
    lastPosition: null,
  });

  const known = <S, C, E extends Message>(aggregate: Aggregate<S, C, E>, stream: string): Loaded<S> =>
    (foldsOf(aggregate).get(stream) as Loaded<S> | undefined) ?? unborn(aggregate, stream);

  const foldOnto = <S, C, E extends Message>(aggregate: Aggregate<S, C, E>, from: Loaded<S>, tail: readonly StoredEvent[]): Loaded<S> => {
    let { state, revision } = from;
    for (const stored of tail) {
      if (stored.revision !== revision + 1) throw new Fault(`Stream ${from.stream} has a gap after revision ${revision}`);
      const { event, envelope } = aggregate.codec.decode(stored);
      state = aggregate.decider.evolve(state, event, envelope);
      revision = stored.revision;
    }
    const last = tail.at(-1);
    if (last === undefined) return from;
    return { stream: from.stream, state, revision, lastHash: hashOf(last.stream, last.revision, last), lastEventId: last.id, lastPosition: last.position };
  };

  const reading = async <T>(read: () => Promise<T>): Promise<T> => {
    try {
      return await read();
    } catch (error) {
      if (error instanceof StoreUnavailable) throw unavailable('event store', error);
      throw error;
    }
  };

  const loadMany: Streams['loadMany'] = async (aggregate, ids) => {
    const bases = ids.map((id) => known(aggregate, prefix + aggregate.streamOf(id)));
    const tails = await reading(() => store.readStreams(bases.map(({ stream, revision }) => ({ stream, fromRevision: revision + 1 }))));
    return bases.map((base, index) => remember(aggregate, foldOnto(aggregate, base, tails[index]!)));
  };

  const load: Streams['load'] = async (aggregate, id) => {
    const base = known(aggregate, prefix + aggregate.streamOf(id));
    const tail = await reading(() => store.readStream(base.stream, base.revision + 1));
    return remember(aggregate, foldOnto(aggregate, base, tail));
  };

  const loadBefore: Streams['loadBefore'] = async (aggregate, id, isBefore) => {
    const base = unborn(aggregate, prefix + aggregate.streamOf(id));
    const events = await reading(() => store.readStream(base.stream, 0));
    const end = events.findIndex((stored) => !isBefore(stored));
    return foldOnto(aggregate, base, end < 0 ? events : events.slice(0, end));
  };

  const prepare = <S, C, E extends Message>(
    aggregate: Aggregate<S, C, E>,
    base: { readonly stream: string; readonly revision: number; readonly lastHash: string | null },
    events: readonly E[],
    context: CommandContext,
  ): Prepared<E>[] => {
    let { revision, lastHash } = base;
    const { audit, ...shared } = context;
    const occurredAt = timestamp(clock.now());
    return events.map((event, index) => {
      const { type, schema, data } = aggregate.codec.encode(event);
      const metadata: Metadata = { ...shared, ...(index === 0 && audit !== undefined && { audit: redacted(audit) }), schema, occurredAt, previousHash: lastHash };
      const bytes = { id: uuid(), type, data, metadata: canonicalText(metadata) };
      revision += 1;
      lastHash = hashOf(base.stream, revision, bytes);
      return { bytes, event, envelope: { ...metadata, id: bytes.id, stream: base.stream, revision } };
    });
  };

  /** Appends prepared events; after an ambiguous answer the tail is read back before anything else. */
  const write = async (base: Loaded<unknown>, prepared: readonly Prepared<unknown>[]): Promise<Position> => {
    const bytes = prepared.map((one) => one.bytes);
    try {
      return (await store.append(base.stream, base.revision, bytes)).position;
    } catch (error) {
      if (error instanceof AppendTooLarge) throw tooLarge();
      if (!(error instanceof StoreUnavailable)) throw error;
      const tail = await reading(() => store.readStream(base.stream, base.revision + 1));
      const stored = tail[bytes.length - 1];
      if (stored?.id === bytes.at(-1)!.id) return stored.position;
      if (tail.length > 0) throw new WrongExpectedRevision(base.stream, base.revision);
      throw unavailable('event store', error);
    }
  };

  const after = <S, C, E extends Message>(aggregate: Aggregate<S, C, E>, base: Loaded<S>, prepared: readonly Prepared<E>[], position: Position): Loaded<S> => {
    const last = prepared.at(-1)!;
    return {
      stream: base.stream,
      state: prepared.reduce((state, { event, envelope }) => aggregate.decider.evolve(state, event, envelope), base.state),
      revision: last.envelope.revision,
      lastHash: hashOf(base.stream, last.envelope.revision, last.bytes),
      lastEventId: last.bytes.id,
      lastPosition: position,
    };
  };

  const append: Streams['append'] = async (aggregate, loaded, events, context) => {
    const prepared = prepare(aggregate, loaded, events, context);
    const position = await write(loaded, prepared);
    const result = after(aggregate, loaded, prepared, position);
    if ((foldsOf(aggregate).get(loaded.stream)?.revision ?? noStream) < result.revision) remember(aggregate, result);
    return { ...result, events, eventIds: prepared.map(({ bytes }) => bytes.id) };
  };

  type Outcome<S, E extends Message> =
    | { readonly kind: 'refused'; readonly refusal: Refusal }
    | { readonly kind: 'decided'; readonly state: S; readonly prepared: readonly Prepared<E>[] };

  /** Decides a batch against one fold. Undefined when a refusal or a silence came from a fold that may be stale. */
  const decideBatch = <S, C, E extends Message>(
    aggregate: Aggregate<S, C, E>,
    base: Loaded<S>,
    batch: readonly { waiter: Waiter<S, C, E>; context: CommandContext }[],
    fresh: boolean,
  ): readonly Outcome<S, E>[] | undefined => {
    let cursor = { stream: base.stream, revision: base.revision, lastHash: base.lastHash };
    let state = base.state;
    let bytes = 0;
    const outcomes: Outcome<S, E>[] = [];
    for (const { waiter, context } of batch) {
      const decision =
        typeof waiter.command === 'function'
          ? (waiter.command as (state: S, revision: number) => Decision<E>)(state, cursor.revision)
          : aggregate.decider.decide(state, waiter.command);
      if (!fresh && (isRefusal(decision) || decision.length === 0)) return undefined;
      if (isRefusal(decision)) {
        outcomes.push({ kind: 'refused', refusal: decision });
        continue;
      }
      const prepared = prepare(aggregate, cursor, decision, context);
      const size = appendBytes(prepared.map((one) => one.bytes));
      if (size > maxAppendBytes) {
        outcomes.push({ kind: 'refused', refusal: tooLarge() });
        continue;
      }
      if (bytes + size > maxAppendBytes) break;
      bytes += size;
      state = prepared.reduce((folded, { event, envelope }) => aggregate.decider.evolve(folded, event, envelope), state);
      const last = prepared.at(-1);
      if (last !== undefined) cursor = { ...cursor, revision: last.envelope.revision, lastHash: hashOf(base.stream, last.envelope.revision, last.bytes) };
      outcomes.push({ kind: 'decided', state, prepared });
    }
    return outcomes;
  };

  const guarded = async <S, C, E extends Message>(waiters: readonly Waiter<S, C, E>[]) => {
    const contexts = await Promise.allSettled(waiters.map(async ({ context, guard }) => ({ ...context, ...(await guard?.()) })));
    return waiters.flatMap((waiter, index) => {
      const settled = contexts[index]!;
      if (settled.status === 'fulfilled') return [{ waiter, context: settled.value }];
      waiter.reject(settled.reason);
      return [];
    });
  };

  /** Settles a batch; answers the waiters that did not fit into this append. */
  const settle = async <S, C, E extends Message>(aggregate: Aggregate<S, C, E>, id: string, waiters: readonly Waiter<S, C, E>[]): Promise<readonly Waiter<S, C, E>[]> => {
    const stream = prefix + aggregate.streamOf(id);
    let fresh = !foldsOf(aggregate).has(stream);
    for (let tries = 0; tries < tryLimit; tries++) {
      const base = fresh ? await load(aggregate, id) : known(aggregate, stream);
      const batch = await guarded(waiters);
      waiters = batch.map(({ waiter }) => waiter);
      if (batch.length === 0) return [];
      const outcomes = decideBatch(aggregate, base, batch, fresh);
      if (outcomes === undefined) {
        fresh = true;
        continue;
      }
      const prepared = outcomes.flatMap((outcome) => (outcome.kind === 'decided' ? outcome.prepared : []));
      let end: Loaded<S> = base;
      if (prepared.length > 0) {
        try {
          const position = await write(base, prepared);
          end = remember(aggregate, after(aggregate, base, prepared, position));
        } catch (error) {
          if (!(error instanceof WrongExpectedRevision)) throw error;
          fresh = true;
          continue;
        }
      }
      outcomes.forEach((outcome, index) => {
        const { resolve, reject } = waiters[index]!;
        if (outcome.kind === 'refused') return reject(outcome.refusal);
        const last = outcome.prepared.at(-1);
        resolve({
          ...end,
          state: outcome.state,
          revision: last?.envelope.revision ?? end.revision,
          events: outcome.prepared.map(({ event }) => event),
          eventIds: outcome.prepared.map(({ bytes }) => bytes.id),
        });
      });
      return waiters.slice(outcomes.length);
    }
    throw unavailable(`Stream ${stream} kept moving`);
  };

  const drain = async <S, C, E extends Message>(aggregate: Aggregate<S, C, E>, id: string, queue: Waiter<S, C, E>[]): Promise<void> => {
    while (queue.length > 0) {
      const batch = queue.splice(0, batchLimit);
      try {
        queue.unshift(...(await settle(aggregate, id, batch)));
      } catch (error) {
        for (const { reject } of batch) reject(error);
      }
    }
    waiting.delete(aggregate.streamOf(id));
  };

  const execute: Streams['execute'] = (aggregate, id, command, context, guard) =>
    new Promise((resolve, reject) => {
      const name = aggregate.streamOf(id);
      const waiter = { command, context, guard, resolve, reject };
      const queue = waiting.get(name);
      if (queue !== undefined) {
        queue.push(waiter as never);
        return;
      }
      const started = [waiter];
      waiting.set(name, started as never);
      void drain(aggregate, id, started);
    });

  return {
    load,
    unwritten: (aggregate, id) => known(aggregate, prefix + aggregate.streamOf(id)),
    loadMany,
    loadBefore,
    append,
    execute,
    assertStorable: (codec, events) => {
      const sizes = events.map(codec.encode).map(({ type, data }) => Buffer.byteLength(type) + Buffer.byteLength(data) + metadataBytes);
      if (sizes.reduce((sum, size) => sum + size, 0) > maxAppendBytes) throw tooLarge();
    },
  };
};
