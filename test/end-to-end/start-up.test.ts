/** The start-up contract with the real launcher and the embedded database: files, lines, refusals, and every kind of end. */
import { spawnSync } from 'node:child_process';
import { chmod, mkdir, mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { createServer, type AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { childrenOf } from '../compute/process-world.ts';
import { readKey } from '../support/app.ts';
import { createClient } from '../support/client.ts';
import { createDatabase } from '../support/database.ts';
import { isAlive, signInAsAdministrator } from '../support/sign-in.ts';
import { runToEnd, startServer, type Ended, type LaunchedServer } from '../support/server.ts';
import { defaultNamespace, demand, stepsIn, type RevisionAnswer } from './steps.ts';

vi.setConfig({ testTimeout: 120_000, hookTimeout: 120_000 });

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'exuvia-start-'));
  await chmod(folder, 0o755);
});
afterAll(() => rm(folder, { recursive: true, force: true }));

/** Processes of the embedded database on a data folder. */
const databaseProcesses = async (dataDir: string): Promise<readonly string[]> => {
  const commands = await Promise.all(
    (await readdir('/proc')).filter((name) => /^\d+$/.test(name)).map((pid) => readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => '')),
  );
  return commands.filter((command) => command.includes(join(dataDir, 'postgres-18')));
};

/** Refused: an exit code that says so, nothing on standard output, and one sentence on standard error. */
const expectRefused = ({ code, stdout, stderr }: Ended, sentence: RegExp) => {
  expect({ code, stdout, stderr }).toEqual({ code: 1, stdout: '', stderr: expect.stringMatching(/^exuvia: [^\n]+\n$/) as string });
  expect(stderr).toMatch(sentence);
};

/** A port that is free now. */
const freePort = async (): Promise<number> => {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  await new Promise((resolve) => server.close(resolve));
  return port;
};

