/** What only the process driver promises: adoption, restarts, ports, private files, and one host. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, readdir, readFile, stat, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { ActivationPending } from '../../src/compute/driver.ts';
import type { AgentIdentity, ComputeDriver, RevisionSnapshot } from '../../src/compute/driver.ts';
import { agentFolder } from '../../src/compute/process/layout.ts';
import type { RuntimeRecord } from '../../src/compute/process/layout.ts';
import { launchGateway } from '../../src/compute/process/launch.ts';
import { identityOf, isAlive } from '../../src/compute/process/process-identity.ts';
import type { Json } from '../../src/kernel/canonical.ts';
import { activated, newAgent, newRevision, pass, prepared, untilChanged } from './drive.ts';
import { childrenOf, openProcessWorld } from './process-world.ts';
import type { Child, ProcessWorld } from './process-world.ts';

const gatewayEntry = fileURLToPath(new URL('../../src/gateway/main.ts', import.meta.url));
const crashVictim = fileURLToPath(new URL('./crash-victim.ts', import.meta.url));

describe('The process driver', () => {
  let world: ProcessWorld;
  let driver: ComputeDriver;
  let agent: AgentIdentity;

  const folder = () => agentFolder(world.root, agent);
  const runtime = async () => JSON.parse(await readFile(folder().runtime, 'utf8')) as RuntimeRecord;
  const theChild = async (): Promise<Child> => {
    const children = await world.children();
    expect(children).toHaveLength(1);
    return children[0]!;
  };
  const serve = async (configuration: Json = {}): Promise<RevisionSnapshot> => {
    const revision = newRevision(driver, agent, 1, configuration);
    await prepared(driver, revision, pass(1));
    await activated(driver, revision, pass(1));
    return revision;
  };
  const starts = () => world.lines.filter(({ message }) => message === 'gateway started').length;
  /** Waits for a ready child other than `earlier`. */
  const successorOf = (earlier: number, revision: RevisionSnapshot) =>
    untilChanged(driver, 'a new child of the same revision', async () => {
      const { ready } = await driver.prepareRevision(revision, pass(2));
      const child = (await world.children()).find(({ pid }) => pid !== earlier);
      return ready ? child : undefined;
    });

  beforeEach(async () => {
    world = await openProcessWorld();
    driver = world.driver;
    agent = newAgent();
    await driver.ensureNamespace(agent.namespaceId, pass(0));
    await driver.bindAgent(agent, pass(0));
  });

  afterEach(async () => {
    await driver.close({ stopWorkloads: true });
    const left = await world.children();
    await world.dispose();
    expect(left, 'children left running').toEqual([]);
  });

  it('adopts the child of a control plane that was killed, without a restart', async () => {
    const revision = newRevision(driver, agent, 1, {});
    const controlPlane = spawn(process.execPath, [crashVictim, world.root, JSON.stringify(revision)], { stdio: ['ignore', 'pipe', 'inherit'] });
    await once(controlPlane.stdout, 'data');
    const before = await theChild();
    controlPlane.kill('SIGKILL');
    await once(controlPlane, 'exit');

    driver = world.reopen();
    expect(await prepared(driver, revision, pass(2))).toMatchObject({ ready: true });
    await driver.activateRevision(revision, pass(2));
    expect(await theChild()).toEqual(before);
    expect(driver.gatewayEndpoint(agent)).toBeDefined();

    process.kill(before.pid, 'SIGKILL');
    expect((await successorOf(before.pid, revision)).revisionId).toBe(revision.revisionId);
  });

  it('ends a child whose status does not name its record, and starts the revision afresh', async () => {
    const revision = await serve();
    const before = await theChild();
    await driver.close({ stopWorkloads: false });
    await writeFile(folder().runtime, JSON.stringify({ ...(await runtime()), startId: 'another-start' }));

    driver = world.reopen();
    const after = await successorOf(before.pid, revision);
    expect(after.pid).not.toBe(before.pid);
    expect(await theChild()).toEqual(after);
  });

  it('leaves a process alone that only has the PID of its child', async () => {
    const revision = await serve();
    const stranger = spawn(process.execPath, ['-e', 'setInterval(() => {}, 1000)'], { detached: true, stdio: 'ignore' });
    const identity = identityOf(stranger.pid!)!;
    try {
      const child = await theChild();
      await driver.close({ stopWorkloads: false });
      const record = await runtime();
      await writeFile(folder().runtime, JSON.stringify({ ...record, process: { ...record.process, pid: stranger.pid } }));
      process.kill(-child.pid, 'SIGKILL');

      driver = world.reopen();
      await driver.stopRevision(revision, pass(2));
      expect(isAlive(identity)).toBe(true);
    } finally {
      process.kill(-stranger.pid!, 'SIGKILL');
    }
  });

  it('restarts a serving child that dies, without a new revision', async () => {
    const revision = await serve();
    const before = await theChild();
    process.kill(before.pid, 'SIGKILL');
    const after = await successorOf(before.pid, revision);
    expect(after).toEqual({ ...before, pid: after.pid });
    expect(driver.gatewayEndpoint(agent)?.url).toBe(`ws://127.0.0.1:${(await runtime()).port}`);
  });

  it('lets the later of two candidates start', async () => {
    const [earlier, later] = [newRevision(driver, agent, 1, {}), newRevision(driver, agent, 2, { exuvia: { startupDelayMs: 600_000 } })];
    await driver.prepareRevision(earlier, pass(1));
    await driver.prepareRevision(later, pass(2));
    const { pid } = await theChild();
    expect(await driver.prepareRevision(earlier, pass(3))).toMatchObject({ ready: false });
    await expect(driver.activateRevision(earlier, pass(3))).rejects.toThrow(ActivationPending);
    expect(await theChild()).toMatchObject({ pid, revisionId: later.revisionId });
  });

  it('lets the earlier of two candidates start again once the later one has failed', async () => {
    const [earlier, later] = [newRevision(driver, agent, 1, {}), newRevision(driver, agent, 2, { exuvia: { holdStartup: { code: 'LOGIN_FAILED' } } })];
    await driver.prepareRevision(earlier, pass(1));
    expect((await prepared(driver, later, pass(2))).runtimeFailure).toMatchObject({ code: 'LOGIN_FAILED' });
    expect(await prepared(driver, earlier, pass(3))).toMatchObject({ ready: true });
    expect(await theChild()).toMatchObject({ revisionId: earlier.revisionId });
  });

  it('gives up a serving child that keeps dying, and says how it ended', async () => {
    const revision = await serve();
    const kill = async (): Promise<void> => process.kill((await theChild()).pid, 'SIGKILL') && undefined;
    for (let death = 1; death < 3; death += 1) {
      const { pid } = await theChild();
      await kill();
      await successorOf(pid, revision);
    }
    await kill();
    const { runtimeFailure } = await untilChanged(driver, 'the failure', async () => {
      const observation = await driver.prepareRevision(revision, pass(2));
      return observation.runtimeFailure && observation;
    });
    expect(runtimeFailure).toMatchObject({ component: 'gateway', code: 'UNAVAILABLE', cause: { detail: 'signal-SIGKILL' } });
    expect(driver.gatewayEndpoint(agent)).toBeUndefined();
    expect(starts()).toBe(3);
  });

  it('starts a gateway that exits three times and reports its exit code', async () => {
    const revision = newRevision(driver, agent, 1, { exuvia: { exitAtStartup: 3 } });
    const { runtimeFailure } = await prepared(driver, revision, pass(1));
    expect(runtimeFailure?.cause).toEqual({ kind: 'PROCESS_EXIT', detail: 'exit-3' });
    expect(starts()).toBe(3);
  });

  it('does not repeat the start of a document the gateway cannot read', async () => {
    const revision = newRevision(driver, agent, 1, { exuvia: { unknown: true } });
    const { runtimeFailure } = await prepared(driver, revision, pass(1));
    expect(runtimeFailure?.cause).toEqual({ kind: 'PROCESS_EXIT', detail: 'exit-78' });
    expect(starts()).toBe(1);
  });

  it('reports a gateway program that cannot be started', async () => {
    await driver.close({ stopWorkloads: true });
    driver = world.reopen({ nodeBinary: join(world.root, 'no-such-node') });
    const { runtimeFailure } = await prepared(driver, newRevision(driver, agent, 1, {}), pass(1));
    expect(runtimeFailure).toMatchObject({ check: 'process-start', cause: { detail: 'error-ENOENT' } });
  });

  it('ends a child that ignores SIGTERM after the grace period', async () => {
    const stubborn = join(world.root, 'stubborn.ts');
    await writeFile(stubborn, `process.on('SIGTERM', () => {}); setInterval(() => {}, 1000);`);
    await driver.close({ stopWorkloads: true });
    driver = world.reopen({ gatewayEntry: stubborn, graceMs: 50 });
    const revision = newRevision(driver, agent, 1, {});
    expect(await driver.prepareRevision(revision, pass(1))).toMatchObject({ ready: false });
    await driver.stopRevision(revision, pass(1));
    expect(await world.children()).toEqual([]);
  });

  it('takes another port when the Agent\'s own is taken', async () => {
    const revision = await serve();
    const { port } = await runtime();
    await driver.stopRevision(revision, pass(2));
    const occupant = createServer().listen(port, '127.0.0.1');
    await once(occupant, 'listening');
    try {
      const next = newRevision(driver, agent, 2, {});
      await prepared(driver, next, pass(3));
      expect((await runtime()).port).not.toBe((occupant.address() as AddressInfo).port);
    } finally {
      occupant.close();
    }
  });

  it('keeps state and workspace over stop and retire, and removes them with the Agent', async () => {
    const revision = await serve();
    const { state, workspace, secrets, current, served, path } = folder();
    await writeFile(join(workspace, 'SOUL.md'), 'kind');
    await writeFile(join(state, 'memory'), 'long');
    await driver.stopRevision(revision, pass(2));
    await driver.retireRevision(revision, pass(2));
    expect(await readFile(join(workspace, 'SOUL.md'), 'utf8')).toBe('kind');
    expect(await readFile(join(state, 'memory'), 'utf8')).toBe('long');
    for (const gone of [secrets, current, served, folder().revision(revision.revisionId).path]) await expect(stat(gone)).rejects.toThrow('ENOENT');
    await driver.deleteAgent(agent, pass(3));
    await expect(stat(path)).rejects.toThrow('ENOENT');
  });

  it('keeps everything private: folders 0700, files 0600, no token in arguments or environment', async () => {
    process.env['EXUVIA_TEST_SECRET'] = 'not-for-children';
    await serve();
    delete process.env['EXUVIA_TEST_SECRET'];
    for (const entry of await readdir(world.root, { recursive: true, withFileTypes: true })) {
      if (entry.isSymbolicLink() || entry.parentPath.includes('compile-cache')) continue;
      const { mode } = await stat(join(entry.parentPath, entry.name));
      expect(`${entry.name} ${(mode & 0o777).toString(8)}`).toBe(`${entry.name} ${entry.isDirectory() ? '700' : '600'}`);
    }
    const { pid } = await theChild();
    const { token } = driver.gatewayEndpoint(agent)!;
    const [command, environment] = await Promise.all([readFile(`/proc/${pid}/cmdline`, 'utf8'), readFile(`/proc/${pid}/environ`, 'utf8')]);
    expect(command + environment).not.toContain(token);
    expect(environment).not.toContain('EXUVIA_TEST_SECRET');
    expect(JSON.stringify(world.lines)).not.toContain(token);
  });

  it('refuses a folder that names another Agent', async () => {
    await writeFile(folder().record, JSON.stringify({ ...agent, agentId: newAgent().agentId }));
    await expect(driver.bindAgent(agent, pass(1))).rejects.toThrow('names another Agent');
    await writeFile(folder().record, JSON.stringify(agent));
  });

  it('lets a child end that its launcher could not record', async () => {
    const stateFolder = join(world.root, 'unrecorded');
    await mkdir(stateFolder);
    const launched = await launchGateway({
      nodeBinary: process.execPath,
      gatewayEntry,
      labels: [],
      stateFolder,
      logPath: join(stateFolder, 'log'),
      compileCacheFolder: join(world.root, 'compile-cache'),
    });
    if ('startError' in launched) throw new Error(launched.startError);
    // What the operating system does to the pipe of a launcher that dies.
    launched.child.stdin?.destroy();
    expect(await once(launched.child, 'exit')).toEqual([75, null]);
  });

  it('keeps no child whose record could not be written', async () => {
    await writeFile(folder().secrets, 'in the way of the token');
    await expect(driver.prepareRevision(newRevision(driver, agent, 1, {}), pass(1))).rejects.toThrow();
    await vi.waitFor(async () => expect(await world.children()).toEqual([]), { timeout: 30_000 });
  });

  it('brings a serving Agent back after a stop of the whole server, without a new revision', async () => {
    const revision = await serve();
    await driver.close({ stopWorkloads: true });
    expect(await world.children()).toEqual([]);
    driver = world.reopen();
    await prepared(driver, revision, pass(2));
    await activated(driver, revision, pass(2));
    expect((await theChild()).revisionId).toBe(revision.revisionId);
  });

  it('leaves its children running when only the worker ends', async () => {
    await serve();
    const before = await theChild();
    await driver.close({ stopWorkloads: false });
    expect(await theChild()).toEqual(before);
    driver = world.reopen();
  });

  it('admits embedded drafts that authenticate by the runtime, and says why it refuses others', () => {
    const draft = { executionMode: 'embedded', harnessAuth: { method: 'runtime' }, configuration: {} } as const;
    expect(driver.admit(draft)).toEqual({ admitted: true });
    const refused = [
      { ...draft, executionMode: 'dedicated' as const },
      { ...draft, harnessAuth: { method: 'secret' } },
      { ...draft, harnessAuth: null },
      { ...draft, configuration: [] },
      { ...draft, configuration: null },
      { ...draft, configuration: { gateway: { mode: 'local', bind: 'lan' } } },
      { ...draft, configuration: { exuvia: { holdStartup: { code: 'not an identifier' } } } },
    ];
    for (const other of refused) expect(driver.admit(other)).toEqual({ admitted: false, reason: expect.stringMatching(/\w/) as string });
  });

  it('scenario 37: a driver does not open the root of another host that has started a child', async () => {
    expect(() => world.reopen({ host: 'another-host' })).not.toThrow();
    await serve();
    expect(() => world.reopen({ host: 'another-host' })).toThrow(/run on another host; start the worker there/);
    expect(await childrenOf(world.root)).toHaveLength(1);
  });
});
