/**
 * The work table as a queue: claims with leases, one live claim per lane, everything judged by PostgreSQL's
 * clock. What a row means is known to its lane's stream; the row says what is due and who holds it.
 * (agent-lifecycle 3.2 to 3.4, failure scenario 22)
 */
import { randomUUID } from 'node:crypto';
import type pg from 'pg';
import type { Claim } from '../kernel/work.ts';

export interface WorkItem {
  readonly key: string;
  /** At most one item of a lane is claimed at a time. */
  readonly lane: string;
  readonly kind: string;
  readonly namespaceId: string;
  readonly agentId: string | null;
  readonly revisionId: string | null;
  readonly operationId: string | null;
}

export interface ClaimedWork extends WorkItem, Claim {
  /** Claims counted so far, this one included. */
  readonly attempt: number;
}

/** What a live claim knows of itself, by PostgreSQL's clock. */
export interface LeaseStanding {
  readonly remainingMs: number;
  /** Since the item was created. */
  readonly ageMs: number;
}

export type FinalState = 'succeeded' | 'failed_permanent';

/** How a row goes back into the queue. */
export interface Requeue {
  readonly delayMs: number;
  /** The attempt counter afterwards. */
  readonly attempts: number;
}

/** Every change of a claimed row needs its key, its token and, but for recovery, a lease that still runs; otherwise it answers false. */
export interface WorkQueue {
  /** The next due item of a free lane, claimed; undefined when nothing is due. */
  claim(): Promise<ClaimedWork | undefined>;
  renew(claim: Claim): Promise<boolean>;
  /** Undefined when the lease has ended. */
  verify(claim: Claim): Promise<LeaseStanding | undefined>;
  requeue(claim: Claim, how: Requeue): Promise<boolean>;
  finish(claim: Claim, state: FinalState, code: string): Promise<boolean>;
  /** Removes the rows of an Agent, this claimed one included. */
  removeAgent(claim: Claim, agentId: string): Promise<boolean>;
  /** Claims whose lease has ended, oldest first. */
  expired(limit: number): Promise<readonly ClaimedWork[]>;
  /** Queued items no claim will take any more, because their attempts are used up. */
  exhausted(limit: number): Promise<readonly (WorkItem & { readonly attempt: number })[]>;
  requeueExpired(claim: Claim, how: Requeue): Promise<boolean>;
  finishExpired(claim: Claim, state: FinalState, code: string): Promise<boolean>;
  requeueExhausted(key: string, how: Requeue): Promise<boolean>;
  finishQueued(key: string, state: FinalState, code: string): Promise<boolean>;
  /** Makes the waiting items of a lane due now; those that have spent attempts keep their backoff. */
  wakeLane(lane: string): Promise<void>;
  /** Queues an item that no event asks for; one that is still open stays as it is, a finished one starts afresh. */
  offer(item: WorkItem, actor: string, streamRevision: number): Promise<void>;
  /** Milliseconds until the next queued item of a free lane is due; undefined when there is none. */
  nextDueMs(): Promise<number | undefined>;
}

export interface WorkQueueSettings {
  readonly leaseDurationMs: number;
  readonly maxAttempts: number;
}

/** The channel on which processes tell each other that something became due. */
export const workChannel = 'exuvia_work';

/** The channel on which a claim that starts is told: it is no event, and still shows as `running`. */
export const claimChannel = 'exuvia_claim';

const claimRaces = new Set(['23505', '40001', '40P01']);
const raceRetries = 3;

const columns = 'key, lane, kind, namespace_id as "namespaceId", agent_id as "agentId", revision_id as "revisionId", operation_id as "operationId"';
const claimedColumns = `${columns}, key as "workKey", claim_token as "claimToken", attempt_count as attempt`;
const freeLane = `not exists (select from work_item as other where other.lane = work_item.lane and other.state = 'claimed')`;
const held = `key = $1 and claim_token = $2 and state = 'claimed'`;
const live = `${held} and lease_expires_at > clock_timestamp()`;
const over = `${held} and lease_expires_at <= clock_timestamp()`;
const interval = (parameter: string): string => `${parameter}::double precision * interval '1 millisecond'`;
const notify = `pg_notify('${workChannel}', '')`;

const requeueWhere = (condition: string): string => `
  with changed as (
    update work_item
       set state = 'queued', claim_token = null, lease_expires_at = null, attempt_count = $4,
           available_at = clock_timestamp() + ${interval('$3')}, updated_at = clock_timestamp()
     where ${condition} returning key)
  select case when $3 <= 0 then ${notify} end from changed`;

const finishWhere = (condition: string, state: string, code: string): string => `
  update work_item
     set state = ${state}, claim_token = null, lease_expires_at = null, reason_code = ${code},
         completed_at = clock_timestamp(), updated_at = clock_timestamp()
   where ${condition}`;

