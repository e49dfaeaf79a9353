/**
 * Runs event consumers: one loop per process on one direct connection, which holds the advisory locks, the
 * batches and the checkpoints. If the connection is lost the leadership is lost with it, and everything starts
 * again from what the database says. (architecture section 4, failure scenarios 5 and 16)
 */
import { setTimeout as delay } from 'node:timers/promises';
import type { Client } from 'pg';
import type { EventStore, Page, StoredEvent } from '../event-store/event-store.ts';
import { openClient } from '../postgres/pool.ts';
import { applySteps, deliver, type Delivery, type Reader, type Step } from './consumer-batch.ts';
import { HistoryMismatch, completeMember, hasPassed, loadMembers, lockNumber, recognise, touchCheckpoints, type Checkpoint, type Member } from './consumer-checkpoint.ts';
import type { Consumer, ConsumerId } from './consumer.ts';

/** What happened in one transaction, for metrics and for those who wait in this process. */
export interface AppliedBatch {
  readonly events: number;
  readonly elapsedMs: number;
  readonly checkpoints: readonly (ConsumerId & { readonly checkpoint: Checkpoint | null })[];
}

export interface ConsumersOptions extends Reader {
  readonly url: string;
  readonly store: EventStore;
  readonly consumers: readonly Consumer[];
  /** Ends the loop after the transaction under way. */
  readonly signal: AbortSignal;
  /** Runs before a new leader applies anything, and again until it succeeds. @throws HistoryMismatch to keep everything off */
  readonly onTakeOver?: () => Promise<void>;
  readonly onBatch?: (batch: AppliedBatch) => void;
  /** Hears of every interruption; all but {@link HistoryMismatch} are followed by a new try. */
  readonly onFault?: (error: unknown) => void;
  /** Most events of one transaction. 1,000. */
  readonly batchLimit?: number;
  /** Between two tries to lead, or to connect. 500 ms. */
  readonly retryMs?: number;
}

export interface ConsumersState {
  /** Names of the consumers this process leads. */
  readonly leading: readonly string[];
  /** Why everything is off until the operator acts; undefined when nothing is wrong. */
  readonly historyMismatch: string | undefined;
  /** When the loop last turned, by `performance.now()`; a loop that is off on purpose counts as turning. */
  readonly turnedAt: number;
}

export interface RunningConsumers {
  readonly state: ConsumersState;
  /** Drives the parked streams of the consumers led here again, in order; resolves when it has been tried. */
  retryParked(): Promise<void>;
  /** Resolves when the loop has ended: after the signal, or with a history mismatch. */
  readonly done: Promise<void>;
}

interface LoadedPage extends Page {
  readonly deliveries: readonly Delivery[];
}

/** The server drops a leader that says nothing for this long. */
const idleLimitMs = 5_000;
/** How often an idle leader says something; at the end of the store it says that it stands there. */
const beatMs = 250;
/** How long a beat waits for the store before it only pings. */
const headLimitMs = 1_000;

/**
 * The server may drop this session when it falls silent, inside a transaction or out of one. Commits need not reach
 * the disk before they are answered: rows and checkpoint would be lost together, and be derived again.
 */
const prepareSession = `
  set idle_session_timeout = ${idleLimitMs};
  set idle_in_transaction_session_timeout = ${idleLimitMs};
  set synchronous_commit = off`;

