/** How this build's consumers stand, whoever leads them: what a replica needs before it is ready, and what it only reports. (failure scenario 35) */
import type { Pool } from 'pg';
import type { Consumer } from './consumer.ts';

export interface ConsumerHealth {
  /** Every consumer of this build has stood at the end of the store at least once. */
  readonly hasCaughtUp: boolean;
  /** One sentence for each thing that is behind or stuck; none of it makes a replica unready. */
  readonly degraded: readonly string[];
}

const lagLimit = '5 seconds';

export const readConsumerHealth = async (pool: Pool, consumers: readonly Consumer[]): Promise<ConsumerHealth> => {
  const { rows } = await pool.query<{ name: string; caught_up: boolean | null; parked: number; stream: string | null; reason: string | null }>(
    `select wanted.name, place.caught_up_at > clock_timestamp() - interval '${lagLimit}' as caught_up,
            parked.count::integer as parked, parked.stream, parked.reason
       from unnest($1::text[], $2::integer[]) as wanted (name, version)
       left join consumer_checkpoint as place using (name, version)
      cross join lateral (select count(*), (array_agg(stream order by parked_at, stream))[1] as stream, (array_agg(reason order by parked_at, stream))[1] as reason
                            from parked_stream where parked_stream.name = wanted.name and parked_stream.version = wanted.version) as parked`,
    [consumers.map(({ name }) => name), consumers.map(({ version }) => version)],
  );
  return {
    hasCaughtUp: rows.every(({ caught_up }) => caught_up !== null),
    degraded: rows.flatMap(({ name, caught_up, parked, stream, reason }) => [
      ...(caught_up === true ? [] : [`${name} has not been at the end of the event store for ${lagLimit}`]),
      ...(parked === 0 ? [] : [`${name} has parked ${parked} ${parked === 1 ? 'stream' : 'streams'}, first ${stream}: ${reason}`]),
    ]),
  };
};
