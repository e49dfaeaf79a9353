/**
 * One transaction of the consumers a process leads: their rows, the streams they had to park, and their
 * checkpoints, together or not at all. (architecture section 4, failure scenarios 6 and 7)
 */
import pg from 'pg';
import type { ClientBase } from 'pg';
import type { StoredEvent } from '../event-store/event-store.ts';
import type { Codec } from '../kernel/codec.ts';
import { moveCheckpoints, type Checkpoint, type Member, type Parked } from './consumer-checkpoint.ts';
import type { Consumer, Delivered, Unread } from './consumer.ts';

/** Events as the consumers of one Installation read them. */
export interface Reader {
  /** With what every stream name of the Installation begins. */
  readonly prefix: string;
  /** Every event type this build knows. */
  readonly codec: Codec;
}

/** A stored event, decoded once for all consumers. */
export interface Delivery {
  readonly stored: StoredEvent;
  readonly kind: string;
  /** Undefined when this build cannot read it; then `fault` says why. */
  readonly delivered: Delivered | undefined;
  readonly fault: unknown;
}

const deliverOne = ({ prefix, codec }: Reader, stored: StoredEvent): Delivery => {
  const stream = stored.stream.slice(prefix.length);
  const dash = stream.indexOf('-');
  const kind = dash === -1 ? stream : stream.slice(0, dash);
  try {
    const { event, envelope } = codec.decode(stored);
    const delivered = { type: event.type, data: event.data, envelope, position: stored.position, stream, kind, metadata: stored.metadata };
    return { stored, kind, delivered, fault: undefined };
  } catch (fault) {
    return { stored, kind, delivered: undefined, fault };
  }
};

const unreadOf = ({ stored: { id, type, position, stream, revision, metadata }, kind }: Delivery, { prefix }: Reader): Unread => ({
  id,
  type,
  position,
  stream: stream.slice(prefix.length),
  kind,
  revision,
  metadata,
});

/** Decodes events for the consumers. */
export const deliver = (reader: Reader, events: readonly StoredEvent[]): readonly Delivery[] => events.map((stored) => deliverOne(reader, stored));

/** What one member does in a transaction. */
export interface Step {
  readonly member: Member;
  readonly deliveries: readonly Delivery[];
  /** Streams to pass by: they wait for an event that cannot be taken. */
  readonly parked: ReadonlyMap<string, Parked>;
  readonly checkpoint: Checkpoint | null;
}

const reasonLimit = 500;
const reasonOf = (error: unknown): string => (error instanceof Error ? error.message : String(error)).slice(0, reasonLimit);

/** A type this build knows and the consumer does not handle is passed unread; an unknown one might matter. */
const concerns = ({ streams, handles }: Consumer, { kind, stored }: Delivery, { codec }: Reader): boolean =>
  (streams === undefined || streams.has(kind)) && (handles(stored.type) || !codec.definitions.has(stored.type));

/** SQLSTATE classes 22 and 23: the value itself is at fault, and trying again will not help. */
const isAtFault = (error: unknown): boolean => error instanceof pg.DatabaseError && /^2[23]/.test(error.code ?? '');

/** Writes a member's events; answers the streams that are parked afterwards. */
type Write = (client: ClientBase, step: Step, reader: Reader) => Promise<ReadonlyMap<string, Parked>>;

const writeTogether: Write = async (client, { member: { consumer }, deliveries, parked }, reader) => {
  const parkedAfter = new Map(parked);
  const batch = consumer.begin();
  for (const delivery of deliveries) {
    const { stream, revision } = delivery.stored;
    if (!concerns(consumer, delivery, reader)) continue;
    const waits = parkedAfter.has(stream);
    if (waits && batch.mark === undefined) continue;
    try {
      if (delivery.delivered === undefined) throw delivery.fault;
      batch.add(delivery.delivered);
    } catch (error) {
      batch.mark?.(unreadOf(delivery, reader));
      if (!waits) parkedAfter.set(stream, { revision, reason: reasonOf(error) });
    }
  }
  await batch.write(client);
  return parkedAfter;
};

/** Finds the event whose rows PostgreSQL refuses, by writing each alone. */
const writeOneByOne: Write = async (client, { member, deliveries, parked, checkpoint }, reader) => {
  let parkedAfter = parked;
  for (const delivery of deliveries) {
    const { stream, revision } = delivery.stored;
    await client.query('savepoint one_event');
    try {
      parkedAfter = await writeTogether(client, { member, deliveries: [delivery], parked: parkedAfter, checkpoint }, reader);
    } catch (error) {
      if (!isAtFault(error)) throw error;
      await client.query('rollback to savepoint one_event');
      parkedAfter = new Map(parkedAfter).set(stream, { revision, reason: reasonOf(error) });
    }
    await client.query('release savepoint one_event');
  }
  return parkedAfter;
};

const writeParked = async (client: ClientBase, { consumer: { name, version }, parked }: Member, after: ReadonlyMap<string, Parked>): Promise<void> => {
  const gone = [...parked.keys()].filter((stream) => !after.has(stream));
  const changed = [...after].filter(([stream, { revision, reason }]) => parked.get(stream)?.revision !== revision || parked.get(stream)?.reason !== reason);
  if (gone.length > 0) await client.query('delete from parked_stream where name = $1 and version = $2 and stream = any($3)', [name, version, gone]);
  if (changed.length > 0)
    await client.query(
      `insert into parked_stream (name, version, stream, revision, reason)
       select $1, $2, * from unnest($3::text[], $4::bigint[], $5::text[])
       on conflict (name, version, stream) do update set revision = excluded.revision, reason = excluded.reason`,
      [name, version, changed.map(([stream]) => stream), changed.map(([, { revision }]) => revision), changed.map(([, { reason }]) => reason)],
    );
};

/**
 * Applies steps in one transaction and moves the members on.
 * @throws LeadershipLost when a checkpoint is not where its member left it; nothing was applied
 */
export const applySteps = async (client: ClientBase, reader: Reader, steps: readonly Step[], caughtUp: boolean): Promise<void> => {
  const attempt = async (write: Write): Promise<void> => {
    await client.query('begin');
    try {
      const parkedAfter: ReadonlyMap<string, Parked>[] = [];
      for (const step of steps) parkedAfter.push(await write(client, step, reader));
      for (const [index, { member }] of steps.entries()) await writeParked(client, member, parkedAfter[index]!);
      await moveCheckpoints(client, steps.map(({ member, checkpoint }) => ({ member, to: checkpoint })), caughtUp);
      await client.query('commit');
      for (const [index, { member, checkpoint }] of steps.entries()) {
        member.parked = parkedAfter[index]!;
        member.checkpoint = checkpoint;
      }
    } catch (error) {
      await client.query('rollback').catch(() => {}); // the first error says what happened
      throw error;
    }
  };
  try {
    await attempt(writeTogether);
  } catch (error) {
    if (!isAtFault(error)) throw error;
    await attempt(writeOneByOne);
  }
};
