/**
 * Recognises the event store beside a database, and the database beside an event store: nobody works on a history this
 * database has not followed, and a database that went back is noticed by the history it forgot. (failure scenarios 5 and 9)
 *
 * A database goes back in two ways. One that was restored from a backup knows of fewer openings than the history, and
 * everything that only it remembers ends. A standby that was promoted may lack the last seconds without lacking an
 * opening, so nothing is taken on trust where a new leader takes over: the checkpoints went back together with the rows,
 * and what the history saw end after them ends again. Until then no session opens anything on a server with another
 * identifier or timeline than the one the sessions were compared on ({@link StoreIdentityRow.open}). A switch-over that
 * lost nothing ends nothing; neither does one that lost the same seconds of the history, because both are in one database.
 */
import { randomUUID } from 'node:crypto';
import { eventStore } from '../aggregates.ts';
import type { EventStore, Position } from '../event-store/event-store.ts';
import { systemContext } from '../installation/bootstrap.ts';
import { HistoryMismatch, recognise, type Checkpoint } from '../runtime/consumer-checkpoint.ts';
import type { Streams } from '../runtime/streams.ts';
import { wentBack } from './store-identity.ts';

/** The row in which a database remembers its event store. */
export interface StoreIdentityRow {
  /** The row, if there is one, the places of all consumers, and which server answers, seen at one moment. */
  read(): Promise<{ readonly known: KnownStore | undefined; readonly checkpoints: readonly Checkpoint[]; readonly incarnation: string }>;
  /** Makes the row where there is none. */
  insert(storeId: string): Promise<void>;
  /** Raises the number of openings, and lets sessions count on the server they were compared on. */
  open(number: number, incarnation: string): Promise<void>;
}

export interface KnownStore {
  readonly storeId: string;
  readonly opened: number;
  /** The server the sessions were compared on last: its cluster's identifier and its timeline. */
  readonly incarnation: string | null;
}

/** Another server stands in the place of the one the sessions were compared on. */
export interface HandedOver {
  readonly from: string | null;
  readonly to: string;
  /** Sessions that had ended already and lived again. */
  readonly endedSessions: number;
}

/** A database that knew of fewer openings than the history. */
export interface WentBack {
  readonly expected: number;
  readonly found: number;
}

export interface Recognition {
  /**
   * Compares store and database, and makes them know each other when both are new.
   * @throws HistoryMismatch whose one sentence says why nobody may work, Refusal DEPENDENCY_UNAVAILABLE
   */
  check(): Promise<void>;
  /**
   * {@link check}, then counts an opening on both sides: what a new leader of the consumers does first.
   * @throws as check does
   */
  openDatabase(): Promise<void>;
  /** What the operator should know of the last opening; none of it keeps anybody from working. */
  degraded(): Promise<readonly string[]>;
}

export const createRecognition = ({
  streams,
  store,
  row,
  installationId,
  onWentBack,
  endSince,
  onHandedOver,
}: {
  readonly streams: Streams;
  readonly store: EventStore;
  readonly row: StoreIdentityRow;
  readonly installationId: string;
  /** Ends what only a database remembers, such as sessions, and tells the operator; repeated if the process dies before its end. */
  readonly onWentBack: (facts: WentBack) => Promise<void>;
  /** Ends again what the history saw end after a position (null: ever); answers how many were alive. */
  readonly endSince: (position: Position | null) => Promise<number>;
  readonly onHandedOver: (facts: HandedOver) => void;
}): Recognition => {
  const context = systemContext(installationId);
  const history = async () => (await streams.load(eventStore, '')).state;

  const check: Recognition['check'] = async () => {
    const { known, checkpoints } = await row.read();
    if (known === undefined && checkpoints.length > 0)
      throw new HistoryMismatch('The database has followed an event store and does not know which: nothing works on it before exuvia restore');
    if (known === undefined) {
      const { state } = await streams.execute(eventStore, '', { type: 'OpenStore', storeId: randomUUID() }, context);
      await row.insert(state.storeId!);
      return check();
    }
    const { storeId } = await history();
    if (storeId !== known.storeId)
      throw new HistoryMismatch(
        storeId === null
          ? `The event store holds no history of Installation ${installationId}, which this database has followed: nothing works on it before exuvia restore`
          : `The history of Installation ${installationId} is that of event store ${storeId}, and this database has followed ${known.storeId}: nothing works on it before exuvia restore`,
      );
    await recognise(store, checkpoints);
  };

  return {
    check,
    openDatabase: async () => {
      await check();
      // The history first: a number is in the row before it is in the history, so a smaller one in the row was forgotten.
      const { opened: expected } = await history();
      const { known, checkpoints, incarnation } = await row.read();
      const found = known?.opened ?? 0;
      if (found < expected) await onWentBack({ expected, found });
      // A checkpoint moves past the end of a session after the row has gone: a database without the one lacks the other.
      const passed = checkpoints.map(({ position }) => position).sort().at(-1) ?? null;
      const endedSessions = await endSince(passed);
      if (known?.incarnation !== incarnation) onHandedOver({ from: known?.incarnation ?? null, to: incarnation, endedSessions });
      const number = Math.max(expected, found) + 1;
      await row.open(number, incarnation);
      await streams.execute(eventStore, '', { type: 'OpenDatabase', number, found }, context);
    },
    degraded: async () => {
      const [state, { known, incarnation }] = await Promise.all([history(), row.read()]);
      const isCompared = known?.incarnation === incarnation;
      return [
        ...(wentBack(state) ? [`The database went back to an older state: at opening ${state.opened} it knew of ${state.found}; sessions and private rows made since then are lost`] : []),
        ...(isCompared ? [] : ['Another server took the place of the database: sessions open nothing before the projector has compared them with the history']),
      ];
    },
  };
};