/** Begins to lead whichever of the consumers nobody else leads. */
export const runConsumers = ({
  url,
  store,
  consumers,
  signal,
  onTakeOver = async () => {},
  onBatch = () => {},
  onFault = () => {},
  batchLimit = 1_000,
  retryMs = 500,
  ...reader
}: ConsumersOptions): RunningConsumers => {
  const filter = { streamPrefix: reader.prefix };
  let leading: readonly string[] = [];
  let historyMismatch: string | undefined;
  let turnedAt = performance.now();
  const retries: (() => void)[] = [];

  const pause = (ms: number): Promise<unknown> => delay(ms, undefined, { signal }).catch(() => {});

  /** The locks of these consumers that are free now. */
  const acquire = async (client: Client, wanted: readonly Consumer[]): Promise<readonly Consumer[]> => {
    if (wanted.length === 0) return [];
    const { rows } = await client.query<{ acquired: boolean }>('select pg_try_advisory_lock(number) as acquired from unnest($1::bigint[]) as number', [
      wanted.map((consumer) => lockNumber(reader.prefix, consumer)),
    ]);
    return wanted.filter((_, index) => rows[index]?.acquired === true);
  };

  const apply = async (client: Client, steps: readonly Step[], caughtUp: boolean): Promise<void> => {
    const begun = performance.now();
    await applySteps(client, reader, steps, caughtUp);
    turnedAt = performance.now();
    onBatch({
      events: steps.reduce((most, { deliveries }) => Math.max(most, deliveries.length), 0),
      elapsedMs: turnedAt - begun,
      checkpoints: steps.map(({ member: { consumer, checkpoint } }) => ({ name: consumer.name, version: consumer.version, checkpoint })),
    });
  };

  /**
   * Waits for what may last, as a loop that turns; once asked to stop no longer.
   * @throws the reason of the signal
   */
  const whileTurning = async (work: Promise<void>, say: () => Promise<unknown> = async () => {}): Promise<void> => {
    const done = work.then(() => true);
    done.catch(() => {}); // awaited below, unless the loop ends before
    while (!(await Promise.race([done, delay(beatMs, false)]))) {
      signal.throwIfAborted();
      await say();
      turnedAt = performance.now();
    }
  };

  /** What comes before a member says that it stands at the end. A new start would only begin it again. */
  const complete = async (client: Client, members: readonly Member[]): Promise<void> => {
    const completeAll = async (): Promise<void> => {
      for (const member of members) await completeMember(client, member);
    };
    if (members.some((member) => !member.complete)) await whileTurning(completeAll());
  };

  const applyPage = async (client: Client, members: readonly Member[], { events, end, deliveries }: LoadedPage): Promise<void> => {
    if (end) await complete(client, members);
    const last = events.at(-1);
    const behind = last === undefined ? [] : members.filter(({ checkpoint }) => !hasPassed(checkpoint, last.position));
    const steps = behind.map((member): Step => ({
      member,
      deliveries: deliveries.filter(({ stored }) => !hasPassed(member.checkpoint, stored.position)),
      parked: member.parked,
      checkpoint: { position: last!.position, eventId: last!.id },
    }));
    if (steps.length > 0) await apply(client, steps, end);
    if (end && steps.length < members.length) await touchCheckpoints(client, members);
  };

  const driveParked = async (client: Client, members: readonly Member[]): Promise<void> => {
    for (const member of members) {
      for (const [stream, { revision }] of member.parked) {
        const events: StoredEvent[] = (await store.readStream(stream, revision)).filter(({ position }) => hasPassed(member.checkpoint, position));
        const others = new Map(member.parked);
        others.delete(stream);
        await apply(client, [{ member, deliveries: deliver(reader, events), parked: others, checkpoint: member.checkpoint }], false);
      }
    }
  };

  /** Says that the leader lives and, where the store has nothing beyond the members, that they stand at its end. */
  const beat = async (client: Client, members: readonly Member[]): Promise<void> => {
    const head = await Promise.race([store.head(filter).catch(() => undefined), delay(headLimitMs, undefined, { ref: false })]);
    if (head === null || (head !== undefined && members.every(({ checkpoint }) => hasPassed(checkpoint, head)))) {
      await complete(client, members);
      await touchCheckpoints(client, members);
      if (members.some(({ checkpoint }) => checkpoint !== null && (head === null || checkpoint.position > head))) await recognise(store, members.map(({ checkpoint }) => checkpoint));
    } else await client.query('select');
    turnedAt = performance.now();
  };

  /** Advances the consumers led until the signal, or until more of them may be led. */
  const lead = async (client: Client, led: readonly Consumer[]): Promise<readonly Consumer[]> => {
    const members = await loadMembers(client, led);
    await recognise(store, members.map(({ checkpoint }) => checkpoint));
    leading = led.map(({ name }) => name);
    await driveParked(client, members);
    const missing = consumers.filter((consumer) => !led.includes(consumer));
    const from = members.reduce<Checkpoint | null | undefined>(
      (least, { checkpoint }) => (least === undefined || (least !== null && (checkpoint === null || checkpoint.position < least.position)) ? checkpoint : least),
      undefined,
    );
    const subscription = new AbortController();
    const pages = store
      .subscribe(from?.position ?? null, filter, { limit: batchLimit, signal: AbortSignal.any([signal, subscription.signal]) })
      [Symbol.asyncIterator]();
    let triedAt = performance.now();
    /** The next page is read and decoded while this one is applied; checkpoints move with what was applied only. */
    const readOn = (): Promise<LoadedPage | undefined> => {
      const reading = pages.next().then(({ done, value }) => (done === true ? undefined : { ...value, deliveries: deliver(reader, value.events) }));
      reading.catch(() => {}); // awaited below, unless the loop ends before
      return reading;
    };
    let next = readOn();
    try {
      for (;;) {
        const timer = new AbortController();
        const page = await Promise.race([next, delay(beatMs, 'beat' as const, { signal: timer.signal })]);
        timer.abort();
        if (page === undefined) return led;
        if (page === 'beat') await beat(client, members);
        else {
          next = readOn();
          await applyPage(client, members, page);
        }
        if (retries.length > 0) {
          const asked = retries.splice(0);
          await driveParked(client, members);
          for (const resolve of asked) resolve();
        }
        if (missing.length > 0 && performance.now() - triedAt > retryMs) {
          triedAt = performance.now();
          const more = await acquire(client, missing);
          if (more.length > 0) return [...led, ...more];
        }
      }
    } finally {
      subscription.abort();
      await pages.return?.();
    }
  };

  const session = async (): Promise<void> => {
    const client = await openClient({ url, applicationName: 'exuvia consumers' });
    client.on('error', () => {}); // the query under way, or the next one, fails with it
    try {
      await client.query(prepareSession);
      let led: readonly Consumer[] = [];
      while (!signal.aborted) {
        if (led.length === 0) {
          led = await acquire(client, consumers);
          if (led.length > 0) await whileTurning(onTakeOver(), () => client.query('select'));
        }
        if (led.length > 0) led = await lead(client, led);
        else {
          turnedAt = performance.now();
          for (const resolve of retries.splice(0)) resolve();
          await pause(retryMs);
        }
      }
    } finally {
      leading = [];
      await client.end().catch(() => {}); // it may be gone already
    }
  };

  const run = async (): Promise<void> => {
    while (!signal.aborted) {
      try {
        await session();
      } catch (error) {
        if (error === signal.reason) return;
        if (error instanceof HistoryMismatch) historyMismatch = error.message;
        onFault(error);
        if (error instanceof HistoryMismatch) return;
        await pause(retryMs);
      }
    }
  };

  const done = run().finally(() => {
    for (const resolve of retries.splice(0)) resolve();
  });
  return {
    get state() {
      return { leading, historyMismatch, turnedAt: historyMismatch === undefined ? turnedAt : performance.now() };
    },
    retryParked: () => new Promise((resolve) => (signal.aborted || historyMismatch !== undefined ? resolve() : retries.push(resolve))),
    done,
  };
};
