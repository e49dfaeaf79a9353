/** How far the loops behind the edges are, asked of the database in one statement, and how much room the data folder has. */
import { statfs } from 'node:fs/promises';
import type { Pool } from 'pg';
import type { Standing } from './metrics.ts';

export const readStanding = async (pool: Pool, dataDir: string): Promise<Standing> => {
  const { rows } = await pool.query<{ consumer: string | null; lag: number; parked: number; queue_age: number }>(
    `select place.name as consumer, coalesce(extract(epoch from clock_timestamp() - place.caught_up_at), 0)::float8 as lag,
            (select count(*)::integer from parked_stream where parked_stream.name = place.name and parked_stream.version = place.version) as parked,
            due.seconds as queue_age
       from (select coalesce(extract(epoch from clock_timestamp() - min(available_at)), 0)::float8 as seconds
               from work_item where state = 'queued' and available_at <= clock_timestamp()) as due
       left join consumer_checkpoint as place on true`,
  );
  const { bavail, bsize } = await statfs(dataDir);
  const named = rows.filter((row): row is typeof row & { consumer: string } => row.consumer !== null);
  return {
    projectionLagSeconds: Object.fromEntries(named.map(({ consumer, lag }) => [consumer, lag])),
    parkedStreams: Object.fromEntries(named.map(({ consumer, parked }) => [consumer, parked])),
    queueAgeSeconds: rows[0]!.queue_age,
    dataFolderFreeBytes: bavail * bsize,
  };
};
