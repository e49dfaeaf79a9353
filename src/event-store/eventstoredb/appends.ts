/** Appends: the same bytes under the same ids until the outcome is known, and the tail read back where an answer cannot be trusted. */
import { binaryEvent, NO_STREAM } from '@eventstore/db-client';
import { Fault } from '../../kernel/errors.ts';
import type { EventBytes } from '../../kernel/event.ts';
import { noStream, StoreUnavailable, WrongExpectedRevision } from '../event-store.ts';
import type { Appended, EventStore } from '../event-store.ts';
import type { Connection } from './connection.ts';
import { isWrongRevision } from './failure.ts';
import { positionText } from './position.ts';
import type { Reads } from './reads.ts';
import { retrying } from './retrying.ts';

interface AppendOptions {
  /** How long an append is tried in all. */
  readonly budgetMs: number;
  /** How long the server may take for one attempt. */
  readonly callTimeoutMs: number;
}

/**
 * Binary on purpose: a "JSON" event is parsed and written anew by the client, so the stored bytes, and with them the
 * hash chain, would be the client's and not ours. Id and type stay readable in the store's own tools.
 */
const proposed = ({ id, type, data, metadata }: EventBytes) => binaryEvent({ id, type, data: Buffer.from(data), metadata: Buffer.from(metadata) });

/** The append must have passed `checkAppend`. (failure scenarios 12, 30) */
export const createAppend = ({ client, options }: Connection, reads: Reads, { budgetMs, callTimeoutMs }: AppendOptions): EventStore['append'] => {
  /** The first answer to an append that is in the stream already, or undefined. */
  const firstAnswer = async (stream: string, expectedRevision: number, events: readonly EventBytes[]): Promise<Appended | undefined> => {
    const found = await reads.readRange(stream, expectedRevision + 1, events.length);
    const last = found.at(-1);
    const ours = events.every(({ id }, index) => found[index]?.id === id && found[index].revision === expectedRevision + 1 + index);
    return ours && last !== undefined ? { position: last.position, revision: last.revision } : undefined;
  };

  return (stream, expectedRevision, events) => {
    const proposal = events.map(proposed);
    const revision = expectedRevision + events.length;

    /** Undefined where the server acknowledges without a position. */
    const send = async (deadline: number): Promise<Appended | undefined> => {
      const answer = await client.appendToStream(stream, proposal, {
        ...options,
        expectedRevision: expectedRevision === noStream ? NO_STREAM : BigInt(expectedRevision),
        deadline,
      });
      if (answer.nextExpectedRevision !== BigInt(revision))
        throw new Fault(`Stream ${stream} went on at revision ${answer.nextExpectedRevision} instead of ${revision}: it was deleted in the event store`);
      const position = answer.position && positionText(String(answer.position.commit), String(answer.position.prepare));
      return position && { position, revision };
    };

    return retrying(budgetMs, async (leftMs, attempt) => {
      let conflict = false;
      const answer = await send(Math.min(leftMs, callTimeoutMs)).catch((error: unknown) => {
        if (!isWrongRevision(error)) throw error;
        conflict = true;
        return undefined;
      });
      if (attempt === 1 && answer !== undefined) return answer;
      const found = await firstAnswer(stream, expectedRevision, events);
      if (found !== undefined) return found;
      if (conflict) throw new WrongExpectedRevision(stream, expectedRevision);
      throw new StoreUnavailable(`An append to ${stream} was acknowledged and is not there`);
    });
  };
};
