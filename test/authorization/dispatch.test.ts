/** Rows of the authorization table that the worker decides: what was permitted when it was asked for is judged again when it is done. */
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createProcessDriver } from '../../src/compute/process/process-driver.ts';
import { startApplication, type Application } from '../../src/compose.ts';
import { readConfig } from '../../src/config.ts';
import type { Metadata } from '../../src/kernel/event.ts';
import { createLogger } from '../../src/telemetry/logger.ts';
import { newDataDir } from '../support/app.ts';
import { eventually } from '../support/client.ts';
import { edges, send, useCases as use, type Answer, type EdgeName, type UseCase } from '../support/use-cases.ts';
import { agentAt, configurationAt, createFixture, revisionAt, type Actor, type Fixture, type Names } from './fixture.ts';
import { dispatchRows } from './rows.ts';

/** What one edge asked for before the worker started. */
interface Prepared {
  /** Deploys, and loses `deploy` before the dispatch. */
  readonly deployer: { readonly actor: Actor; readonly names: Names };
  /** Deletes, and loses `delete` before the dispatch. */
  readonly deleter: { readonly actor: Actor; readonly names: Names };
  /** Could read an Agent that the administrator deletes. */
  readonly reader: { readonly actor: Actor; readonly names: Names; readonly name: string };
}

let fixture: Fixture;
let worker: Application;
let workerDir: string;
const prepared = new Map<EdgeName, Prepared>();

const ask = (edge: EdgeName, useCase: UseCase, { key }: Actor): Promise<Answer> => send(edge, fixture.application.origin, useCase, key);

const accepted = async (edge: EdgeName, useCase: UseCase, actor: Actor): Promise<{ readonly id: string; readonly name: string }> => {
  const { code, data } = await ask(edge, useCase, actor);
  expect(code).toBeNull();
  return data as never;
};

const prepare = async (edge: EdgeName): Promise<Prepared> => {
  const [deploying, deleting, reading] = [await fixture.fresh(), await fixture.fresh(), await fixture.fresh()];
  const deployer = await fixture.actor(deploying, ['agent:deploy=G1', 'configuration:read=C1']);
  const { id: R1 } = await accepted(edge, use.deployAgent(agentAt(deploying, 'G1')), deployer);
  await deployer.revoke('agent:deploy=G1');
  const deleter = await fixture.actor(deleting, ['agent:delete=G1']);
  await accepted(edge, use.deleteAgent(agentAt(deleting, 'G1')), deleter);
  await deleter.revoke('agent:delete=G1');
  const reader = await fixture.actor(reading, ['agent:read=G1']);
  const { name } = await accepted(edge, use.deleteAgent(agentAt(reading, 'G1')), fixture.administrator);
  return { deployer: { actor: deployer, names: { ...deploying, R1 } }, deleter: { actor: deleter, names: deleting }, reader: { actor: reader, names: reading, name } };
};

const openCompute = () => createProcessDriver({ root: join(workerDir, 'compute'), log: createLogger({ level: 'silent' }) });

beforeAll(async () => {
  fixture = await createFixture();
  for (const edge of edges) prepared.set(edge, await prepare(edge));
  workerDir = await newDataDir();
  // The Namespace was told to be ready; here it is.
  const compute = openCompute();
  await compute.ensureNamespace(fixture.names['N1']!, { signal: AbortSignal.timeout(5_000) });
  await compute.close({ stopWorkloads: false });
  const config = readConfig({ EXUVIA_ROLES: 'worker', EXUVIA_DATA_DIR: workerDir, OCC_DATABASE_URL: fixture.application.database.url, EXUVIA_LOG_LEVEL: 'silent' });
  worker = await startApplication(config, createLogger({ level: config.logLevel }));
});
afterAll(async () => {
  await worker?.close();
  // A lone worker leaves the Agents that the fixture deployed running, for the next one to adopt.
  await openCompute().close({ stopWorkloads: true });
  await fixture?.close();
  await rm(workerDir, { recursive: true, force: true });
});

