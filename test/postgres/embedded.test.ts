/** The embedded server as root and as an ordinary user, in awkward places, and after every kind of death. */
import { spawn, spawnSync, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { access, chmod, chown, cp, lstat, mkdir, mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import { packagedBinaries } from '../../src/postgres/binaries.ts';
import { findEmbedded, startEmbedded } from '../../src/postgres/embedded.ts';
import { openClient } from '../../src/postgres/pool.ts';

const isRoot = process.getuid?.() === 0;
/** Whether that user can run this checkout at all. */
const canDropTo = (uid: number) =>
  isRoot &&
  spawnSync(process.execPath, ['-e', 'fs.accessSync(process.argv[1])', import.meta.filename], { uid, gid: uid, cwd: '/' }).status === 0;

const deadline = { timeout: 30_000, interval: 25 };

let folder: string;
const programs: ChildProcess[] = [];

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'exuvia-embedded-'));
  await chmod(folder, 0o755);
});

afterEach(async () => {
  for (const program of programs.splice(0)) if (isRunning(program) && program.kill('SIGTERM')) await once(program, 'exit');
  await rm(folder, { recursive: true });
});

const isRunning = ({ exitCode, signalCode }: ChildProcess) => exitCode === null && signalCode === null;

interface Serving {
  /** Put before the command line. */
  readonly as?: readonly string[];
  readonly binaries?: string;
  readonly path?: string;
}

/** Starts the server in a process of its own and waits for its connection string, or rejects with what it says. */
const serve = async (dataDir: string, { as = [], binaries, path }: Serving = {}) => {
  const program = [process.execPath, join(import.meta.dirname, 'serve.ts'), dataDir, ...(binaries === undefined ? [] : [binaries])];
  const [command = '', ...args] = [...as, ...program];
  const child = spawn(command, args, {
    stdio: ['ignore', 'pipe', 'pipe'],
    env: path === undefined ? process.env : { ...process.env, PATH: path },
  });
  programs.push(child);
  const said: string[] = [];
  createInterface(child.stderr).on('line', (line) => said.push(line));
  const url = await Promise.race([
    once(createInterface(child.stdout), 'line').then(([line]) => line as string),
    once(child, 'close').then(() => Promise.reject(new Error(said.join('\n')))),
  ]);
  const stop = async () => {
    child.kill('SIGTERM');
    expect(await once(child, 'exit')).toEqual([0, null]);
  };
  return { url, child, stop };
};

const query = async (url: string, sql: string): Promise<Record<string, unknown>[]> => {
  const client = await openClient({ url });
  try {
    return (await client.query<Record<string, unknown>>(sql)).rows;
  } finally {
    await client.end();
  }
};

const remember = (url: string) => query(url, 'create table memory as select 1 as fact');
const expectMemory = async (url: string) => expect(await query(url, 'select fact from memory')).toEqual([{ fact: 1 }]);

const dataOf = (dataDir: string) => join(dataDir, 'postgres-18/data');
const postmasterOf = async (dataDir: string) =>
  Number((await readFile(join(dataOf(dataDir), 'postmaster.pid'), 'utf8')).split('\n')[0]);
const parentOf = async (pid: number) => Number(/^PPid:\t(\d+)$/m.exec(await readFile(`/proc/${pid}/status`, 'utf8'))?.[1]);
const killAll = async (program: ChildProcess, postmaster: number) => {
  for (const pid of [await parentOf(postmaster), postmaster, program.pid ?? 0]) process.kill(pid, 'SIGKILL');
};
const socketFolderOf = (url: string) => decodeURIComponent(url.split('?host=')[1] ?? '');
const gone = (path: string) => expect(access(path), `${path} should disappear`).rejects.toThrow();

describe('an embedded server', () => {
  it('speaks UTF-8 in the C locale, asks for the password, and finds its data again, however long the path', async () => {
    const dataDir = join(folder, 'd'.repeat(100), 'e'.repeat(100));
    const first = await startEmbedded({ dataDir });
    try {
      await remember(first.url);
      expect(
        await query(first.url, `select datcollate, datctype, pg_encoding_to_char(encoding) as encoding
                                from pg_database where datname = current_database()`),
      ).toEqual([{ datcollate: 'C', datctype: 'C', encoding: 'UTF8' }]);
      await expect(query(first.url.replace(/:[0-9a-f]{48}@/, ':wrong@'), 'select')).rejects.toThrow('password');
      expect((await stat(join(dataDir, 'postgres-18/password'))).mode & 0o777).toBe(0o600);
    } finally {
      await first.stop();
    }
    const second = await startEmbedded({ dataDir });
    await expectMemory(second.url).finally(second.stop);
  });

  it('is found by its data folder while it runs, and only then', async () => {
    expect(await findEmbedded(join(folder, 'nothing'))).toBeUndefined();
    const server = await serve(folder);
    expect(await findEmbedded(folder)).toBe(server.url);
    await remember((await findEmbedded(folder))!);
    await server.stop();
    expect(await findEmbedded(folder)).toBeUndefined();
  });

  it('refuses a second start on its folder in one sentence and goes on serving', async () => {
    const first = await serve(folder);
    await expect(serve(folder)).rejects.toThrow(/^The data folder .* is in use by another running Exuvia$/);
    await query(first.url, 'select');
  });

  it('names a data folder that it cannot make', async () => {
    await writeFile(join(folder, 'file'), '');
    await expect(startEmbedded({ dataDir: join(folder, 'file/data') })).rejects.toThrow(`The data folder ${folder}/file/data`);
  });
});

