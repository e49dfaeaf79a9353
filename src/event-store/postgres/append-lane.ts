/**
 * The group-commit lane: appends that wait while one call is in flight go into the next call together, each
 * with its own answer. The lane owns one connection; a call is one statement in autocommit, so a process
 * that is suspended at any moment holds no lock. (failure scenarios 12, 14, 23)
 */
import { setTimeout as delay } from 'node:timers/promises';
import type { Client } from 'pg';
import type { EventBytes } from '../../kernel/event.ts';
import { textArray } from '../../postgres/text-array.ts';
import { appendBytes, StoreUnavailable, WrongExpectedRevision } from '../event-store.ts';
import type { Appended } from '../event-store.ts';
import { connect, disconnect, failure } from './connection.ts';
import { positionText } from './position.ts';

/** Most appends of one call. */
export const maxBatchAppends = 64;
/** Most stored bytes of one call. */
export const maxBatchBytes = 1_048_576;

const lockTimeoutMs = 1_000;
const statementTimeoutMs = 2_000;
/** After this a call counts as lost: the server cannot be working on it any more. */
const callTimeoutMs = 2_500;
const retryMs = 50;

/** Limits that hold whatever the role or database says; transaction_timeout exists from PostgreSQL 17 on. */
const prepareSession = {
  text: `select set_config(wanted.name, wanted.setting, false)
           from (values ('default_transaction_isolation', 'read committed'), ('lock_timeout', '${lockTimeoutMs}'),
                        ('statement_timeout', '${statementTimeoutMs}'), ('transaction_timeout', '${callTimeoutMs}'))
             as wanted (name, setting) join pg_settings using (name)`,
  query_timeout: callTimeoutMs,
};

interface WaitingAppend {
  readonly stream: string;
  readonly expectedRevision: number;
  readonly events: readonly EventBytes[];
  readonly bytes: number;
  readonly deadline: number;
  readonly resolve: (appended: Appended) => void;
  readonly reject: (error: unknown) => void;
}

export interface AppendLane {
  /** Waits for its turn and its answer. The append must have passed `checkAppend`. */
  append(stream: string, expectedRevision: number, events: readonly EventBytes[]): Promise<Appended>;
  /** Takes no more appends, answers those that wait, and gives up the connection. */
  close(): Promise<void>;
}

/**
 * Opens a lane; an append is sent again, with identical bytes, until it is answered or `budgetMs` have passed. One that is
 * under way then waits for the end of its call, so that it is refused only when it is not stored, or nobody can know.
 */
export const createAppendLane = (url: string, budgetMs: number): AppendLane => {
  let client: Client | undefined;
  let waiting: WaitingAppend[] = [];
  let running: Promise<void> | undefined;
  let closed = false;
  let lastFailure: StoreUnavailable | undefined;

  const connected = async (): Promise<Client> => {
    if (client !== undefined) return client;
    client = await connect({ url, applicationName: 'exuvia append' }, (lost) => {
      if (client === lost) client = undefined;
    });
    await client.query(prepareSession);
    return client;
  };

  const send = async (batch: readonly WaitingAppend[]): Promise<void> => {
    const { rows } = await (await connected()).query<{ answers: (string | null)[] }>(appendCall(batch));
    batch.forEach((append, index) => {
      const position = rows[0]?.answers[index];
      if (position == null) append.reject(new WrongExpectedRevision(append.stream, append.expectedRevision));
      else append.resolve({ position: positionText(position), revision: append.expectedRevision + append.events.length });
    });
  };

  /** Who is told that his append is not stored shall not find it stored by a later call. */
  const refuseLate = (): void => {
    const isLate = ({ deadline }: WaitingAppend) => deadline <= performance.now();
    const late = waiting.filter(isLate);
    waiting = waiting.filter((append) => !late.includes(append));
    for (const { reject } of late) reject(new StoreUnavailable(`PostgreSQL did not store an append within ${budgetMs} ms`, { cause: lastFailure }));
  };

  const run = async (): Promise<void> => {
    let most = maxBatchAppends;
    for (;;) {
      await new Promise(setImmediate); // callers woken by one answer share the next call
      refuseLate();
      if (waiting.length === 0) break;
      const batch = takeBatch(waiting, most);
      waiting = waiting.slice(batch.length);
      try {
        await send(batch);
        most = maxBatchAppends;
      } catch (error) {
        if (client !== undefined) disconnect(client);
        client = undefined;
        const failed = failure(error);
        if (failed instanceof StoreUnavailable) {
          lastFailure = failed;
          waiting = [...batch, ...waiting];
          await delay(retryMs);
        } else if (batch.length === 1) {
          batch[0]!.reject(failed);
        } else {
          // One append of this batch is at fault: judged alone, it fails alone.
          waiting = [...batch, ...waiting];
          most = 1;
        }
      }
    }
    running = undefined;
  };

  return {
    append(stream, expectedRevision, events) {
      if (closed) return Promise.reject(new StoreUnavailable('The event store is closed'));
      const { promise, resolve, reject } = Promise.withResolvers<Appended>();
      const deadline = performance.now() + budgetMs;
      const timer = setTimeout(refuseLate, budgetMs + 1);
      waiting.push({ stream, expectedRevision, events, bytes: appendBytes(events), deadline, resolve, reject });
      running ??= run();
      return promise.finally(() => clearTimeout(timer));
    },
    async close() {
      closed = true;
      await running;
      if (client !== undefined) disconnect(client);
    },
  };
};

/** The longest run of appends, from the first, that one call may hold. */
export const takeBatch = <T extends { readonly bytes: number }>(waiting: readonly T[], most = maxBatchAppends): readonly T[] => {
  let bytes = 0;
  const beyond = waiting.findIndex((append, index) => index === most || (bytes += append.bytes) > maxBatchBytes);
  return beyond === -1 ? waiting : waiting.slice(0, beyond);
};

/** The one statement of a call; the arrays are explained at the function in the migration. */
const appendCall = (batch: readonly WaitingAppend[]) => {
  const events = batch.flatMap(({ expectedRevision, events }, index) =>
    events.map((event, offset) => ({ ...event, append: index + 1, revision: expectedRevision + 1 + offset })),
  );
  return {
    name: 'append_events',
    text: 'select append_events($1, $2, $3, $4, $5, $6, $7, $8, $9) as answers',
    values: [
      textArray(batch.map((append) => append.stream)),
      batch.map((append) => append.expectedRevision),
      batch.map((append) => append.events.length),
      events.map((event) => event.append),
      events.map((event) => event.revision),
      events.map((event) => event.id),
      textArray(events.map((event) => event.type)),
      textArray(events.map((event) => event.data)),
      textArray(events.map((event) => event.metadata)),
    ],
    query_timeout: callTimeoutMs,
  };
};
