/** Durable private files: 0700 directories and 0600 files that are either the old or the new text, also after a power cut. */
import { randomUUID } from 'node:crypto';
import { constants } from 'node:fs';
import { lstat, mkdir, open, readFile, rename, rm, symlink } from 'node:fs/promises';
import { dirname, join } from 'node:path';

/** Something on disk belongs to someone else or was changed; never repaired. (compute-drivers 14.2) */
export class OwnershipConflict extends Error {
  override readonly name = 'OwnershipConflict';
}

/** Makes a private directory unless it exists. @throws OwnershipConflict when a link or a file stands there */
export const ensureDirectory = async (path: string): Promise<void> => {
  await mkdir(path, { recursive: true, mode: 0o700 });
  if (!(await lstat(path)).isDirectory()) throw new OwnershipConflict(`${path} is not a plain directory`);
};

/** Replaces a file by way of a temporary one, synced before and after the rename. */
export const writeDurably = async (path: string, text: string): Promise<void> => {
  const temporary = temporaryBeside(path);
  const file = await open(temporary, 'wx', 0o600);
  try {
    await file.writeFile(text);
    await file.sync();
  } finally {
    await file.close();
  }
  await rename(temporary, path);
  await syncDirectory(dirname(path));
};

/** Points a symbolic link at a target, replacing an earlier one atomically. */
export const linkDurably = async (path: string, target: string): Promise<void> => {
  const temporary = temporaryBeside(path);
  await symlink(target, temporary);
  await rename(temporary, path);
  await syncDirectory(dirname(path));
};

/** Removes files or whole directories; what is already gone is a success. */
export const removeDurably = async (...paths: readonly string[]): Promise<void> => {
  for (const path of paths) await rm(path, { recursive: true, force: true });
  for (const parent of new Set(paths.map(dirname))) await unlessMissing(syncDirectory(parent));
};

/** The text of a regular file, or undefined when there is none. @throws ELOOP when it is a link */
export const readText = (path: string): Promise<string | undefined> =>
  unlessMissing(readFile(path, { encoding: 'utf8', flag: constants.O_RDONLY | constants.O_NOFOLLOW }));

/** A record this driver wrote, or undefined when there is none. */
export const readRecord = async <T>(path: string): Promise<T | undefined> => {
  const text = await readText(path);
  return text === undefined ? undefined : (JSON.parse(text) as T);
};

/** The value, or undefined when the file it comes from does not exist. */
export const unlessMissing = async <T>(value: Promise<T>): Promise<T | undefined> => {
  try {
    return await value;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw error;
  }
};

const temporaryBeside = (path: string): string => join(dirname(path), `.${randomUUID()}.tmp`);

const syncDirectory = async (path: string): Promise<void> => {
  const directory = await open(path, constants.O_RDONLY);
  try {
    await directory.sync();
  } finally {
    await directory.close();
  }
};
