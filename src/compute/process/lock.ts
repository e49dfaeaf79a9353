/** A lock file between processes of one host: held by a living process, taken over only from a dead one. */
import { randomUUID } from 'node:crypto';
import { link, unlink, writeFile } from 'node:fs/promises';
import { setTimeout as delay } from 'node:timers/promises';
import { readText, unlessMissing } from './disk.ts';
import { identityOf, isAlive } from './process-identity.ts';
import type { ProcessIdentity } from './process-identity.ts';

interface LockRecord {
  /** Of this one acquisition. */
  readonly id: string;
  readonly holder: ProcessIdentity;
}

const retryMs = 5;

/**
 * Waits until the lock at `path` is ours and returns its release. A frozen holder keeps it: waiting is then ended by
 * `signal`. @throws AbortError
 */
export const takeLock = async (path: string, signal?: AbortSignal): Promise<() => Promise<void>> => {
  const holder = identityOf(process.pid);
  if (holder === undefined) throw new Error('This process cannot read its own identity');
  const id = randomUUID();
  const claim = `${path}.${id}`;
  await writeFile(claim, JSON.stringify({ id, holder } satisfies LockRecord), { mode: 0o600, flag: 'wx' });
  try {
    while (!(await linked(claim, path))) {
      signal?.throwIfAborted();
      const found = await readLock(path);
      if (found?.dead === true) await breakLock(path, found.id, signal);
      else if (found !== undefined) await delay(retryMs, undefined, { ...(signal && { signal }) });
    }
  } finally {
    await unlink(claim);
  }
  return () => unlink(path);
};

interface FoundLock {
  readonly id: string;
  readonly dead: boolean;
}

const readLock = async (path: string): Promise<FoundLock | undefined> => {
  const text = await readText(path);
  if (text === undefined) return undefined;
  try {
    const { id, holder } = JSON.parse(text) as LockRecord;
    return { id, dead: !isAlive(holder) };
  } catch {
    // A claim is whole before it is linked, so only a power cut can leave this: nobody of this boot holds it.
    return { id: 'unreadable', dead: true };
  }
};

const linked = async (claim: string, path: string): Promise<boolean> => {
  try {
    await link(claim, path);
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') return false;
    throw error;
  }
};

/** Only the holder of a lock named after the dead acquisition may remove it, so a fresh lock is never removed instead. */
const breakLock = async (path: string, deadId: string, signal?: AbortSignal): Promise<void> => {
  const release = await takeLock(`${path}.break-${deadId}`, signal);
  try {
    const found = await readLock(path);
    if (found?.dead === true && found.id === deadId) await unlessMissing(unlink(path));
  } finally {
    await release();
  }
};