export const createWorkQueue = (pool: pg.Pool, { leaseDurationMs, maxAttempts }: WorkQueueSettings): WorkQueue => {
  const changed = async (text: string, values: readonly unknown[]): Promise<boolean> => ((await pool.query(text, [...values])).rowCount ?? 0) > 0;

  const claimOnce = async (): Promise<ClaimedWork | undefined> => {
    const { rows } = await pool.query<ClaimedWork>(
      `with claimed as (
         update work_item
            set state = 'claimed', claim_token = $1, attempt_count = attempt_count + 1,
                lease_expires_at = clock_timestamp() + ${interval('$2')}, updated_at = clock_timestamp()
          where key = (
            select key from work_item
             where state = 'queued' and available_at <= clock_timestamp() and attempt_count < $3 and ${freeLane}
             order by available_at, created_at, key limit 1 for update skip locked)
         returning *)
       select ${claimedColumns}, pg_notify('${claimChannel}', '') from claimed`,
      [randomUUID(), leaseDurationMs, maxAttempts],
    );
    return rows[0];
  };

  return {
    claim: async () => {
      for (let retries = 0; ; retries++) {
        try {
          return await claimOnce();
        } catch (error) {
          if (retries === raceRetries || !claimRaces.has((error as { code?: string }).code ?? '')) throw error;
        }
      }
    },
    renew: ({ workKey, claimToken }) =>
      changed(`update work_item set lease_expires_at = clock_timestamp() + ${interval('$3')} where ${live}`, [workKey, claimToken, leaseDurationMs]),
    verify: async ({ workKey, claimToken }) => {
      const { rows } = await pool.query<LeaseStanding>(
        `select extract(epoch from lease_expires_at - clock_timestamp())::double precision * 1000 as "remainingMs",
                extract(epoch from clock_timestamp() - created_at)::double precision * 1000 as "ageMs"
           from work_item where ${live}`,
        [workKey, claimToken],
      );
      return rows[0];
    },
    requeue: ({ workKey, claimToken }, { delayMs, attempts }) => changed(requeueWhere(live), [workKey, claimToken, delayMs, attempts]),
    finish: ({ workKey, claimToken }, state, code) => changed(finishWhere(live, '$3', '$4'), [workKey, claimToken, state, code]),
    removeAgent: ({ workKey, claimToken }, agentId) =>
      changed(`delete from work_item where agent_id = $3 and exists (select from work_item where ${live})`, [workKey, claimToken, agentId]),
    expired: async (limit) => {
      const { rows } = await pool.query<ClaimedWork>(
        `select ${claimedColumns} from work_item
          where state = 'claimed' and lease_expires_at <= clock_timestamp() order by lease_expires_at limit $1`,
        [limit],
      );
      return rows;
    },
    exhausted: async (limit) => {
      const { rows } = await pool.query<WorkItem & { attempt: number }>(
        `select ${columns}, attempt_count as attempt from work_item where state = 'queued' and attempt_count >= $1 order by key limit $2`,
        [maxAttempts, limit],
      );
      return rows;
    },
    requeueExpired: ({ workKey, claimToken }, { delayMs, attempts }) => changed(requeueWhere(over), [workKey, claimToken, delayMs, attempts]),
    finishExpired: ({ workKey, claimToken }, state, code) => changed(finishWhere(over, '$3', '$4'), [workKey, claimToken, state, code]),
    requeueExhausted: (key, { delayMs, attempts }) =>
      changed(requeueWhere(`key = $1 and state = 'queued' and attempt_count >= $2`), [key, maxAttempts, delayMs, attempts]),
    finishQueued: (key, state, code) =>
      changed(finishWhere(`key = $1 and state = 'queued' and attempt_count >= $4`, '$2', '$3'), [key, state, code, maxAttempts]),
    wakeLane: async (lane) => {
      await pool.query(
        `with woken as (
           update work_item set available_at = clock_timestamp()
            where lane = $1 and state = 'queued' and attempt_count = 0 and available_at > clock_timestamp() returning key)
         select ${notify} from woken limit 1`,
        [lane],
      );
    },
    offer: async ({ key, lane, kind, namespaceId, agentId, revisionId, operationId }, actor, streamRevision) => {
      await pool.query(
        `with offered as (
           insert into work_item (key, lane, kind, namespace_id, agent_id, revision_id, operation_id, actor, state,
                                  available_at, created_at, updated_at, stream_revision)
           values ($1, $2, $3, $4, $5, $6, $7, $8, 'queued', clock_timestamp(), clock_timestamp(), clock_timestamp(), $9)
           on conflict (key) do update
              set state = 'queued', attempt_count = 0, reason_code = null, completed_at = null, actor = excluded.actor,
                  available_at = excluded.available_at, created_at = excluded.created_at, updated_at = excluded.updated_at,
                  stream_revision = excluded.stream_revision
            where work_item.state in ('succeeded', 'failed_permanent')
           returning key)
         select ${notify} from offered`,
        [key, lane, kind, namespaceId, agentId, revisionId, operationId, actor, streamRevision],
      );
    },
    nextDueMs: async () => {
      const { rows } = await pool.query<{ dueMs: number | null }>(
        `select extract(epoch from min(available_at) - clock_timestamp())::double precision * 1000 as "dueMs"
           from work_item where state = 'queued' and attempt_count < $1 and ${freeLane}`,
        [maxAttempts],
      );
      return rows[0]?.dueMs ?? undefined;
    },
  };
};
