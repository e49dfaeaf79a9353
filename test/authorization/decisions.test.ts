/** The rows of the authorization decision table, each over both edges, and how many of them are covered. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { edges, type EdgeName } from '../support/use-cases.ts';
import { createFixture, type Fixture } from './fixture.ts';
import { allRows, diagnosticsRows, dispatchRows, failedAppendRows, nativeAdminRows, outageRows, rows, waiting } from './rows.ts';
import { createRunner, type Runner } from './running.ts';

let fixture: Fixture;
let run: Runner;
beforeAll(async () => {
  fixture = await createFixture();
  run = createRunner(fixture);
});
afterAll(() => fixture?.close());

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
