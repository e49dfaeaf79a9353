/** A store that does not answer is no denial and no success: 503, nothing changed, and nothing said that was not recorded. (iam-auth-audit 5.6) */
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { createDatabase, type TestDatabase } from '../support/database.ts';
import { followEvents } from '../support/request-events.ts';
import { startTcpProxy, type TcpProxy } from '../support/tcp-proxy.ts';
import { edges, send, useCases as use, type EdgeName } from '../support/use-cases.ts';
import { agentAt, configurationAt, createFixture, type Actor, type Fixture } from './fixture.ts';
import { outageRows, rows } from './rows.ts';
import { stage, type Staged } from './staging.ts';

let fixture: Fixture;
let database: TestDatabase;
let proxy: TcpProxy;
let stranger: Actor;

beforeAll(async () => {
  database = await createDatabase();
  proxy = await startTcpProxy(database.url);
  fixture = await createFixture({ database, env: { OCC_DATABASE_URL: proxy.url } });
  stranger = await fixture.actor(fixture.names, []);
  await database.pool.query(`
    create function refuse_append() returns trigger language plpgsql as $$ begin raise exception 'refused by a test'; end $$;
    create trigger refuse_audit before insert on event for each row when (new.stream like '%.audit-%') execute function refuse_append();
    alter table event disable trigger refuse_audit;
    create function refuse_full() returns trigger language plpgsql as $$ begin raise exception 'no room for a test' using errcode = 'disk_full'; end $$;
    create trigger refuse_records before insert on event for each row when (new.metadata like '%"audit":%') execute function refuse_full();
    alter table event disable trigger refuse_records`);
});
afterAll(async () => {
  await fixture?.close();
  await proxy?.close();
});

const unavailable = { status: 503, code: 'DEPENDENCY_UNAVAILABLE', message: 'A required dependency is unavailable', details: [], data: null };
/** How many there are, besides those that record a connection made again. */
const events = async (): Promise<number> => (await database.pool.query<{ count: number }>(`select count(*)::integer as count from event where stream not like '%.store'`)).rows[0]!.count;
const ask = (edge: EdgeName, useCase: ReturnType<typeof use.getInstallation>, actor: Actor) => send(edge, fixture.application.origin, useCase, actor.key);

const whileTriggered = (trigger: string) => async <T>(act: () => Promise<T>): Promise<T> => {
  await database.pool.query(`alter table event enable trigger ${trigger}`);
  try {
    return await act();
  } finally {
    await database.pool.query(`alter table event disable trigger ${trigger}`);
  }
};
/** While no denial can be stored. */
const withoutAudit = whileTriggered('refuse_audit');
/** While nothing can be stored that carries an audit record, whatever it does beside that. */
const withoutRecords = whileTriggered('refuse_records');

let before: number;
beforeEach(async () => {
  before = await events();
});

const checks: Readonly<Record<(typeof outageRows)[number], (edge: EdgeName) => Promise<void>>> = {
  'AZ-019': async (edge) => {
    proxy.behave('refuse');
    proxy.cut();
    const { requestId: _, ...answer } = await ask(edge, use.getAgent(agentAt(fixture.names, 'G1')), fixture.administrator);
    proxy.behave('pass');
    expect(answer).toEqual(unavailable);
    expect((await ask(edge, use.getAgent(agentAt(fixture.names, 'G1')), fixture.administrator)).code).toBeNull();
  },
  'AZ-020': async (edge) => {
    const { requestId: _, ...answer } = await withoutAudit(() => ask(edge, use.getAgent(agentAt(fixture.names, 'G1')), stranger));
    expect(answer).toEqual(unavailable);
    expect((await ask(edge, use.getAgent(agentAt(fixture.names, 'G1')), stranger)).code).toBe('FORBIDDEN');
    before += 1;
  },
};

describe.each(edges)('over %s', (edge) => {
  it.each(outageRows)('%s', async (row) => {
    await checks[row](edge);
    expect(await events()).toBe(before);
  });

  it('a command that is refused without a record changes nothing', async () => {
    const { names } = fixture;
    const place = agentAt(names, 'G1');
    const draft = { name: 'unrecorded', configurationId: names['C1'] };
    const commands = [use.createAgent(names['N1']!, draft), use.updateAgent(place, { configurationId: names['C1'] }), use.deployAgent(place), use.stopAgent(place), use.deleteAgent(place)];
    const answers = await withoutAudit(() => Promise.all(commands.map((command) => ask(edge, command, stranger))));
    expect(answers.map(({ code }) => code)).toEqual(commands.map(() => 'DEPENDENCY_UNAVAILABLE'));
    expect(await events()).toBe(before);
  });

  it('a failure that is audited is told only when it is recorded', async () => {
    const answer = await withoutAudit(() => ask(edge, use.deployAgent(agentAt(fixture.names, 'GP')), fixture.administrator));
    expect(answer).toMatchObject({ status: 503, code: 'DEPENDENCY_UNAVAILABLE' });
    expect(await events()).toBe(before);
  });

  it('what is permitted needs no audit stream', async () => {
    expect((await withoutAudit(() => ask(edge, use.getAgent(agentAt(fixture.names, 'G1')), fixture.administrator))).code).toBeNull();
    expect((await ask(edge, use.stopAgent(agentAt(await fixture.fresh(), 'G1')), fixture.administrator)).code).toBeNull();
  });
});

/** What readers are told of everything there is. */
const seen = async (): Promise<string> => {
  const { names, administrator } = fixture;
  const place = agentAt(names, 'G1');
  const asked = [use.listNamespaces(), use.listAgents(names['N1']!), use.listAgents(names['NP']!), use.getConfiguration(configurationAt(names, 'C1')), use.listAgentRevisions(place)];
  return JSON.stringify(await Promise.all(asked.map(async (useCase) => (await ask('REST', useCase, administrator)).data)));
};

/** What is written before a change and binds nobody without it: that a name is wanted, the principal and the snapshot that are to be named. */
const intents: ReadonlySet<string> = new Set(['ResourceAdmitted', 'ServicePrincipalCreated', 'AgentRevisionSnapshotted']);

it('no row of the table changes anything while no record can be stored, and every row does once it can', async () => {
  const changing = edges.flatMap((edge) => rows.filter(({ changes, only }) => changes !== undefined && (only === undefined || only === edge)).map((row) => ({ row, edge })));
  expect(changing.length).toBeGreaterThan(30);
  const staged: Staged[] = [];
  for (const { row, edge } of changing) staged.push(await stage(fixture, row, edge));
  const newEvents = followEvents(database);
  await newEvents();
  const told = await seen();

  const answers = await withoutRecords(() => Promise.all(staged.map((one) => one.ask())));
  expect(answers.map(({ requestId: _, ...answer }, index) => ({ ...changing[index], answer }))).toEqual(changing.map((one) => ({ ...one, answer: unavailable })));
  expect((await newEvents()).map(({ type }) => type).filter((type) => !intents.has(type))).toEqual([]);
  expect(await seen()).toBe(told);

  for (const [index, one] of staged.entries()) {
    const { code } = await one.ask();
    expect({ ...changing[index], code }).toEqual({ ...changing[index], code: null });
    await one[Symbol.asyncDispose]();
  }
}, 120_000);