describe('after a death', () => {
  /** Each test finds it as the one before has left it. */
  let dataDir: string;
  beforeAll(async () => {
    dataDir = await mkdtemp(join(tmpdir(), 'exuvia-deaths-'));
    await chmod(dataDir, 0o755);
  });
  afterAll(() => rm(dataDir, { recursive: true }));

  it('of its parent, the server stops by itself', async () => {
    const { child, url } = await serve(dataDir);
    child.kill('SIGKILL');
    await vi.waitFor(() => gone(join(dataOf(dataDir), 'postmaster.pid')), deadline);
    await vi.waitFor(() => gone(socketFolderOf(url)), deadline);
  });

  it('of everything at once, the next start finds what was committed and clears /tmp', async () => {
    const { child, url } = await serve(dataDir);
    await remember(url);
    await killAll(child, await postmasterOf(dataDir));
    const next = await serve(dataDir);
    await expectMemory(next.url);
    await gone(socketFolderOf(url));
  });

  it('of its parent and its supervisor, the next start ends the orphan', async () => {
    const { child } = await serve(dataDir);
    const orphan = await postmasterOf(dataDir);
    const supervisor = await parentOf(orphan);
    for (const pid of [supervisor, child.pid ?? 0]) process.kill(pid, 'SIGKILL');
    const next = await serve(dataDir);
    await query(next.url, 'select');
    await expect(readFile(`/proc/${orphan}/cmdline`, 'utf8').catch(() => '')).resolves.toBe('');
  });

  it('a pid that now belongs to a stranger does not stop the next start', async () => {
    const { child } = await serve(dataDir);
    const pidFile = join(dataOf(dataDir), 'postmaster.pid');
    const stale = await readFile(pidFile, 'utf8');
    await killAll(child, await postmasterOf(dataDir));
    await writeFile(pidFile, stale.replace(/^\d+/, `${process.pid}`));
    const next = await serve(dataDir);
    await query(next.url, 'select');
  });
});

describe.runIf(isRoot)('as root', () => {
  it('runs in a folder that nobody cannot reach, twice, and as nobody when the folder is opened', async () => {
    await chmod(folder, 0o700);
    const first = await serve(folder);
    await remember(first.url).finally(first.stop);
    const second = await serve(folder);
    await expectMemory(second.url).finally(second.stop);
    await chmod(folder, 0o755);
    const third = await serve(folder);
    await expectMemory(third.url);
    const account = canDropTo(65534) ? 65534 : 0;
    expect((await stat(dataOf(folder))).uid).toBe(account);
    expect((await stat(`/proc/${await postmasterOf(folder)}`)).uid).toBe(account);
  });

  it('runs binaries that nobody cannot reach, without and with a copy', async () => {
    const closed = join(folder, 'closed');
    await mkdir(closed, { mode: 0o700 });
    const binaries = await copyBinaries(closed);
    const mapped = await serve(join(folder, 'mapped'), { binaries });
    await query(mapped.url, 'select').finally(mapped.stop);
    const copied = await serve(join(folder, 'copied'), { binaries, path: '/nonexistent' });
    await query(copied.url, 'select').finally(copied.stop);
    expect(await readdir(join(folder, 'copied'))).toContainEqual(expect.stringMatching(/^postgres-binaries-18/));
  });
});

describe.runIf(isRoot && canDropTo(65534))('as an ordinary user', () => {
  const as = (uid: number) => ['setpriv', `--reuid=${uid}`, `--regid=${uid}`, '--clear-groups', '--'];

  it('runs in its own closed folder, twice', async () => {
    await chmod(folder, 0o700);
    await chown(folder, 65534, 65534);
    const first = await serve(folder, { as: as(65534) });
    await remember(first.url).finally(first.stop);
    const second = await serve(folder, { as: as(65534) });
    await expectMemory(second.url);
  });

  it('runs under a number that has no name', async () => {
    await chown(folder, 54_321, 54_321);
    const { url } = await serve(folder, { as: as(54_321) });
    await query(url, 'select');
  });

  it('runs binaries of another user whose install script never ran', async () => {
    const binaries = await copyBinaries(folder);
    const dataDir = join(folder, 'data');
    await mkdir(dataDir);
    await chown(dataDir, 65534, 65534);
    const { url } = await serve(dataDir, { as: as(65534), binaries });
    await query(url, 'select');
  });

  it('names a data folder that it may not write', async () => {
    await expect(serve(folder, { as: as(65534) })).rejects.toThrow(folder);
  });
});

/** The package as npm unpacks it when it may not run install scripts: without its library links. */
const copyBinaries = async (to: string): Promise<string> => {
  const packaged = packagedBinaries();
  const target = join(to, 'package/native');
  await cp(packaged, target, { recursive: true, filter: async (path) => !(await lstat(path)).isSymbolicLink() });
  await cp(join(packaged, '../package.json'), join(to, 'package/package.json'));
  return target;
};
