/**
 * Runs services of docker-compose.yml without a container engine: the image's files in a folder that their user cannot
 * write, the command and the environment that the Dockerfile and the compose file give, and nothing else of this machine.
 */
import { execFile, spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { chmod, chown, copyFile, mkdir, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { promisify } from 'node:util';
import { composeFile, image, interpolate, productionPackages, root, visible } from './files.ts';

const execute = promisify(execFile);

/** The uid of `node` in the official image. */
const nodeUser = 1000;
const isRoot = process.getuid?.() === 0;
const asOrdinaryUser = isRoot ? ['setpriv', `--reuid=${nodeUser}`, `--regid=${nodeUser}`, '--clear-groups', '--no-new-privs', '--bounding-set=-all', '--'] : [];

export interface LaidImage {
  readonly code: string;
  readonly path: string;
  /** A folder that the user of the containers may write. */
  newFolder(): Promise<string>;
  remove(): Promise<void>;
}

/** Lays out what a build would put into the image, from this checkout and its installed packages. */
export const layImage = async (): Promise<LaidImage> => {
  const folder = await mkdtemp(join(tmpdir(), 'exuvia-image-'));
  await chmod(folder, 0o755);
  const code = join(folder, 'code');
  await mkdir(code);
  const held = [...image.sources.filter((name) => visible.includes(name)), ...productionPackages];
  await execute('cp', ['-R', '--parents', '--target-directory', code, ...held], { cwd: root });
  // For a user who owns what is laid out here, nothing else would make it read-only.
  await execute('chmod', ['-R', 'a-w', code]);
  await mkdir(join(folder, 'bin'));
  await copyFile(process.execPath, join(folder, 'bin/node'));
  return {
    code,
    path: `${join(folder, 'bin')}:/usr/bin:/bin`,
    newFolder: async () => {
      const made = await mkdtemp(join(folder, 'data-'));
      if (isRoot) await chown(made, nodeUser, nodeUser);
      return made;
    },
    remove: async () => {
      await execute('chmod', ['-R', 'u+w', code]);
      await rm(folder, { recursive: true });
    },
  };
};

export interface Ended {
  readonly code: number | null;
  readonly said: string;
}

export interface Container {
  readonly dataDir: string;
  /** The line that tells it is ready; rejects with what it said instead. */
  readonly ready: Promise<string>;
  /** Runs its health check as the engine would. */
  health(): Promise<Ended>;
  /** Runs another command in it. */
  execute(command: readonly string[]): Promise<Ended>;
  /** Ends it as `docker stop` does. */
  stop(): Promise<Ended>;
  kill(): Promise<void>;
}

const readyWithinMs = 60_000;

/** Starts a service; `given` replaces, or takes away, what only exists between containers: addresses and mounts. */
export const startService = (
  { code, path }: LaidImage,
  name: string,
  { variables, given }: { readonly variables: Readonly<Record<string, string>>; readonly given: Readonly<Record<string, string | undefined>> & { readonly EXUVIA_DATA_DIR: string } },
): Container => {
  const service = composeFile.services[name]!;
  const declared = Object.entries({ ...image.environment, ...service.environment }).map(([key, value]) => [key, interpolate(value, variables)]);
  const environment: NodeJS.ProcessEnv = { PATH: path, ...(Object.fromEntries(declared) as Record<string, string>), ...given, PORT: '0' };

  const run = (command: readonly string[], port = '0'): ChildProcess => {
    const [program = '', ...args] = [...asOrdinaryUser, ...command];
    return spawn(program, args, { cwd: code, env: { ...environment, PORT: port }, stdio: ['ignore', 'pipe', 'pipe'] });
  };
  const endOf = async (child: ChildProcess): Promise<Ended> => {
    const said: string[] = [];
    for (const stream of [child.stdout!, child.stderr!]) stream.setEncoding('utf8').on('data', (text: string) => said.push(text));
    const [exitCode] = (await once(child, 'close')) as [number | null];
    return { code: exitCode, said: said.join('') };
  };

  const child = run([...image.entrypoint, ...(service.command ?? image.command)]);
  const ended = endOf(child);
  const deadline = AbortSignal.timeout(readyWithinMs);
  const ready = Promise.race([
    once(createInterface(child.stdout!), 'line', { signal: deadline }).then(
      ([line]) => line as string,
      () => Promise.reject(new Error(`Expected ${name} to be ready within ${readyWithinMs} ms`)),
    ),
    ended.then(({ code: exitCode, said }) => Promise.reject(new Error(`${name} ended with ${exitCode}: ${said}`))),
  ]);
  // Whoever waits hears of it; a test that failed before does not wait.
  ready.catch(() => {});
  const inside = async (command: readonly string[]) => endOf(run(command, (await ready).split(':').at(2)));

  return {
    dataDir: given.EXUVIA_DATA_DIR,
    ready,
    execute: inside,
    health: () => inside(service.healthcheck.test.slice(1)),
    stop: () => {
      child.kill('SIGTERM');
      return ended;
    },
    kill: async () => {
      child.kill('SIGKILL');
      await ended;
    },
  };
};
