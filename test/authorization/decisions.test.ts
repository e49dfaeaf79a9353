/** The rows of the authorization decision table, each over both edges, and how many of them are covered. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { followEvents, type RecordedEvent } from '../support/request-events.ts';
import { edges, type Answer, type EdgeName } from '../support/use-cases.ts';
import { createFixture, expectDenied, judged, type Fixture } from './fixture.ts';
import { allRows, diagnosticsRows, dispatchRows, failedAppendRows, nativeAdminRows, outageRows, rows, waiting, type Row, type Scene } from './rows.ts';
import { stage } from './staging.ts';

let fixture: Fixture;
let newEvents: ReturnType<typeof followEvents>;
beforeAll(async () => {
  fixture = await createFixture();
  newEvents = followEvents(fixture.application.database);
});
afterAll(() => fixture?.close());

/** By the prefix of their ids, the kinds of what rows change. */
const kinds: Readonly<Record<string, string>> = { ns: 'namespace', cfg: 'configuration', agt: 'agent', rev: 'agent_revision' };

/** The texts a caller sent, ids aside. */
const textsIn = (value: unknown): readonly string[] => {
  if (typeof value === 'string') return /^[a-z]{2,4}_/.test(value) ? [] : [value];
  return typeof value === 'object' && value !== null ? Object.values(value).flatMap(textsIn) : [];
};

/** One success about what the row changed, by whom and judged by what; nothing of what was sent is in it. (iam-auth-audit 8.7, assertion 1) */
const expectChange = (row: Row, { names, actor, edge, ...scene }: Scene, { data }: Answer, events: readonly RecordedEvent[]): void => {
  const id = row.changes === 'new' ? (data as { id: string }).id : names[row.changes!]!;
  const records = events.filter(({ metadata: { audit } }) => audit !== undefined);
  expect(records).toHaveLength(1);
  const [{ metadata }] = records as [RecordedEvent];
  const { action, rest } = row.asks(names, { names, actor, edge, ...scene });
  expect(metadata.actor).toMatchObject({ kind: 'service_principal', principalId: actor.id });
  const resource = { kind: kinds[id.split('_')[0]!], id, namespaceId: expect.stringMatching(/^ns_/) as unknown };
  expect(metadata.audit).toMatchObject({ kind: 'mutation', action: row.recordedAs ?? action[edge], outcome: 'success', resource, authorization: { principalId: actor.id } });
  const said = JSON.stringify(metadata.audit);
  expect(textsIn(rest.body).filter((text) => said.includes(text))).toEqual([]);
};

/** What everybody wrote while the row was asked is what it says: a change, one denial or audited failure, or nothing. (iam-auth-audit 8.7, assertions 1 to 3) */
const expectLedger = async (row: Row, scene: Scene, answer: Answer, events: readonly RecordedEvent[]): Promise<void> => {
  expect(events.filter(({ metadata: { requestId } }) => requestId !== answer.requestId)).toEqual([]);
  if (row.denied !== undefined) return expectDenied(fixture, answer, row.asks(scene.names, scene).action[scene.edge], judged(scene.names, row.deniedActor ?? scene.actor.id, row.denied));
  if (row.changes !== undefined) return expectChange(row, scene, answer, events);
  expect(events.map(({ type }) => type)).toEqual(row.records === undefined ? [] : [row.records]);
};

/** Rows no history brings back; a refused request leaves them as they are. */
const privateRows = async (): Promise<unknown> =>
  (await fixture.application.database.pool.query(`select (select md5(string_agg(account::text, '' order by user_id)) from account) as accounts, (select md5(string_agg(service_key::text, '' order by key_id)) from service_key) as keys`)).rows;

const run = async (row: Row, edge: EdgeName): Promise<void> => {
  await using staged = await stage(fixture, row, edge);
  const { scene } = staged;
  await newEvents();
  const before = await privateRows();
  const answer = await staged.ask();
  expect(answer.code).toBe(row.code ?? null);
  if (edge === 'REST' || row.code !== undefined) expect(answer.status).toBe(row.status);
  await expectLedger(row, scene, answer, await newEvents());
  if (row.changes === undefined) expect(await privateRows()).toEqual(before);
  await row.then?.({ data: answer.data as never, answer, records: await fixture.audit(answer), scene });
};

describe.each(edges)('over %s', (edge) => {
  it.each(rows.filter(({ only }) => only === undefined || only === edge))('$id', (row) => run(row, edge));
});

it('every row of the table is covered, or waits for something by name', () => {
  const elsewhere: readonly string[] = [...dispatchRows, ...diagnosticsRows, ...nativeAdminRows, ...outageRows, ...failedAppendRows];
  const over = (edge: EdgeName) => new Set([...rows.filter(({ only }) => only === undefined || only === edge).map(({ id }) => id), ...elsewhere]);
  const waits = Object.values(waiting).flat();
  expect(allRows).toHaveLength(156);
  expect([...over('REST'), ...waits].toSorted()).toEqual(allRows);
  console.log(`authorization table: ${over('REST').size} of 156 rows over REST, ${over('GraphQL').size} over GraphQL, ${waits.length} wait for ${Object.keys(waiting).join('; ')}`);
});