describe('a life of one data folder', () => {
  let dataDir: string;
  let env: Record<string, string>;
  let server: LaunchedServer;
  let agentId: string;
  let revisionId: string;
  beforeAll(async () => {
    dataDir = join(folder, 'life');
    env = { PORT: String(await freePort()), EXUVIA_DATA_DIR: dataDir, EXUVIA_LOG_LEVEL: 'debug' };
    server = await startServer(env);
  });
  afterAll(() => server.stop());

  const place = async () => {
    const client = createClient(server.origin, await readKey(dataDir));
    return { client, steps: stepsIn(client, await defaultNamespace(client)) };
  };
  const children = () => childrenOf(join(dataDir, 'compute'));

  /** The one Agent runs its one revision in one child. */
  const expectRunning = async () => {
    const { client, steps } = await place();
    await vi.waitFor(async () => expect(await children()).toEqual([expect.objectContaining({ agentId, revisionId }) as object]), { timeout: 30_000, interval: 50 });
    expect(await steps.agent(agentId)).toMatchObject({ desiredRuntimeState: 'running', activeRevisionId: revisionId });
    expect(await demand<RevisionAnswer[]>(client, 200, 'GET', `${steps.agentPath(agentId)}/revisions`)).toHaveLength(1);
  };

  it('the first start listens where it was told, says one line, and writes two private files', async () => {
    expect(server.origin).toBe(`http://127.0.0.1:${env['PORT']}`);
    expect(server.said.stdout).toBe(`exuvia ready on ${server.origin}\n`);
    expect((await fetch(`${server.origin}/readyz`)).status).toBe(200);
    expect((await fetch(`${server.origin}/healthz`)).status).toBe(200);
    for (const name of ['service-key.json', 'admin.json']) expect((await stat(join(dataDir, name))).mode & 0o777).toBe(0o600);
    expect(JSON.parse(await readFile(join(dataDir, 'service-key.json'), 'utf8'))).toMatchObject({ data: { key: expect.stringMatching(/^exk\./) as string } });
    expect(JSON.parse(await readFile(join(dataDir, 'admin.json'), 'utf8'))).toEqual({ email: 'admin@exuvia.local', password: expect.stringMatching(/^.{16,}$/) as string });
  });

  it('the demo walks the whole job and ends with 0', async () => {
    const demo = await runToEnd(['demo'], env);
    expect(demo).toMatchObject({ code: 0, stderr: '' });
    for (const line of ['Deployment is succeeded', 'Selected version is none', 'Agent is gone (404)', 'AgentRemoved']) expect(demo.stdout).toContain(line);
  });

  it('a second start on the folder, and one on the port, are refused while the first goes on', async () => {
    expectRefused(await runToEnd(['serve'], { ...env, PORT: '0' }), /data folder .*life is in use by another running Exuvia/);
    const elsewhere = { ...env, EXUVIA_DATA_DIR: join(folder, 'elsewhere'), OCC_DATABASE_URL: (await createDatabase()).url, EXUVIA_LOG_LEVEL: 'error' };
    expectRefused(await runToEnd(['serve'], elsewhere), new RegExp(`\\b${env['PORT']}\\b`));
    expect((await fetch(`${server.origin}/readyz`)).status).toBe(200);
  });

  it('admin reset-password beside the running server gives a new password, and ends the sessions of the old one', async () => {
    const at = { origin: server.origin, dataDir };
    const { password: old } = JSON.parse(await readFile(join(dataDir, 'admin.json'), 'utf8')) as { password: string };
    const { cookie } = await signInAsAdministrator(at);
    expect(await isAlive(server.origin, cookie)).toBe(true);
    const { code, stdout, stderr } = await runToEnd(['admin', 'reset-password'], env);
    expect({ code, stderr, stdout }).toEqual({ code: 0, stderr: '', stdout: `The new password is in ${join(dataDir, 'admin.json')}; 1 session has ended.\n` });
    expect((await stat(join(dataDir, 'admin.json'))).mode & 0o777).toBe(0o600);
    expect(await isAlive(server.origin, cookie)).toBe(false);
    expect((await signInAsAdministrator(at, old)).status).toBe(401);
    expect((await signInAsAdministrator(at)).status).toBe(200);
    const { client } = await place();
    const { data } = await client.graphql<{ eventHistory: { nodes: readonly { audit: object }[] } }>('{ eventHistory(filter: { types: ["PasswordReplaced"] }, first: 5) { nodes { audit { action outcome } } } }');
    expect(data.eventHistory.nodes).toEqual([{ audit: { action: 'openclaw.auth.accounts.reset_password', outcome: 'success' } }]);
    const person = { email: 'mara@example.test', password: 'at least twelve characters' };
    const { cookie: own } = await signInAsAdministrator(at);
    const post = (path: string, body?: object) =>
      fetch(`${server.origin}/api/auth/${path}`, { method: 'POST', headers: { cookie: own, origin: server.origin, ...(body !== undefined && { 'content-type': 'application/json' }) }, ...(body !== undefined && { body: JSON.stringify(body) }) });
    const made = await post('accounts', person);
    const { data: account } = (await made.json()) as { data: { id: string } };
    const files = { admin: join(dataDir, 'admin.json'), other: join(dataDir, `${account.id}.json`) };
    const kept = await readFile(files.admin, 'utf8');
    expect((await runToEnd(['admin', 'reset-password', '--email', person.email], env)).stdout).toBe(`The new password is in ${files.other}; 0 sessions have ended.\n`);
    expect(await readFile(files.admin, 'utf8')).toBe(kept);
    expect(JSON.parse(await readFile(files.other, 'utf8'))).toMatchObject({ email: person.email });
    expect((await post('sign-out')).status).toBe(200);
    expectRefused(await runToEnd(['admin', 'reset-password', '--email', 'nobody@example.test'], env), /There is no account with the email nobody@example\.test/);
  });

  it('SIGTERM ends it with 0 and all its children; the next start brings the Agent back without a new revision', async () => {
    const { steps } = await place();
    agentId = (await steps.createAgent('resident', (await steps.configure()).id)).id;
    revisionId = (await steps.run(agentId)).id;
    await expectRunning();
    const { code, stdout, stderr } = await server.stop();
    expect({ code, stdout }).toEqual({ code: 0, stdout: `exuvia ready on ${server.origin}\n` });
    expect(await children()).toEqual([]);
    expect(await databaseProcesses(dataDir)).toEqual([]);
    const { password } = JSON.parse(await readFile(join(dataDir, 'admin.json'), 'utf8')) as { password: string };
    for (const secret of [await readKey(dataDir), password, (await readKey(dataDir)).split('.')[2]!]) expect(stderr).not.toContain(secret);

    server = await startServer(env);
    await expectRunning();
  });

  it('after a kill -9 of everything the next start works, with the Agent in one child', async () => {
    await server.killAll();
    server = await startServer(env);
    await expectRunning();
    expect((await server.stop()).code).toBe(0);
    expect(await children()).toEqual([]);
    expect(await runToEnd(['admin', 'reset-password', '--email', 'ADMIN@exuvia.local'], env)).toMatchObject({ code: 0, stdout: expect.stringMatching(/^The new password is in .*; 1 session has ended\.\n$/) as string });
    expect(await databaseProcesses(dataDir)).toEqual([]);
  });

  it('the demo ends with 1 and one sentence when no server answers', async () => {
    expectRefused(await runToEnd(['demo'], env), /No server answers at http:\/\/127\.0\.0\.1:\d+/);
    expectRefused(await runToEnd(['demo'], { ...env, EXUVIA_DATA_DIR: join(folder, 'nowhere') }), /No service key at .*nowhere/);
  });
});

