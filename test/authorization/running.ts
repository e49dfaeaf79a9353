/** Runs a row of a table of requests: arranges what happened before, asks over one edge, and judges the answer and what is left behind. */
import { expect } from 'vitest';
import { followEvents, type RecordedEvent } from '../support/request-events.ts';
import type { Answer, EdgeName } from '../support/use-cases.ts';
import { expectDenied, judged, type Fixture } from './fixture.ts';
import type { Row, Scene } from './rows.ts';
import { stage } from './staging.ts';

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
const expectLedger = async (fixture: Fixture, row: Row, scene: Scene, answer: Answer, events: readonly RecordedEvent[]): Promise<void> => {
  expect(events.filter(({ metadata: { requestId } }) => requestId !== answer.requestId)).toEqual([]);
  if (row.denied !== undefined) return expectDenied(fixture, answer, row.asks(scene.names, scene).action[scene.edge], judged(scene.names, row.deniedActor ?? scene.actor.id, row.denied));
  if (row.changes !== undefined) return expectChange(row, scene, answer, events);
  expect(events.map(({ type }) => type)).toEqual(row.records === undefined ? [] : [row.records]);
};

/** Rows no history brings back; a refused request leaves them as they are. */
const privateRows = async (fixture: Fixture): Promise<unknown> =>
  (await fixture.application.database.pool.query(`select (select md5(string_agg(account::text, '' order by user_id)) from account) as accounts, (select md5(string_agg(service_key::text, '' order by key_id)) from service_key) as keys`)).rows;

export type Runner = (row: Row, edge: EdgeName) => Promise<void>;

export const createRunner = (fixture: Fixture): Runner => {
  const newEvents = followEvents(fixture.application.database);
  return async (row, edge) => {
    await using staged = await stage(fixture, row, edge);
    const { scene } = staged;
    await newEvents();
    const before = await privateRows(fixture);
    const answer = await staged.ask();
    expect(answer.code).toBe(row.code ?? null);
    if (edge === 'REST' || row.code !== undefined) expect(answer.status).toBe(row.status);
    await expectLedger(fixture, row, scene, answer, await newEvents());
    if (row.changes === undefined) expect(await privateRows(fixture)).toEqual(before);
    await row.then?.({ data: answer.data as never, answer, records: await fixture.audit(answer), scene });
  };
};
