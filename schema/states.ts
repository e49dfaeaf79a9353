/** What subscriptions send: states and events, each authorized when it is sent, for as long as the caller may read them. (architecture section 7, iam-auth-audit 8.4) */
import { Repeater } from 'graphql-yoga';
import type { Caller } from '../src/iam/caller.ts';
import { Refusal } from '../src/kernel/errors.ts';
import type { Context } from './builder.ts';

/** A grant, a key or a session that ends is noticed within this time, also when nothing changes. */
const reauthorizeMs = 25_000;
/** What was judged longer ago is judged again before it is sent: a client may take long over what came before it. */
const judgedMs = 250;

const isGone = (error: unknown): boolean => error instanceof Refusal && error.code === 'NOT_FOUND';

/** Calls the listener when there may be something to send; the answer ends it. */
type Subscribe = (changed: () => void) => () => void;

/** A round: what there is to send now, as the caller of now may read it. @throws Refusal when the caller may not any more */
type Round<Sent> = (caller: Caller) => Promise<readonly Sent[]>;

interface Source<Sent> {
  readonly round: Round<Sent>;
  readonly subscribe: Subscribe;
  /** The most that one round finds. */
  readonly atOnce?: number;
  /** Told of each one before it is sent: what is not, the next round finds again. */
  readonly sending?: (one: Sent) => void;
}

/** A bell that can be waited for, and set back. */
const createBell = () => {
  let rung = Promise.withResolvers<void>();
  return { ring: () => rung.resolve(), heard: () => rung.promise, reset: () => void (rung = Promise.withResolvers()) };
};

/**
 * Sends what is there first, then what each round finds. Between rounds it waits for a change, or for the time at which
 * the caller is authenticated and judged again; not after a round that found as much as it looks for at once, or whose
 * judgement grew old before all was sent. A client that takes nothing is judged at that time, too; beside the one thing
 * it was sent, nothing is held for it. Completes when what is read is gone or the process drains, fails when the caller
 * may not read it any more.
 */
const rounds = async <Sent>({ caller: first, renewCaller, every, closing, ended }: Context, { round, subscribe, atOnce = Infinity, sending = () => {} }: Source<Sent>): Promise<AsyncIterable<Sent>> => {
  let judgedAt = performance.now();
  let found = await round(first);
  return new Repeater<Sent>(async (push, stop) => {
    let stopped = closing.aborted;
    const changed = createBell();
    const due = createBell();
    const wake = () => (changed.ring(), due.ring());
    void stop.then(() => ((stopped = true), wake()));
    const end = () => stop();
    closing.addEventListener('abort', end);
    const ends = [subscribe(changed.ring), every(reauthorizeMs, wake), () => closing.removeEventListener('abort', end)];

    /** Waits until the client takes what was sent. @throws Refusal when the caller may not read it any more */
    const taken = async (sent: Promise<unknown>): Promise<void> => {
      let isTaken = false;
      const taking = sent.then(() => (isTaken = true));
      due.reset();
      for (;;) {
        await Promise.race([taking, due.heard()]);
        if (isTaken || stopped) return;
        due.reset();
        await round(await renewCaller());
      }
    };

    try {
      while (!stopped) {
        let sent = 0;
        for (const one of found) {
          if (stopped || (sent > 0 && performance.now() - judgedAt > judgedMs)) break;
          sending(one);
          sent += 1;
          await taken(push(one));
        }
        if (!stopped && sent === found.length && sent < atOnce) {
          await changed.heard();
          changed.reset();
        }
        if (stopped) break;
        judgedAt = performance.now();
        found = await round(await renewCaller());
      }
      stop();
    } catch (error) {
      if (!isGone(error)) throw error;
      stop();
    } finally {
      for (const ending of ends) ending();
      ended();
    }
  });
};

/**
 * The current state first, then each one that differs from the last sent; a slow client misses states in between.
 * @throws Refusal before anything is sent: FORBIDDEN, NOT_FOUND
 */
export const statesOf = async <State>(context: Context, read: (caller: Caller) => Promise<State>, subscribe: Subscribe): Promise<AsyncIterable<State>> => {
  let sent: string | undefined;
  const round: Round<State> = async (caller) => [await read(caller)].filter((state) => JSON.stringify(state) !== sent);
  const sending = (state: State): void => {
    sent = JSON.stringify(state);
  };
  return rounds(context, { round, subscribe, sending });
};

/**
 * Every item in order and none left out, however slow the client; `read` answers at most `atOnce` of those that were
 * not sent yet, as `sending` is told.
 * @throws Refusal before anything is sent: FORBIDDEN
 */
export const itemsOf = <Item>(context: Context, source: Required<Source<Item>>): Promise<AsyncIterable<Item>> =>
  rounds(context, {
    ...source,
    subscribe: (changed) => {
      const end = source.subscribe(changed);
      changed(); // what came before anybody listened
      return end;
    },
  });