describe('a start that cannot be', () => {
  const isRoot = process.getuid?.() === 0;
  const nobody = 65_534;
  const ordinary = ['setpriv', `--reuid=${nobody}`, `--regid=${nobody}`, '--clear-groups'];
  /** Whether that user can run this checkout at all. */
  const canDrop =
    isRoot && spawnSync(process.execPath, ['-e', 'fs.accessSync(process.argv[1])', import.meta.filename], { uid: nobody, gid: nobody, cwd: '/' }).status === 0;

  it.each([
    ['PORT', { PORT: 'many' }, /PORT must be a whole number from 0 to 65535, but is "many"/],
    ['EXUVIA_ROLES', { EXUVIA_ROLES: 'api,cook' }, /EXUVIA_ROLES .*"cook"/],
    ['OCC_DATABASE_URL', { OCC_DATABASE_URL: 'mysql://here' }, /OCC_DATABASE_URL must be a URL/],
    ['an unreachable database', { OCC_DATABASE_URL: 'postgresql://someone:hidden@127.0.0.1:9/none' }, /127\.0\.0\.1:9\/none.*OCC_DATABASE_URL cannot be reached/],
  ])('names %s', async (_, wrong, sentence) => {
    const ended = await runToEnd(['serve'], { PORT: '0', EXUVIA_DATA_DIR: join(folder, 'wrong'), ...wrong });
    expectRefused(ended, sentence);
    expect(ended.stderr).not.toContain('hidden');
  });

  it('names a data folder that cannot be made', async () => {
    await writeFile(join(folder, 'file'), '');
    expectRefused(await runToEnd(['serve'], { PORT: '0', EXUVIA_DATA_DIR: join(folder, 'file/data') }), /data folder .*file\/data/);
  });

  it.skipIf(!canDrop && isRoot)('names a data folder that its user may not write', async () => {
    const dataDir = join(folder, 'closed');
    await mkdir(dataDir, { mode: 0o555 });
    const ended = await runToEnd(['serve'], { PORT: '0', EXUVIA_DATA_DIR: dataDir }, { cwd: '/', as: isRoot ? ordinary : [] });
    expectRefused(ended, /data folder .*closed/);
  });
});
