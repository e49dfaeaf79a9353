/**
 * Reading one's own write: waits, for a bounded time and without holding a connection, until the consumers of this
 * build have passed a position. (architecture section 4, failure scenario 15)
 */
import type { Pool } from 'pg';
import type { Position } from '../event-store/event-store.ts';
import { checkpointChannel } from './consumer-checkpoint.ts';
import type { AppliedBatch } from './consumer-runner.ts';
import type { Consumer, ConsumerId } from './consumer.ts';
import type { Notifications } from './notifications.ts';

export interface ReadYourWrite {
  /** Resolves when the read models (with `work`, the sagas too) have passed the position, or after the limit, 1 s. Never rejects. */
  waitFor(position: Position | null, options?: { readonly work?: boolean }): Promise<void>;
  /** Hears of what a leader in this process has applied, sooner than the database could say. */
  note(batch: AppliedBatch): void;
}

interface Waiter {
  readonly isDone: () => boolean;
  readonly resolve: () => void;
}

const defaultLimitMs = 1_000;
const pollMs = 25;

const keyOf = ({ name, version }: ConsumerId): string => `${name}@${version}`;

export const createReadYourWrite = (pool: Pool, consumers: readonly Consumer[], notifications: Notifications, limitMs: number = defaultLimitMs): ReadYourWrite => {
  const readModels = consumers.filter(({ role }) => role === 'read-model').map(keyOf);
  const all = consumers.map(keyOf);
  const places = new Map<string, Position>();
  const waiters = new Set<Waiter>();
  let refreshing = false;
  let asked = false;
  let poll: NodeJS.Timeout | undefined;

  const settle = (): void => {
    for (const waiter of waiters) if (waiter.isDone()) waiter.resolve();
  };

  const move = (consumer: ConsumerId, position: Position | null): void => {
    if (position !== null && position > (places.get(keyOf(consumer)) ?? '')) places.set(keyOf(consumer), position);
  };

  /** One query for all who wait; whoever asks while it runs gets another one after it. */
  const refresh = async (): Promise<void> => {
    asked = true;
    if (refreshing) return;
    refreshing = true;
    while (asked && waiters.size > 0) {
      asked = false;
      try {
        const { rows } = await pool.query<ConsumerId & { position: Position | null }>({
          name: 'read_checkpoints',
          text: 'select name, version, position from consumer_checkpoint',
        });
        for (const row of rows) move(row, row.position);
        settle();
      } catch {
        // The write is stored whatever the database says now: the wait ends by its limit.
      }
    }
    refreshing = false;
  };

  notifications.on(checkpointChannel, () => {
    if (waiters.size > 0) void refresh();
  });

  return {
    waitFor: (position, { work = false } = {}) => {
      const wanted = work ? all : readModels;
      const isDone = (): boolean => position === null || wanted.every((key) => (places.get(key) ?? '') >= position);
      if (isDone()) return Promise.resolve();
      return new Promise<void>((done) => {
        const resolve = (): void => {
          clearTimeout(timer);
          waiters.delete(waiter);
          if (waiters.size === 0) {
            clearInterval(poll);
            poll = undefined;
          }
          done();
        };
        const timer = setTimeout(resolve, limitMs);
        const waiter = { isDone, resolve };
        waiters.add(waiter);
        poll ??= setInterval(() => void refresh(), pollMs);
      });
    },
    note: ({ checkpoints }) => {
      for (const { checkpoint, ...consumer } of checkpoints) move(consumer, checkpoint?.position ?? null);
      settle();
    },
  };
};
