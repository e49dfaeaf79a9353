/**
 * The embedded PostgreSQL server: a real one, from the binaries of a package, that lives and dies with this process.
 *
 * It listens on a socket in a private folder below /tmp and on no port. A path of a socket holds at most 107 bytes,
 * so the data folder is no place for it, and a port can be taken. Who connects needs the password as well, for other
 * programs may run under the server's user.
 */
import { spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { chown, mkdir, mkdtemp, readFile, realpath, rename, rm, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import pg from 'pg';
import { Fault } from '../kernel/errors.ts';
import { environment, install, own, packagedBinaries, type Installation } from './binaries.ts';
import { lockFolder } from './folder-lock.ts';
import { clearPostmaster, socketFolderOf, socketFolderPrefix } from './postmaster.ts';

const major = 18;
/** The name of the role and of the database. */
const name = 'exuvia';

/** Chosen for speed without giving up durability; errors are the client's to report, and their text may hold values. */
const defaults = {
  listen_addresses: '',
  unix_socket_permissions: '0700',
  shared_buffers: '128MB',
  wal_level: 'minimal',
  max_wal_senders: '0',
  max_wal_size: '2GB',
  checkpoint_timeout: '15min',
  jit: 'off',
  timezone: 'UTC',
  log_timezone: 'UTC',
  log_line_prefix: '',
  log_min_messages: 'log',
  log_checkpoints: 'off',
  log_error_verbosity: 'terse',
  lc_messages: 'C',
} as const;

/**
 * Runs the server and asks for a fast shutdown as soon as the other end of its standard input closes, which the
 * kernel does for a killed parent, then clears the socket's folder.
 */
const supervisor = `
trap '' TERM INT HUP
exec 3<&0 </dev/null
socket_folder=$1; shift
"$@" 3<&- & server=$!
{ read -r _ <&3; kill -INT "$server"; } & watcher=$!
wait "$server"; status=$?
kill -KILL "$watcher" 2>/dev/null
rmdir "$socket_folder" 2>/dev/null
exit "$status"`;

export interface EmbeddedServer {
  /** A connection string with the password in it: never log it. */
  readonly url: string;
  /** Resolves when the server has ended, asked to or not. */
  readonly ended: Promise<void>;
  /** Shuts down in order, rolling back what is open, and releases the data folder. May be called twice. */
  readonly stop: () => Promise<void>;
}

export interface EmbeddedOptions {
  /** Made when missing. The server's files are in a folder for each major version in it. */
  readonly dataDir: string;
  /** Receives what the server writes, line by line. */
  readonly log?: (line: string) => void;
  /** Server settings beyond the defaults. */
  readonly settings?: Readonly<Record<string, string>>;
  /** The folder with `bin`, `lib` and `share`; the installed package's by default. */
  readonly binaries?: string;
}

/** Starts the server on a data folder, new, old or left by a crash. Throws a Fault whose one sentence says what is wrong. */
export const startEmbedded = async ({
  dataDir,
  log = () => {},
  settings = {},
  binaries = packagedBinaries(),
}: EmbeddedOptions): Promise<EmbeddedServer> => {
  const folder = await mkdir(dataDir, { recursive: true })
    .then(() => realpath(dataDir))
    .catch((error: Error) => {
      throw new Fault(`The data folder ${dataDir} cannot be made: ${error.message}`, { cause: error });
    });
  const unlock = await lockFolder(folder);
  try {
    const installation = await install(binaries, folder);
    const cluster = await prepareCluster(installation, homeIn(folder));
    const server = await run(installation, cluster, { ...defaults, ...settings }, log);
    await createDatabase(server.url).catch(async (error: unknown) => {
      await server.stop();
      throw error;
    });
    let stopped: Promise<void> | undefined;
    return { ...server, stop: () => (stopped ??= server.stop().finally(unlock)) };
  } catch (error) {
    unlock();
    throw error;
  }
};

/** The connection string of the server that another process runs on a data folder; undefined when none takes connections there. */
export const findEmbedded = async (dataDir: string): Promise<string | undefined> => {
  const home = homeIn(await realpath(dataDir).catch(() => dataDir));
  const socketFolder = await socketFolderOf(dataIn(home));
  return socketFolder === undefined ? undefined : urlOf(await readFile(passwordFileIn(home), 'utf8'), socketFolder);
};

const homeIn = (folder: string): string => join(folder, `postgres-${major}`);
const dataIn = (home: string): string => join(home, 'data');
const passwordFileIn = (home: string): string => join(home, 'password');
const urlOf = (password: string, socketFolder: string): string => `postgresql://${name}:${password}@/${name}?host=${encodeURIComponent(socketFolder)}`;

interface Cluster {
  /** The data directory, ready to be served. */
  readonly data: string;
  readonly password: string;
}

/** Makes the cluster on first use; a run that was interrupted is begun again. */
const prepareCluster = async (installation: Installation, home: string): Promise<Cluster> => {
  const [data, passwordFile] = [dataIn(home), passwordFileIn(home)];
  await mkdir(home, { recursive: true, mode: 0o700 });
  if (installation.owner !== undefined) await own(home, installation.owner);
  await clearPostmaster(data);
  const isNew = await stat(data).then(
    () => false,
    () => true,
  );
  if (isNew) {
    const partial = `${data}.partial`;
    await rm(partial, { recursive: true, force: true });
    await writeFile(passwordFile, randomBytes(24).toString('hex'), { mode: 0o600, flush: true });
    if (installation.owner !== undefined) await chown(passwordFile, installation.owner, installation.owner);
    const options = ['--auth=scram-sha-256', '--encoding=UTF8', '--locale=C', '--no-instructions'];
    const { child, tail } = start(installation, [
      join(installation.root, 'bin/initdb'),
      ...[`--pgdata=${partial}`, `--username=${name}`, `--pwfile=${passwordFile}`, ...options],
    ]);
    const [code] = (await once(child, 'close')) as [number | null];
    if (code !== 0) throw new Fault(`PostgreSQL could not set up ${home}: ${tail()}`);
    await rename(partial, data);
  }
  return { data, password: await readFile(passwordFile, 'utf8') };
};

const run = async (
  installation: Installation,
  { data, password }: Cluster,
  settings: Readonly<Record<string, string>>,
  log: (line: string) => void,
): Promise<EmbeddedServer> => {
  const socketFolder = await mkdtemp(socketFolderPrefix);
  if (installation.owner !== undefined) await chown(socketFolder, installation.owner, installation.owner);
  const assignments = Object.entries(settings).flatMap(([key, value]) => ['-c', `${key}=${value}`]);
  const postgres = [join(installation.root, 'bin/postgres'), '-D', data, '-k', socketFolder, ...assignments];
  const { child, lines, tail } = start(installation, ['/bin/sh', '-c', supervisor, 'supervisor', socketFolder, ...postgres]);
  lines.on('line', log);
  const ended = once(child, 'close').then(() => {});
  const stop = async (): Promise<void> => {
    child.stdin.end();
    await Promise.all([ended, clearPostmaster(data)]);
    await rm(socketFolder, { recursive: true, force: true });
  };
  const ready = new Promise<true>((resolve) => {
    lines.on('line', (line) => line.endsWith('database system is ready to accept connections') && resolve(true));
  });
  if (!(await Promise.race([ready, ended]))) {
    await stop();
    throw new Fault(`PostgreSQL did not start on ${data}: ${tail()}`);
  }
  return { url: urlOf(password, socketFolder), ended, stop };
};

/** Starts a program in a session of its own, so that Ctrl-C is not for it, and keeps the last lines it writes. */
const start = ({ prefix, ids }: Installation, commandLine: readonly string[]) => {
  const [command = '', ...args] = [...prefix, ...commandLine];
  const child = spawn(command, args, {
    stdio: ['pipe', 'ignore', 'pipe'],
    detached: true,
    cwd: '/',
    env: environment,
    ...ids,
  });
  const last: string[] = [];
  const lines = createInterface(child.stderr).on('line', (line) => {
    last.push(line);
    if (last.length > 5) last.shift();
  });
  return { child, lines, tail: () => last.join(' ') };
};

const createDatabase = async (url: string): Promise<void> => {
  const client = new pg.Client(url.replace(`@/${name}?`, '@/postgres?'));
  await client.connect();
  try {
    const { rowCount } = await client.query('select from pg_database where datname = $1', [name]);
    if (rowCount === 0) await client.query(`create database ${name}`);
  } finally {
    await client.end();
  }
};
