/** The edges under load, each beside bare node:http handlers on the same database, and creations beside the commits they cost. */
import { randomUUID } from 'node:crypto';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { openClient } from '../../src/postgres/pool.ts';
import { openConnection, type Connection } from './http-load.ts';
import { interleaved, quick, rate, storeNames, withStores, type Row, type StoreName } from './measure.ts';
import { startProgram } from './program.ts';

const rounds = quick ? 1 : 5;
const roundMs = quick ? 100 : 1_500;
const callers = 32;
const namespaceCount = 8;
const pageSize = quick ? 3 : 50;
const revisionsPerAgent = 2;
/** Register entry, service principal, the Agent itself. */
const commitsPerCreation = 3;

const file = (name: string): string => join(import.meta.dirname, name);
const dataOf = (text: string) => (JSON.parse(text) as { data: { id: string } }).data;

const pageQuery = `query Page($id: ID!) { namespace(id: $id) { agents(first: ${pageSize}) { edges { node {
  id name status desiredRuntimeState
  revisions(first: 10) { edges { node { revision createdAt } } }
  latestDeployment { status progress { nextAttemptAt lastAttempt { code at } } }
} } } } }`;

const row = (name: string, unit: string, [value = NaN, yardstickValue = NaN]: readonly number[], yardstick: string, aim: number): Row => ({
  name,
  unit,
  value,
  yardstick,
  yardstickValue,
  ratio: value / yardstickValue,
  aim,
});

export const measure = (storeName: StoreName): Promise<Row[]> =>
  withStores(storeName, async ({ url, env }) => {
    const dataDir = await mkdtemp(join(tmpdir(), 'exuvia-bench-'));
    const server = await startProgram(file('../../src/cli.ts'), ['serve'], { ...env, EXUVIA_DATA_DIR: dataDir });
    const bare = await startProgram(file('bare-server.ts'), [], { BARE_DATABASE_URL: url });
    const { data } = JSON.parse(await readFile(join(dataDir, 'service-key.json'), 'utf8')) as { data: { key: string } };
    const open = (origin: string) => Promise.all(Array.from({ length: callers }, () => openConnection(origin, origin === server.origin ? { 'x-api-key': data.key } : {})));
    const [ours, theirs] = await Promise.all([open(server.origin), open(bare.origin)]);
    const [first] = ours as [Connection, ...Connection[]];
    const post = async (path: string, body: object | undefined, status: number) =>
      dataOf(await first.send({ method: 'POST', path, status, ...(body !== undefined && { body: JSON.stringify(body) }) }));
    const newAgent = (configurationId: string) => ({ name: randomUUID(), configurationId, harnessAuth: { method: 'runtime' } });
    /** No plugin driver is there, so its deployments end without a child. */
    const childless = { plugins: { 'calendar@bench': { enabled: true } } };

    const places: { path: string; configurationId: string }[] = [];
    for (let number = 0; number < namespaceCount; number += 1) {
      const namespace = await post('/namespaces', { name: randomUUID() }, 201);
      const configuration = await post(`/namespaces/${namespace.id}/configurations`, { kind: 'agent', values: {} }, 201);
      places.push({ path: `/namespaces/${namespace.id}/agents`, configurationId: configuration.id });
    }
    const creations = ours.map((connection, index) => () => {
      const { path, configurationId } = places[index % namespaceCount]!;
      return connection.send({ method: 'POST', path, status: 201, body: JSON.stringify(newAgent(configurationId)) });
    });
    const clients = await Promise.all(Array.from({ length: callers }, () => openClient({ url })));
    await clients[0]!.query('create table plain_commit (id uuid primary key, data text, metadata text)');
    const text = 'x'.repeat(400);
    const commits = clients.map((client) => () =>
      client.query({ name: 'commit', text: 'insert into plain_commit values ($1, $2, $3)', values: [randomUUID(), text, text] }),
    );
    const created = await interleaved(rounds, [() => rate(creations, roundMs), async () => (await rate(commits, roundMs)) / commitsPerCreation]);

    const paged = await post('/namespaces', { name: randomUUID() }, 201);
    const { id: configurationId } = await post(`/namespaces/${paged.id}/configurations`, { kind: 'agent', values: {} }, 201);
    const waitReady = async (): Promise<void> => {
      while (!(await first.send({ method: 'GET', path: `/namespaces/${paged.id}`, status: 200 })).includes('"ready"'));
    };
    await waitReady();
    const agents: string[] = [];
    for (let number = 0; number < pageSize; number += 1) {
      const agent = await post(`/namespaces/${paged.id}/agents`, { ...newAgent(configurationId), ...childless }, 201);
      agents.push(agent.id);
      for (let revision = 0; revision < revisionsPerAgent; revision += 1) await post(`/namespaces/${paged.id}/agents/${agent.id}/deploy`, undefined, 202);
    }
    const stillWorking = async () =>
      (await clients[0]!.query<{ open: number }>(`select count(*)::integer as open from work_item where state in ('queued', 'claimed')`)).rows[0]!.open > 0;
    while (await stillWorking());

    const agentOf = (index: number): string => agents[index % pageSize]!;
    const reads = await interleaved(rounds, [
      () => rate(ours.map((connection, index) => () => connection.send({ method: 'GET', path: `/namespaces/${paged.id}/agents/${agentOf(index)}`, status: 200 })), roundMs),
      () => rate(theirs.map((connection, index) => () => connection.send({ method: 'GET', path: `/agent/${agentOf(index)}`, status: 200 })), roundMs),
    ]);
    const body = JSON.stringify({ query: pageQuery, variables: { id: paged.id } });
    const pages = await interleaved(rounds, [
      () => rate(ours.map((connection) => () => connection.send({ method: 'POST', path: '/graphql', body, status: 200 })), roundMs),
      () => rate(theirs.map((connection) => () => connection.send({ method: 'GET', path: `/page/${paged.id}`, status: 200 })), roundMs),
    ]);

    for (const connection of [...ours, ...theirs]) connection.close();
    await Promise.all([server.stop(), bare.stop(), ...clients.map((client) => client.end())]);
    await rm(dataDir, { recursive: true, force: true });
    return [
      row(`createAgent over REST, ${callers} callers, ${namespaceCount} Namespaces`, 'Agents/s', created, 'the same commits, plain', 0.35),
      row(`GET Agent over REST, ${callers} callers`, 'requests/s', reads, 'bare node:http, one prepared read', 0.6),
      row(`GraphQL page of ${pageSize} Agents, ${callers} callers`, 'pages/s', pages, 'the same SQL and JSON by hand', 0.7),
    ];
  });

if (import.meta.main) for (const store of storeNames) console.table((await measure(store)).map((row) => ({ store, ...row })));
