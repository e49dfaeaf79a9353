/** The work table as a queue, on real PostgreSQL. */
import { randomUUID } from 'node:crypto';
import { beforeEach, describe, expect, it } from 'vitest';
import { createWorkQueue, workChannel, type WorkItem, type WorkQueue } from '../../src/runtime/work-queue.ts';
import { openClient } from '../../src/postgres/pool.ts';
import { createDatabase, type TestDatabase } from '../support/database.ts';
import { until } from '../support/until.ts';

let database: TestDatabase | undefined;
let queue: WorkQueue;
const settings = { leaseDurationMs: 10_000, maxAttempts: 3 };

const pool = () => database!.pool;
const item = (key: string, lane = key): WorkItem => ({ key, lane, kind: 'stop', namespaceId: 'ns', agentId: lane, revisionId: null, operationId: null });
const offer = (key: string, lane?: string) => queue.offer(item(key, lane), '{}', 0);
const rowOf = async (key: string) => (await pool().query<Record<string, unknown>>('select * from work_item where key = $1', [key])).rows[0];
const expire = () => pool().query(`update work_item set lease_expires_at = clock_timestamp() where state = 'claimed'`);

beforeEach(async () => {
  database ??= await createDatabase();
  await pool().query('delete from work_item');
  queue = createWorkQueue(pool(), settings);
});

describe('claiming', () => {
  it('takes what is due, oldest first, with a fresh token, a lease and a counted attempt', async () => {
    await offer('b');
    await offer('a');
    const first = await queue.claim();
    expect(first).toMatchObject({ key: 'b', workKey: 'b', lane: 'b', attempt: 1 });
    expect(await queue.claim()).toMatchObject({ key: 'a' });
    expect(await queue.claim()).toBeUndefined();
    const { remainingMs, ageMs } = (await queue.verify(first!))!;
    expect(remainingMs).toBeGreaterThan(settings.leaseDurationMs / 2);
    expect(remainingMs).toBeLessThanOrEqual(settings.leaseDurationMs);
    expect(ageMs).toBeGreaterThan(0);
  });

  it('leaves a lane alone while one of its items is claimed, even after the lease has ended', async () => {
    await offer('a', 'lane');
    await offer('b', 'lane');
    const claimed = await queue.claim();
    await expire();
    expect(await queue.claim()).toBeUndefined();
    expect(await queue.nextDueMs()).toBeUndefined();
    expect(await queue.expired(10)).toMatchObject([{ key: 'a', claimToken: claimed!.claimToken, attempt: 1 }]);
    expect(await queue.requeueExpired(claimed!, { delayMs: 60_000, attempts: 1 })).toBe(true);
    expect(await queue.claim()).toMatchObject({ key: 'b' });
  });

  it('leaves alone what is not due yet, and what has no attempts left', async () => {
    await offer('a');
    const claimed = await queue.claim();
    await queue.requeue(claimed!, { delayMs: 60_000, attempts: 1 });
    expect(await queue.claim()).toBeUndefined();
    expect(await queue.nextDueMs()).toBeGreaterThan(50_000);
    await queue.wakeLane('a');
    expect(await queue.claim(), 'an item that spent an attempt keeps its backoff').toBeUndefined();
    await pool().query('update work_item set attempt_count = 3');
    expect(await queue.exhausted(10)).toMatchObject([{ key: 'a', attempt: 3 }]);
    expect(await queue.finishQueued('a', 'failed_permanent', 'MAX_ATTEMPTS_EXHAUSTED')).toBe(true);
    expect(await rowOf('a')).toMatchObject({ state: 'failed_permanent', reason_code: 'MAX_ATTEMPTS_EXHAUSTED' });
  });
});

describe('a claim', () => {
  it.each<[string, (claim: { workKey: string; claimToken: string }) => Promise<boolean>]>([
    ['renew', (claim) => queue.renew(claim)],
    ['requeue', (claim) => queue.requeue(claim, { delayMs: 0, attempts: 0 })],
    ['finish', (claim) => queue.finish(claim, 'succeeded', 'X')],
    ['removeAgent', (claim) => queue.removeAgent(claim, 'a')],
    ['verify', async (claim) => (await queue.verify(claim)) !== undefined],
  ])('can %s only with its own token and a lease that still runs', async (_, change) => {
    await offer('a');
    const claim = await queue.claim();
    expect(await change({ ...claim!, claimToken: randomUUID() })).toBe(false);
    await expire();
    expect(await change(claim!)).toBe(false);
    await pool().query(`update work_item set lease_expires_at = clock_timestamp() + interval '1 minute'`);
    expect(await change(claim!)).toBe(true);
  });

  it('is recovered only after its lease has ended, and once', async () => {
    await offer('a');
    const claim = await queue.claim();
    expect(await queue.requeueExpired(claim!, { delayMs: 0, attempts: 1 })).toBe(false);
    expect(await queue.finishExpired(claim!, 'failed_permanent', 'LEASE_EXPIRED')).toBe(false);
    await expire();
    expect(await queue.requeueExpired(claim!, { delayMs: 0, attempts: 1 })).toBe(true);
    expect(await queue.requeueExpired(claim!, { delayMs: 0, attempts: 1 })).toBe(false);
    expect(await queue.claim()).toMatchObject({ attempt: 2 });
  });
});

it('an offered item starts afresh only when it has ended', async () => {
  await offer('a');
  const claim = await queue.claim();
  await offer('a');
  expect(await rowOf('a')).toMatchObject({ state: 'claimed' });
  await queue.finish(claim!, 'succeeded', 'MAINTENANCE_DONE');
  await offer('a');
  expect(await queue.claim()).toMatchObject({ key: 'a', attempt: 1 });
});

it('says so when something becomes due now', async () => {
  const client = await openClient({ url: database!.url });
  let rings = 0;
  client.on('notification', () => rings++);
  await client.query(`listen ${workChannel}`);
  await offer('a');
  await until('a ring for the offer', () => rings, (seen) => seen === 1);
  const claim = await queue.claim();
  await queue.requeue(claim!, { delayMs: 60_000, attempts: 0 });
  await queue.wakeLane('a');
  await until('a ring for the wake, none for the delay', () => rings, (seen) => seen === 2);
  await client.end();
});

describe('scenario 22: two workers never hold two claims of one lane', () => {
  it('however many claim at once', async () => {
    const lanes = ['x', 'y', 'z'];
    for (const lane of lanes) for (let number = 0; number < 6; number++) await offer(`${lane}${number}`, lane);
    const held = new Map<string, number>();
    let most = 0;
    let done = 0;
    const work = async (own: WorkQueue) => {
      while (done < lanes.length * 6) {
        const claim = await own.claim();
        if (claim === undefined) continue;
        const now = (held.get(claim.lane) ?? 0) + 1;
        held.set(claim.lane, now);
        most = Math.max(most, now);
        await own.verify(claim);
        held.set(claim.lane, now - 1);
        if (await own.finish(claim, 'succeeded', 'X')) done += 1;
      }
    };
    await Promise.all(Array.from({ length: 6 }, () => work(createWorkQueue(pool(), settings))));
    expect(most).toBe(1);
    expect((await pool().query(`select from work_item where state = 'succeeded'`)).rowCount).toBe(18);
  });
});
