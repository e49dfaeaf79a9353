/** Scenario 25: whoever asks again and again for what he may not have fills no disk, and hinders nobody. */
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { createAuditLog, type AuditLog } from '../../src/audit/audit-log.ts';
import { createDenialLimit, type DenialLimit } from '../../src/iam/denial-limit.ts';
import { Refusal } from '../../src/kernel/errors.ts';
import type { Metadata } from '../../src/kernel/event.ts';
import { newId } from '../../src/kernel/ids.ts';
import { createStreams } from '../../src/runtime/streams.ts';
import { startTestApplication, type TestApplication } from '../support/app.ts';
import { createInMemoryEventStore } from '../support/in-memory-event-store.ts';
import { openReplica } from './replica.ts';
import { openOperator, permissionOf, type TestOperator } from '../support/principals.ts';

const start = Date.parse('2026-01-01T00:00:00.000Z');
const stranger = { principalId: 'spn_stranger', kind: 'service_principal', serviceKeyId: 'key_1' } as const;
const other = { principalId: 'spn_other', kind: 'service_principal' } as const;

describe('scenario 25: the denials of a principal', () => {
  const store = createInMemoryEventStore();
  let now: number;
  let prefix: string;
  let isStoreAway: boolean;
  let limit: DenialLimit;

  beforeEach(() => {
    now = start;
    prefix = `${newId('ins')}.`;
    isStoreAway = false;
    const clock = { now: () => now };
    const log = createAuditLog(createStreams({ store, clock, prefix }));
    const audit: AuditLog = { record: (...record) => (isStoreAway ? Promise.reject(new Error('away')) : log.record(...record)) };
    limit = createDenialLimit({ audit, clock, installationId: 'ins_1' });
  });

  /** How many of so many denials are recorded; the others are refused. */
  const recorded = (count: number, actor: typeof stranger | typeof other = stranger): number => {
    let taken = 0;
    for (let one = 0; one < count; one++) {
      try {
        limit.take(actor);
        taken++;
      } catch (refusal) {
        expect(refusal).toBeInstanceOf(Refusal);
        expect(refusal).toMatchObject({ code: 'RATE_LIMITED', retryAfterSeconds: 1 });
      }
    }
    return taken;
  };
  const summaries = async () => (await store.readAll(null, { streamPrefix: prefix }, 100)).events.map(({ type, data, metadata }) => ({ type, data: JSON.parse(data) as object, metadata: JSON.parse(metadata) as Metadata }));

  it('are recorded up to 100 at once, then 10 a second, each principal by itself', () => {
    expect(recorded(150)).toBe(100);
    expect(recorded(1, other)).toBe(1);
    now += 1_000;
    expect(recorded(50)).toBe(10);
    now += 550;
    expect(recorded(50)).toBe(5);
    now += 3_600_000;
    expect(recorded(150)).toBe(100);
  });

  it('leave one summary of what was suppressed since the last, and none where nothing was', async () => {
    recorded(100, other);
    recorded(130);
    now += 40_000;
    recorded(107);
    await limit.summarise();
    await limit.summarise();
    const data = { principalId: 'spn_stranger', from: '2026-01-01T00:00:00.000Z', to: '2026-01-01T00:00:40.000Z', count: 37 };
    const seen = await summaries();
    expect(seen.map(({ type, data }) => ({ type, data }))).toEqual([{ type: 'DenialsSuppressed', data }]);
    expect(seen[0]!.metadata).toMatchObject({
      actor: { principalId: 'spn_stranger', kind: 'service_principal' },
      audit: { kind: 'authorization_denial', outcome: 'denied', reasonCode: 'RATE_LIMITED', details: { count: 37 } },
    });
  });

  it('lose no summary when the store is away, nor at the end', async () => {
    recorded(103);
    isStoreAway = true;
    await limit.summarise();
    now += 50;
    recorded(2);
    isStoreAway = false;
    await limit.close();
    expect((await summaries()).map(({ data }) => data)).toEqual([{ principalId: 'spn_stranger', from: '2026-01-01T00:00:00.000Z', to: '2026-01-01T00:00:00.050Z', count: 5 }]);
  });

  it('lose no summary that is under way at the end', async () => {
    recorded(103);
    isStoreAway = true;
    const underWay = limit.summarise();
    isStoreAway = false;
    await limit.close();
    await underWay;
    expect((await summaries()).map(({ data }) => data)).toMatchObject([{ principalId: 'spn_stranger', count: 3 }]);
  });
});

