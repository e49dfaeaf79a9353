/** The yardstick of the edges: bare node:http handlers over prepared statements, without authorization, validation or a history. */
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { openPool } from '../../src/postgres/pool.ts';

const pool = openPool({ url: process.env['BARE_DATABASE_URL']!, max: 10 });

const answer = (response: ServerResponse, value: unknown): void => {
  const text = JSON.stringify(value);
  response.writeHead(200, { 'content-type': 'application/json; charset=utf-8', 'cache-control': 'no-store', 'content-length': Buffer.byteLength(text) });
  response.end(text);
};

const all = async (name: string, text: string, values: readonly unknown[]): Promise<Record<string, unknown>[]> =>
  (await pool.query<Record<string, unknown>>({ name, text, values: [...values] })).rows;

const agent = async (agentId: string): Promise<unknown> => {
  const [row] = await all('agent', 'select * from agent_v1 where agent_id = $1', [agentId]);
  return { data: row, meta: { requestId: 'req' } };
};

/** The statements of the page, and the JSON of its answer, by hand. */
const page = async (namespaceId: string): Promise<unknown> => {
  const agents = await all('page', 'select * from agent_v1 where namespace_id = $1 order by created_position, agent_id limit 51', [namespaceId]);
  const ids = agents.map((row) => row['agent_id']);
  const [revisions, deployments] = await Promise.all([
    all('revisions', 'select * from agent_revision_v1 where agent_id = any($1) and admitted_at is not null order by agent_id, number', [ids]),
    all(
      'deployments',
      `select distinct on (d.agent_id) d.*, w.state, w.available_at, w.lease_expires_at > clock_timestamp() as live
         from deployment_v1 as d left join work_item as w on w.key = d.work_key where d.agent_id = any($1) order by d.agent_id, d.number desc`,
      [ids],
    ),
  ]);
  return {
    data: {
      namespace: {
        agents: {
          edges: agents.map((row) => ({
            node: {
              id: row['agent_id'],
              name: row['name'],
              status: row['status'],
              desiredRuntimeState: row['desired'],
              revisions: { edges: revisions.filter((one) => one['agent_id'] === row['agent_id']).map((one) => ({ node: { revision: one['number'], createdAt: one['admitted_at'] } })) },
              latestDeployment: deployments.filter((one) => one['agent_id'] === row['agent_id']).map((one) => ({ status: one['state'], progress: null }))[0] ?? null,
            },
          })),
        },
      },
    },
  };
};

const server = createServer((request, response) => {
  const [, kind, id = ''] = (request.url ?? '').split('/');
  (kind === 'page' ? page(id) : agent(id)).then((value) => answer(response, value), (error: unknown) => answer(response, String(error)));
});
server.listen(0, '127.0.0.1', () => process.stdout.write(`bare ready on http://127.0.0.1:${(server.address() as AddressInfo).port}\n`));
process.on('SIGTERM', () => process.exit(0));