/** The denials the worker recorded on the stream of an Agent. */
const denialsOf = async (agentId: string): Promise<readonly Metadata[]> => {
  const { rows } = await fixture.application.database.pool.query<{ metadata: string }>(`select metadata from event where stream like $1 order by position`, [`%agent-${agentId}`]);
  return rows.map(({ metadata }) => JSON.parse(metadata) as Metadata).filter(({ audit, work }) => work !== undefined && audit?.kind === 'authorization_denial');
};

const removed = async (edge: EdgeName): Promise<Prepared['reader']> => {
  const { reader } = prepared.get(edge)!;
  await eventually('the deleted Agent to be gone', () => ask(edge, use.getAgent(agentAt(reader.names, 'G1')), fixture.administrator), ({ code }) => code === 'NOT_FOUND');
  return reader;
};

const checks: Readonly<Record<(typeof dispatchRows)[number], (edge: EdgeName) => Promise<void>>> = {
  'AZ-118': async (edge) => {
    const { actor, names } = prepared.get(edge)!.deployer;
    const look = () => ask(edge, use.getAgentDeployment(revisionAt(names, 'R1')), fixture.administrator);
    const { data } = await eventually('a failed deployment', look, (answer) => (answer.data as { status: string }).status === 'failed');
    expect(data).toMatchObject({ error: { code: 'AUTHORIZATION_DENIED' } });
    const [denial, ...more] = await denialsOf(names['G1']!);
    expect(more).toEqual([]);
    expect(denial?.audit).toMatchObject({ action: 'openclaw.agents.deploy', outcome: 'denied', authorization: { principalId: actor.id, action: 'deploy', resource: { kind: 'agent', id: names['G1'] } } });
    expect((await ask(edge, use.getAgent(agentAt(names, 'G1')), fixture.administrator)).data).not.toHaveProperty('activeRevisionId', expect.any(String));
  },
  'AZ-142': async (edge) => {
    const { actor, names } = prepared.get(edge)!.deleter;
    const [denial] = await eventually('a denied teardown', () => denialsOf(names['G1']!), (denials) => denials.length > 0);
    expect(denial?.audit).toMatchObject({ outcome: 'denied', authorization: { principalId: actor.id, action: 'delete', resource: { kind: 'agent', id: names['G1'] } } });
    expect((await ask(edge, use.getAgent(agentAt(names, 'G1')), fixture.administrator)).data).toMatchObject({ status: 'deleting' });
    const { rows } = await fixture.application.database.pool.query<{ data: string }>(`select data from event where stream like $1 and type = 'AgentTeardownFailed'`, [`%agent-${names['G1']}`]);
    expect(rows.map(({ data }) => (JSON.parse(data) as { code: string }).code)).toEqual(['AUTHORIZATION_DENIED']);
  },
  'AZ-143': async (edge) => {
    const { names } = await removed(edge);
    expect(await ask(edge, use.getAgent(agentAt(names, 'G1')), fixture.administrator)).toMatchObject({ code: 'NOT_FOUND', status: 404 });
  },
  'AZ-144': async (edge) => {
    const { actor, names } = await removed(edge);
    expect(await ask(edge, use.getAgent(agentAt(names, 'G1')), actor)).toMatchObject({ code: 'FORBIDDEN', status: 403 });
  },
  'AZ-145': async (edge) => {
    const { names } = await removed(edge);
    expect((await ask(edge, use.getConfiguration(configurationAt(names, 'C1')), fixture.administrator)).code).toBeNull();
  },
  'AZ-146': async (edge) => {
    const { names, name } = await removed(edge);
    const again = () => ask(edge, use.createAgent(names['N1']!, { name, configurationId: names['C1'] }), fixture.administrator);
    await eventually('the name to be free again', again, ({ code }) => code === null);
  },
};

describe.each(edges)('over %s', (edge) => {
  it.each(dispatchRows)('%s', (row) => checks[row](edge));
});
