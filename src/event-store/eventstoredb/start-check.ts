/**
 * What a start must find in an EventStoreDB: a user with every right the product takes, and no settings by which the
 * server would let events of ours go. Nothing is written. (failure scenarios 20, 30)
 */
import { binaryEvent, START, streamNameFilter } from '@eventstore/db-client';
import { randomUUID } from 'node:crypto';
import { Fault } from '../../kernel/errors.ts';
import type { Connection } from './connection.ts';
import { failure, isDenied, isWrongRevision } from './failure.ts';
import type { Reads } from './reads.ts';
import { eventOf, messages, settingsIn } from './responses.ts';
import { retrying } from './retrying.ts';

interface StartCheckOptions {
  /** How long a call is tried in all. */
  readonly budgetMs: number;
  /** How long the server may leave a call without a message. */
  readonly silenceMs: number;
}

export type StartCheck = (streamPrefix?: string) => Promise<void>;

/** Settings of a stream by which the server hides its first events, and drops them at the next scavenge. */
const truncating = ['$maxAge', '$maxCount', '$tb'];
/** A revision that no stream of ours has: an append after it tells rights and stores nothing. */
const unreachableRevision = 2n ** 31n - 1n;
/** Whose rights stand for all streams of ours, where no Installation is known yet. */
const anyStream = 'exuvia';
/** A sign of life for so many times 32 events passed over. */
const checkpointInterval = 32;

/** With a prefix, the settings of all streams that begin with it are examined: the server looks through its whole log for them. */
export const createStartCheck =
  ({ client, options }: Connection, reads: Reads, { budgetMs, silenceMs }: StartCheckOptions): StartCheck =>
  async (streamPrefix) => {
    const stream = streamPrefix === undefined ? anyStream : `${streamPrefix}store`;

    const demand = async <T>(right: string, what: string, call: () => Promise<T>): Promise<T> => {
      try {
        return await call();
      } catch (error) {
        const failed = failure(error);
        if (!isDenied(failed)) throw failed;
        throw new Fault(`The event store does not let its user ${options.credentials.username} ${what}: it lacks the right ${right}`, { cause: error });
      }
    };

    const append = (): Promise<unknown> =>
      retrying(budgetMs, (deadline) =>
        client.appendToStream(stream, binaryEvent({ id: randomUUID(), type: 'StartCheck', data: Buffer.of() }), { ...options, expectedRevision: unreachableRevision, deadline }).catch((error: unknown) => {
          if (!isWrongRevision(error)) throw error;
        }),
      );

    /** The settings in force now, by stream. The client sends a filter only with a subscription. */
    const readSettings = async (): Promise<ReadonlyMap<string, Readonly<Record<string, unknown>>>> => {
      const settings = new Map<string, Readonly<Record<string, unknown>>>();
      const filter = streamNameFilter({ prefixes: [`$$${streamPrefix ?? anyStream}`], checkpointInterval });
      for await (const message of messages(client.subscribeToAll({ ...options, fromPosition: START, filter }), silenceMs)) {
        const event = eventOf(message);
        if (event !== undefined) settings.set(event.stream.slice(2), settingsIn(event));
        if (message.hasCaughtUp() || (streamPrefix === undefined && message.hasConfirmation())) break;
      }
      return settings;
    };

    await demand('$r', `read stream ${stream}`, () => reads.readRange(stream, 0, 1));
    await demand('$mr', `read the metadata of stream ${stream}`, () => reads.readRange(`$$${stream}`, 0, 1));
    await demand('$w', `append to stream ${stream}`, append);
    for (const [name, settings] of await demand('$r on $all', 'read $all', readSettings))
      for (const setting of truncating)
        if (Number(settings[setting] ?? 0) > 0)
          throw new Fault(`The event store would let events of stream ${name} go: ${setting} is set in its metadata and must be taken out`);
  };
