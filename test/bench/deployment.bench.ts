/** From the deploy request to the running Agent, beside the child's own start. */
import { randomUUID } from 'node:crypto';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { createProcessDriver } from '../../src/compute/process/process-driver.ts';
import type { RevisionSnapshot } from '../../src/compute/driver.ts';
import { openConnection } from './http-load.ts';
import { interleaved, quick, storeNames, withStores, type Row, type StoreName } from './measure.ts';
import { startProgram } from './program.ts';

const rounds = quick ? 1 : 15;
/** Looking without a pause would take the processor from the child that starts. */
const lookEveryMs = 5;
const silent = { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} };
const signal = AbortSignal.timeout(600_000);

/** The driver alone: from the first effect to a gateway that is ready. */
const childStart = async (root: string): Promise<number> => {
  const driver = createProcessDriver({ root, log: silent });
  const namespaceId = `ns_${randomUUID()}`;
  const revision: RevisionSnapshot = {
    namespaceId,
    agentId: `agt_${randomUUID()}`,
    servicePrincipalId: 'spn',
    revisionId: `rev_${randomUUID()}`,
    number: 1,
    executionMode: 'embedded',
    harness: { id: 'openclaw', version: '1', mode: 'embedded' },
    compute: { id: driver.id, implementation: driver.implementation },
    harnessAuth: { method: 'runtime' },
    configuration: {},
  };
  await driver.ensureNamespace(namespaceId, { signal });
  const startedAt = performance.now();
  await driver.bindAgent(revision, { fence: 1, signal });
  const settled = new Promise<void>((resolve) => driver.onChange(() => resolve()));
  if (!(await driver.prepareRevision(revision, { fence: 1, signal })).ready) await settled;
  const elapsedMs = performance.now() - startedAt;
  await driver.close({ stopWorkloads: true });
  return elapsedMs;
};

export const measure = (storeName: StoreName): Promise<Row[]> =>
  withStores(storeName, async ({ env }) => {
    const dataDir = await mkdtemp(join(tmpdir(), 'exuvia-bench-'));
    const alone = await mkdtemp(join(tmpdir(), 'exuvia-bench-'));
    const server = await startProgram(join(import.meta.dirname, '../../src/cli.ts'), ['serve'], { ...env, EXUVIA_DATA_DIR: dataDir });
    const { data: key } = JSON.parse(await readFile(join(dataDir, 'service-key.json'), 'utf8')) as { data: { key: string } };
    const connection = await openConnection(server.origin, { 'x-api-key': key.key });
    const ask = async <T>(method: string, path: string, status: number, body?: object): Promise<T> =>
      (JSON.parse(await connection.send({ method, path, status, ...(body !== undefined && { body: JSON.stringify(body) }) })) as { data: T }).data;
    const [namespace] = await ask<readonly { id: string }[]>('GET', '/namespaces', 200);
    const at = `/namespaces/${namespace!.id}`;
    const { id: configurationId } = await ask<{ id: string }>('POST', `${at}/configurations`, 201, { kind: 'agent', values: {} });

    const deployment = async (): Promise<number> => {
      const { id } = await ask<{ id: string }>('POST', `${at}/agents`, 201, { name: randomUUID(), configurationId, harnessAuth: { method: 'runtime' } });
      const startedAt = performance.now();
      const revision = await ask<{ id: string }>('POST', `${at}/agents/${id}/deploy`, 202);
      const isRunning = async () => (await ask<{ status: string }>('GET', `${at}/agents/${id}/deployments/${revision.id}`, 200)).status === 'succeeded';
      while (!(await isRunning())) await delay(lookEveryMs);
      const elapsedMs = performance.now() - startedAt;
      await ask('DELETE', `${at}/agents/${id}`, 202);
      const isGone = async () => (await ask<readonly { id: string }[]>('GET', `${at}/agents`, 200)).every((agent) => agent.id !== id);
      while (!(await isGone())) await delay(lookEveryMs);
      return elapsedMs;
    };
    await childStart(alone);
    await deployment();
    const [total = NaN, child = NaN] = await interleaved(rounds, [deployment, () => childStart(alone)]);
    connection.close();
    await server.stop();
    await Promise.all([dataDir, alone].map((folder) => rm(folder, { recursive: true, force: true })));
    return [
      {
        name: 'deployment, request to running, beyond the child’s own start',
        unit: 'ms (median)',
        value: total - child,
        yardstick: 'the child’s own start',
        yardstickValue: child,
        ratio: (total - child) / child,
      },
    ];
  });

if (import.meta.main) for (const store of storeNames) console.table((await measure(store)).map((row) => ({ store, ...row })));
