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
  const database = new DatabaseSync(join(folder, 'lock'));
  for (const giveUpAt = Date.now() + patienceMs; ; await delay(50)) {
    try {
      database.exec('BEGIN EXCLUSIVE');
      return () => database.close();
    } catch (error) {
      if ((error as { errcode?: number }).errcode === sqliteBusy && Date.now() < giveUpAt) continue;
      database.close();
      if ((error as { errcode?: number }).errcode !== sqliteBusy) throw error;
      throw new Fault(`The data folder ${folder} is in use by another running Exuvia`);
    }
  }
};
