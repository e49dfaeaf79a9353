/** PostgreSQL's clock, as this process knows it: its own, corrected by an offset that is measured again and again. (failure scenario 21) */
import type { Pool } from 'pg';
import type { Clock } from '../runtime/clock.ts';

const measureEveryMs = 30_000;

export interface DatabaseClock extends Clock {
  close(): void;
}

/** Half of the round trip is taken as the answer's age. */
const measureOffset = async (pool: Pool): Promise<number> => {
  const sentAt = Date.now();
  const { rows } = await pool.query<{ ms: string }>('select (extract(epoch from clock_timestamp()) * 1000)::bigint as ms');
  return Number(rows[0]!.ms) - (sentAt + Date.now()) / 2;
};

/** A clock measured once before it is first read; a measurement that fails keeps the last offset. */
export const createDatabaseClock = async (pool: Pool): Promise<DatabaseClock> => {
  let offsetMs = await measureOffset(pool);
  const timer = setInterval(() => void measureOffset(pool).then((measured) => (offsetMs = measured), () => undefined), measureEveryMs);
  timer.unref();
  return { now: () => Date.now() + Math.round(offsetMs), close: () => clearInterval(timer) };
};
