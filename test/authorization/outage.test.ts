/** A store that does not answer is no denial and no success: 503, nothing changed, and nothing said that was not recorded. (iam-auth-audit 5.6) */
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { createDatabase, type TestDatabase } from '../support/database.ts';
import { startTcpProxy, type TcpProxy } from '../support/tcp-proxy.ts';
import { edges, send, useCases as use, type EdgeName } from '../support/use-cases.ts';
import { agentAt, createFixture, type Actor, type Fixture } from './fixture.ts';
import { outageRows } from './rows.ts';

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
    alter table event disable trigger refuse_audit`);
});
afterAll(async () => {
  await fixture?.close();
  await proxy?.close();
});

const unavailable = { status: 503, code: 'DEPENDENCY_UNAVAILABLE', message: 'A required dependency is unavailable', details: [], data: null };
/** How many there are, besides those that record a connection made again. */
const events = async (): Promise<number> => (await database.pool.query<{ count: number }>(`select count(*)::integer as count from event where stream not like '%.store'`)).rows[0]!.count;
const ask = (edge: EdgeName, useCase: ReturnType<typeof use.getInstallation>, actor: Actor) => send(edge, fixture.application.origin, useCase, actor.key);

/** While no denial can be stored. */
const withoutAudit = async <T>(act: () => Promise<T>): Promise<T> => {
  await database.pool.query('alter table event enable trigger refuse_audit');
  try {
    return await act();
  } finally {
    await database.pool.query('alter table event disable trigger refuse_audit');
  }
};

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
