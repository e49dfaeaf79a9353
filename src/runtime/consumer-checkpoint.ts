/**
 * Where consumers are: checkpoints that move by compare-and-set on place and event id, the streams parked on
 * the way, and the number of the lock that makes one process their leader. (failure scenarios 5, 7 and 16)
 */
import type { ClientBase } from 'pg';
import type { EventStore, Position } from '../event-store/event-store.ts';
import { sha256 } from '../kernel/canonical.ts';
import { Fault } from '../kernel/errors.ts';
import type { Consumer, ConsumerId } from './consumer.ts';

/** The channel on which leaders say that checkpoints have moved. */
export const checkpointChannel = 'exuvia_checkpoint';

/** The last event applied. */
export interface Checkpoint {
  readonly position: Position;
  readonly eventId: string;
}

/** The first event of a stream that a consumer could not take, and why. */
export interface Parked {
  readonly revision: number;
  readonly reason: string;
}

/** A consumer this process leads, and where it is. */
export interface Member {
  readonly consumer: Consumer;
  checkpoint: Checkpoint | null;
  /** By full stream name. */
  parked: ReadonlyMap<string, Parked>;
  /** Whether what its consumer's completion asks for is there. */
  complete: boolean;
}

/** The event at a checkpoint is not the one that was applied: the store is older, or another one. */
export class HistoryMismatch extends Fault {}

/** Somebody else moved a checkpoint: this process is no longer the leader. */
export class LeadershipLost extends Error {
  override readonly name = 'LeadershipLost';
}

/** Whether a consumer at this checkpoint has applied everything up to a position. */
export const hasPassed = (checkpoint: Checkpoint | null, position: Position): boolean => checkpoint !== null && checkpoint.position >= position;

/** The advisory lock of a consumer of one Installation, as a signed 64-bit number. */
export const lockNumber = (prefix: string, { name, version }: ConsumerId): string =>
  BigInt.asIntN(64, BigInt(`0x${sha256(`${prefix}${name}@${version}`).slice(0, 16)}`)).toString();

const keysOf = (consumers: readonly ConsumerId[]): [string[], number[]] => [consumers.map(({ name }) => name), consumers.map(({ version }) => version)];

/** Creates missing tables and checkpoint rows, and reads where each consumer is. To be called under its lock. */
export const loadMembers = async (client: ClientBase, consumers: readonly Consumer[]): Promise<readonly Member[]> => {
  for (const consumer of consumers) await consumer.prepare(client);
  const keys = keysOf(consumers);
  await client.query(
    'insert into consumer_checkpoint (name, version) select * from unnest($1::text[], $2::integer[]) on conflict do nothing',
    keys,
  );
  const { rows: places } = await client.query<ConsumerId & { position: Position | null; event_id: string | null }>(
    'select name, version, position, event_id from consumer_checkpoint where (name, version) in (select * from unnest($1::text[], $2::integer[]))',
    keys,
  );
  const { rows: parked } = await client.query<ConsumerId & { stream: string; revision: string; reason: string }>(
    'select name, version, stream, revision, reason from parked_stream where (name, version) in (select * from unnest($1::text[], $2::integer[]))',
    keys,
  );
  return consumers.map((consumer) => {
    const isOwn = ({ name, version }: ConsumerId): boolean => name === consumer.name && version === consumer.version;
    const place = places.find(isOwn);
    return {
      consumer,
      checkpoint: place?.position && place.event_id ? { position: place.position, eventId: place.event_id } : null,
      complete: consumer.completion === undefined,
      parked: new Map(parked.filter(isOwn).map(({ stream, revision, reason }) => [stream, { revision: Number(revision), reason }])),
    };
  });
};

/** Gives the readers of a member what filling did without, however long that takes. */
export const completeMember = async (client: ClientBase, member: Member): Promise<void> => {
  if (member.complete) return;
  for (const statement of member.consumer.completion ?? []) {
    await client.query('begin');
    await client.query('set local statement_timeout = 0');
    await client.query(statement);
    await client.query('commit');
  }
  member.complete = true;
};

/** Reads the event at each checkpoint back. @throws HistoryMismatch */
export const recognise = async (store: EventStore, checkpoints: readonly (Checkpoint | null)[]): Promise<void> => {
  const distinct = new Map(checkpoints.flatMap((checkpoint) => (checkpoint === null ? [] : [[checkpoint.position, checkpoint.eventId] as const])));
  for (const [position, eventId] of distinct) {
    const found = await store.readAt(position);
    if (found?.id === eventId) continue;
    throw new HistoryMismatch(
      `The event store does not hold event ${eventId} at position ${position}, which this database has already applied: ` +
        'the store was restored to an older state, or is another one; nothing works on it before exuvia restore',
    );
  }
};

export interface Move {
  readonly member: Member;
  readonly to: Checkpoint | null;
}

/** Moves checkpoints, all or none, and tells those who wait. @throws LeadershipLost */
export const moveCheckpoints = async (client: ClientBase, moves: readonly Move[], caughtUp: boolean): Promise<void> => {
  const { rows } = await client.query<{ moved: number }>({
    name: 'move_checkpoints',
    text: `
      with moved as (
        update consumer_checkpoint as own
           set position = move.position, event_id = move.event_id, updated_at = clock_timestamp(),
               caught_up_at = case when $7 then clock_timestamp() else own.caught_up_at end
          from unnest($1::text[], $2::integer[], $3::text[], $4::uuid[], $5::text[], $6::uuid[])
            as move (name, version, old_position, old_event_id, position, event_id)
         where own.name = move.name and own.version = move.version
           and own.position is not distinct from move.old_position and own.event_id is not distinct from move.old_event_id
        returning 1)
      select count(*)::integer as moved, pg_notify('${checkpointChannel}', '') from moved`,
    values: [
      ...keysOf(moves.map(({ member }) => member.consumer)),
      moves.map(({ member }) => member.checkpoint?.position),
      moves.map(({ member }) => member.checkpoint?.eventId),
      moves.map(({ to }) => to?.position),
      moves.map(({ to }) => to?.eventId),
      caughtUp,
    ],
  });
  if (rows[0]?.moved !== moves.length) throw new LeadershipLost('A checkpoint was moved by another leader');
};

/** Says that these consumers stand at the end of the store now. */
export const touchCheckpoints = async (client: ClientBase, members: readonly Member[]): Promise<void> => {
  await client.query({
    name: 'touch_checkpoints',
    text: `update consumer_checkpoint set caught_up_at = clock_timestamp()
            where (name, version) in (select * from unnest($1::text[], $2::integer[]))`,
    values: keysOf(members.map(({ consumer }) => consumer)),
  });
};
