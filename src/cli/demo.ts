/** `exuvia demo`: the life of an Agent on a running server, told from the server's own answers. */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { readConfig } from '../config.ts';
import { Fault } from '../kernel/errors.ts';

interface Answer<T> {
  readonly status: number;
  readonly data: T;
}

interface Named {
  readonly id: string;
  readonly name: string;
  readonly status: string;
}

interface AgentAnswer extends Named {
  readonly desiredRuntimeState: string;
  readonly activeRevisionId?: string;
}

interface DeploymentAnswer {
  readonly status: string;
  readonly error: { readonly code: string; readonly message: string } | null;
  readonly progress: { readonly lastAttempt: { readonly code: string } | null } | null;
}

/** How the answers about one deployment are told: between two attempts the server says `queued` again, but to who watches it has begun. */
export const deploymentTeller = (): ((seen: Pick<DeploymentAnswer, 'status' | 'progress'>) => string) => {
  let begun = false;
  return ({ status, progress }) => {
    const attempt = progress?.lastAttempt ?? null;
    begun ||= status === 'running' || attempt !== null;
    return `Deployment is ${begun && status === 'queued' ? 'running' : status}${attempt === null ? '' : ` (${attempt.code})`}`;
  };
};

const deadlineMs = 60_000;
const lookEveryMs = 100;

const say = (line: string): void => void process.stdout.write(`${line}\n`);

const serviceKey = async (dataDir: string): Promise<string> => {
  const file = join(dataDir, 'service-key.json');
  const text = await readFile(file, 'utf8').catch(() => {
    throw new Fault(`No service key at ${file}: start the server first, with the same EXUVIA_DATA_DIR`);
  });
  return (JSON.parse(text) as { data: { key: string } }).data.key;
};

/** Creates, deploys, stops and deletes an Agent, and prints the history it leaves; without an origin, on the server that these settings start. */
export const demo = async (named: string | undefined): Promise<void> => {
  const { dataDir, port } = readConfig(process.env);
  const origin = named ?? `http://127.0.0.1:${port}`;
  const key = await serviceKey(dataDir);

  const send = async (method: string, path: string, body?: unknown): Promise<Response> => {
    const headers = { 'x-api-key': key, ...(body !== undefined && { 'content-type': 'application/json' }) };
    return fetch(`${origin}${path}`, { method, headers, ...(body !== undefined && { body: JSON.stringify(body) }) }).catch(() => {
      throw new Fault(`No server answers at ${origin}: start it with npm start`);
    });
  };
  const rest = async <T>(method: string, path: string, body?: unknown): Promise<Answer<T>> => {
    const response = await send(method, path, body);
    const answer = response.status === 204 ? {} : ((await response.json()) as { data?: T; error?: { code: string; message: string } });
    if ('error' in answer && answer.error !== undefined && response.status !== 404)
      throw new Fault(`${method} ${path} answered ${response.status} ${answer.error.code}: ${answer.error.message}`);
    return { status: response.status, data: ('data' in answer ? answer.data : undefined) as T };
  };
  const graphql = async <T>(query: string, variables: object): Promise<T> => {
    const response = await send('POST', '/graphql', { query, variables });
    const { data, errors } = (await response.json()) as { data?: T; errors?: { message: string }[] };
    if (data === undefined || errors !== undefined) throw new Fault(`GraphQL answered: ${errors?.[0]?.message ?? response.status}`);
    return data;
  };
  /** Looks again until the answer satisfies; tells each time the line changes. */
  const follow = async <T>(look: () => Promise<T>, line: (seen: T) => string, done: (seen: T) => boolean): Promise<T> => {
    const until = performance.now() + deadlineMs;
    for (let told = ''; ; ) {
      const seen = await look();
      if (line(seen) !== told) say((told = line(seen)));
      if (done(seen)) return seen;
      if (performance.now() > until) throw new Fault(`The server did not get there within ${deadlineMs / 1000} s`);
      await delay(lookEveryMs);
    }
  };

  const { data: all } = await rest<readonly Named[]>('GET', '/namespaces');
  const found = all.find(({ name }) => name === 'default');
  if (found === undefined) throw new Fault('The server has no Namespace named default');
  const namespace = await follow(
    async () => (await rest<Named>('GET', `/namespaces/${found.id}`)).data,
    ({ name, status }) => `Namespace ${name} is ${status}`,
    ({ status }) => status === 'ready',
  );
  const at = `/namespaces/${namespace.id}`;

  const { data: configuration } = await rest<{ id: string; generation: number }>('POST', `${at}/configurations`, { kind: 'agent', values: {} });
  say(`Configuration ${configuration.id} saved, generation ${configuration.generation}`);
  const { data: agent } = await rest<AgentAnswer>('POST', `${at}/agents`, {
    name: `demo-${new Date().toISOString().replaceAll(/[-:.TZ]/g, '')}`,
    configurationId: configuration.id,
    harnessAuth: { method: 'runtime' },
  });
  say(`Agent ${agent.name} created: ${agent.status}, desired ${agent.desiredRuntimeState}`);
  const agentPath = `${at}/agents/${agent.id}`;

  const { data: revision } = await rest<{ id: string; revision: number }>('POST', `${agentPath}/deploy`);
  say(`Revision ${revision.revision} admitted: ${revision.id}`);
  const deployment = await follow(
    async () => (await rest<DeploymentAnswer>('GET', `${agentPath}/deployments/${revision.id}`)).data,
    deploymentTeller(),
    ({ status }) => status === 'succeeded' || status === 'failed',
  );
  if (deployment.error !== null) throw new Fault(`The deployment failed: ${deployment.error.code}: ${deployment.error.message}`);
  const { data: serving } = await rest<AgentAnswer>('GET', agentPath);
  say(`Agent ${serving.name} is desired ${serving.desiredRuntimeState}, selected version ${serving.activeRevisionId ?? 'none'}`);

  const { data: stopping } = await rest<AgentAnswer>('POST', `${agentPath}/stop`);
  say(`Stop accepted: desired ${stopping.desiredRuntimeState}`);
  await follow(
    async () => (await rest<AgentAnswer>('GET', agentPath)).data,
    ({ activeRevisionId }) => `Selected version is ${activeRevisionId ?? 'none'}`,
    ({ activeRevisionId }) => activeRevisionId === undefined,
  );

  const { data: deleting } = await rest<AgentAnswer>('DELETE', agentPath);
  say(`Delete accepted: Agent is ${deleting.status}`);
  await follow(
    () => rest<AgentAnswer>('GET', agentPath),
    ({ status, data }) => (status === 404 ? 'Agent is gone (404)' : `Agent is ${data.status}`),
    ({ status }) => status === 404,
  );
  await rest('DELETE', `${at}/configurations/${configuration.id}`);

  const { eventHistory } = await graphql<{ eventHistory: { edges: { node: { occurredAt: string; stream: string; revision: number; type: string } }[] } }>(
    'query History($filter: HistoryFilter) { eventHistory(first: 100, filter: $filter) { edges { node { occurredAt stream revision type } } } }',
    { filter: { namespaceId: namespace.id, agentId: agent.id } },
  );
  say(`\nThe history of Agent ${agent.name}:`);
  for (const { node } of eventHistory.edges) say(`  ${node.occurredAt}  ${node.stream.padEnd(52)} ${String(node.revision).padStart(3)}  ${node.type}`);
};
