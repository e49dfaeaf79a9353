/** The rows of the authorization decision table, each over both edges, and how many of them are covered. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { eventsOf } from '../support/request-events.ts';
import { edges, send, type EdgeName } from '../support/use-cases.ts';
import { createFixture, expectDenied, judged, type Fixture } from './fixture.ts';
import { allRows, diagnosticsRows, dispatchRows, outageRows, rows, waiting, type Row, type Scene } from './rows.ts';

let fixture: Fixture;
beforeAll(async () => {
  fixture = await createFixture();
});
afterAll(() => fixture?.close());

const actorOf = async ({ by, within }: Row, names: Scene['names']) => (typeof by === 'string' ? fixture.administrator : fixture.actor(names, by, within));

/** The audit of what a row came to: a denial, one success about what it changed, or nothing at all. */
const expectAudit = async (row: Row, scene: Scene, answer: Awaited<ReturnType<typeof send>>): Promise<void> => {
  const { names, actor, edge } = scene;
  if (row.denied !== undefined) return expectDenied(fixture, answer, row.asks(names, scene).action[edge], judged(names, actor.id, row.denied));
  const records = await fixture.audit(answer);
  if (row.changes !== undefined) {
    const id = row.changes === 'new' ? (answer.data as { id: string }).id : names[row.changes];
    expect(records).toHaveLength(1);
    expect(records[0]).toMatchObject({ kind: 'mutation', outcome: 'success', resource: { id }, authorization: { principalId: actor.id } });
  } else if (row.then === undefined || row.status < 300) {
    expect(await eventsOf(fixture.application.database, answer.requestId)).toEqual([]);
  }
};

const run = async (row: Row, edge: EdgeName): Promise<void> => {
  await using undone = new AsyncDisposableStack();
  const known = row.fresh === true ? await fixture.fresh() : fixture.names;
  const before: Scene = { fixture, edge, names: known, actor: await actorOf(row, known), defer: (undo) => undone.defer(async () => void (await undo())) };
  const names = (await row.given?.(before)) ?? known;
  const scene = { ...before, names };

  const credentials = row.by === 'nobody' ? {} : { 'x-api-key': scene.actor.key, ...row.headers };
  const answer = await send(edge, fixture.application.origin, row.asks(names, scene), credentials);
  expect(answer.code).toBe(row.code ?? null);
  if (edge === 'REST' || row.code !== undefined) expect(answer.status).toBe(row.status);
  await expectAudit(row, scene, answer);
  await row.then?.({ data: answer.data as never, answer, records: await fixture.audit(answer), scene });
};

describe.each(edges)('over %s', (edge) => {
  it.each(rows.filter(({ only }) => only === undefined || only === edge))('$id', (row) => run(row, edge));
});

it('every row of the table is covered, or waits for something by name', () => {
  const elsewhere: readonly string[] = [...dispatchRows, ...diagnosticsRows, ...outageRows];
  const over = (edge: EdgeName) => new Set([...rows.filter(({ only }) => only === undefined || only === edge).map(({ id }) => id), ...elsewhere]);
  const waits = Object.values(waiting).flat();
  expect(allRows).toHaveLength(156);
  expect([...over('REST'), ...waits].toSorted()).toEqual(allRows);
  console.log(`authorization table: ${over('REST').size} of 156 rows over REST, ${over('GraphQL').size} over GraphQL, ${waits.length} wait for ${Object.keys(waiting).join('; ')}`);
});
