/** A lock on a folder that the operating system releases when its holder dies, however it dies. */
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { setTimeout as delay } from 'node:timers/promises';
import { Fault } from '../kernel/errors.ts';

/** How long a second start waits for a first one that is just ending. */
const patienceMs = 3_000;
const sqliteBusy = 5;

/**
 * Takes the folder for this process and returns the release. Throws a Fault when another process holds it.
 * Node has no file locks of its own; SQLite's are the kernel's, so a stale one cannot exist, where a pid in a
 * file could name a stranger after a restart.
 */
export const lockFolder = async (folder: string): Promise<() => void> => {
  const database = open(folder);
  for (const giveUpAt = Date.now() + patienceMs; ; await delay(50)) {
    try {
      database.exec('BEGIN EXCLUSIVE');
      return () => database.close();
    } catch (error) {
      if (isBusy(error) && Date.now() < giveUpAt) continue;
      database.close();
      throw isBusy(error) ? new Fault(`The data folder ${folder} is in use by another running Exuvia`) : unwritable(folder, error);
    }
  }
};

const open = (folder: string): DatabaseSync => {
  try {
    return new DatabaseSync(join(folder, 'lock'));
  } catch (error) {
    throw unwritable(folder, error);
  }
};

const isBusy = (error: unknown): boolean => (error as { errcode?: number }).errcode === sqliteBusy;

const unwritable = (folder: string, cause: unknown): Fault =>
  new Fault(`The data folder ${folder} cannot be written: ${(cause as Error).message}`, { cause });