describe('scenario 25: over HTTP', () => {
  let application: TestApplication;
  let operator: TestOperator;
  beforeAll(async () => {
    application = await startTestApplication();
    operator = await openOperator(application);
  });
  afterAll(async () => {
    await operator?.close();
    await application?.close();
  });

  it('whoever is nobody in a Namespace is counted likewise, whatever body he sends', async () => {
    const { client } = await operator.principal({ namespaceId: newId('ns') });
    const body = { kind: 'agent', values: { constructor: 1 } };
    const denied = async () => (await client.rest('POST', `/namespaces/${newId('ns')}/configurations`, body)).status;
    const statuses = new Set<number>();
    while (!statuses.has(429)) for (const status of await Promise.all(Array.from({ length: 40 }, denied))) statuses.add(status);
    expect(statuses).toEqual(new Set([403, 429]));
  });

  it('wrong sign-ins of ever other emails are denials of nobody: a few are recorded, the others counted', async () => {
    const replica = await openReplica(application);
    const server = await replica.serve();
    const guess = async () => {
      const body = JSON.stringify({ email: `${newId('usr')}@example.test`, password: 'a wrong password' });
      const { status, headers } = await fetch(`${server.origin}/api/auth/sign-in/email`, { method: 'POST', headers: { 'content-type': 'application/json' }, body });
      return status === 429 ? `429 after ${headers.get('retry-after')} s` : String(status);
    };
    const answers: string[] = [];
    while (answers.filter((answer) => answer !== '401').length < 20) answers.push(...(await Promise.all(Array.from({ length: 40 }, guess))));
    expect(new Set(answers)).toEqual(new Set(['401', '429 after 1 s']));
    await replica.denialLimit.summarise();
    const { rows } = await application.database.pool.query<{ type: string; data: string }>(`select type, data from event where stream like '%.audit-%' and type in ('SignInDenied', 'DenialsSuppressed')`);
    expect(rows.filter(({ type }) => type === 'SignInDenied'), 'recorded one by one').toHaveLength(answers.filter((answer) => answer === '401').length);
    const suppressed = rows.filter(({ type }) => type === 'DenialsSuppressed').map(({ data }) => JSON.parse(data) as { principalId: string; count: number }).filter(({ principalId }) => principalId === 'unresolved');
    expect(suppressed).toEqual([expect.objectContaining({ principalId: 'unresolved', count: answers.filter((answer) => answer !== '401').length })]);
    await server.close();
    await replica.close();
  });

  it('a denial too many is 429 without an event, what is permitted passes, and the end of the process leaves the summary', async () => {
    const principal = await operator.principal();
    await principal.grant([permissionOf('installation:read')]);
    const denied = async () => {
      const { status, error, headers } = await principal.client.rest('GET', `/namespaces/${newId('ns')}`);
      return { status, code: error.code, wait: headers.get('retry-after') };
    };
    const answers: Awaited<ReturnType<typeof denied>>[] = [];
    while (answers.filter(({ status }) => status === 429).length < 20) answers.push(...(await Promise.all(Array.from({ length: 40 }, denied))));
    const refused = answers.filter(({ status }) => status === 429);
    expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([403, 429]));
    expect(new Set(refused.map(({ code, wait }) => `${code} ${wait}`))).toEqual(new Set(['RATE_LIMITED 1']));
    expect((await principal.client.rest('GET', '/installation')).status).toBe(200);
    expect((await application.client.rest('GET', `/namespaces/${newId('ns')}`)).status).toBe(404);

    await application.close();
    const { rows } = await application.database.pool.query<{ type: string; data: string }>(`select type, data from event where stream like '%.audit-%' and metadata like $1`, [`%${principal.id}%`]);
    const count = (type: string) => rows.filter((row) => row.type === type).length;
    expect(count('AuthorizationDenied'), 'denials recorded one by one').toBe(answers.length - refused.length);
    expect(rows.filter(({ type }) => type === 'DenialsSuppressed').map(({ data }) => JSON.parse(data) as unknown)).toEqual([expect.objectContaining({ principalId: principal.id, count: refused.length })]);
  });
});
