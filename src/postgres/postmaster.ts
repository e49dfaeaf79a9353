/** The server process of a data directory as the file `postmaster.pid` tells of it, ours or one that a crash left. */
import { execFile } from 'node:child_process';
import { readFile, rm } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { promisify } from 'node:util';
import { Fault } from '../kernel/errors.ts';

/** Socket folders have this prefix, so that what a crash left is recognised. */
export const socketFolderPrefix = '/tmp/exuvia-';

/** After this a fast shutdown becomes an immediate one, which the next start repairs from the log. */
const fastShutdownMs = 15_000;
const immediateShutdownMs = 10_000;

/**
 * Ends whatever server still runs on `data` and removes what it left: the caller holds the folder's lock, so it is
 * an orphan. Throws a Fault when it does not end.
 */
export const clearPostmaster = async (data: string): Promise<void> => {
  const { pid, socketFolder } = await readPostmaster(data);
  if (!(pid > 0)) return;
  if (await serves(pid, data)) await end(pid, data);
  // The number now belongs to a stranger, as after the restart of a container; PostgreSQL would take it for a server.
  else if (isAlive(pid)) await rm(fileOf(data), { force: true });
  if (socketFolder.startsWith(socketFolderPrefix) && basename(socketFolder) !== '')
    await rm(socketFolder, { recursive: true, force: true });
};

/** The socket folder of the server that runs on `data` and takes connections; undefined when there is none. */
export const socketFolderOf = async (data: string): Promise<string | undefined> => {
  const { pid, socketFolder, status } = await readPostmaster(data);
  return status === 'ready' && (await serves(pid, data)) ? socketFolder : undefined;
};

const fileOf = (data: string): string => join(data, 'postmaster.pid');

/** The number is 0 where there is no file. */
const readPostmaster = async (data: string) => {
  const [pid = '', , , , socketFolder = '', , , status = ''] = (await readFile(fileOf(data), 'utf8').catch(whenMissing)).split('\n');
  return { pid: Number(pid), socketFolder, status: status.trim() };
};

const whenMissing = (error: NodeJS.ErrnoException): string => {
  if (error.code !== 'ENOENT') throw error;
  return '';
};

const end = async (pid: number, data: string): Promise<void> => {
  for (const [signal, patienceMs] of [['SIGINT', fastShutdownMs], ['SIGQUIT', immediateShutdownMs]] as const) {
    if (isAlive(pid)) process.kill(pid, signal);
    for (const giveUpAt = Date.now() + patienceMs; Date.now() < giveUpAt; await delay(50))
      if (!(await serves(pid, data))) return;
  }
  throw new Fault(`The PostgreSQL server ${pid} that an earlier run left on ${data} does not stop`);
};

const isAlive = (pid: number): boolean => {
  try {
    return process.kill(pid, 0);
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
};

/** Whether the process was started with this data directory. */
const serves = async (pid: number, data: string): Promise<boolean> => {
  const commandLine =
    process.platform === 'linux'
      ? readFile(`/proc/${pid}/cmdline`, 'utf8')
      : promisify(execFile)('ps', ['-ww', '-o', 'command=', '-p', `${pid}`]).then(({ stdout }) => stdout);
  return commandLine.then(
    (text) => text.includes(data),
    () => false, // no such process
  );
};
