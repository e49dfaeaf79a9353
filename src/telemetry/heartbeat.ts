/** The sign of life of a process that opens no port: a file in the data folder, written again and again while all is well. */
import { stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';

const everyMs = 2_000;
/** A heartbeat older than this is none. */
export const heartbeatLimitMs = 15_000;

const fileIn = (dataDir: string): string => join(dataDir, 'heartbeat');

/** Writes the first heartbeat, and one every two seconds while `isWell` says so. Returns the end of it. */
export const startHeartbeat = async (dataDir: string, isWell: () => Promise<boolean>): Promise<() => Promise<void>> => {
  const ending = new AbortController();
  const beat = async (): Promise<void> => {
    if (await isWell()) await writeFile(fileIn(dataDir), `${new Date().toISOString()}\n`);
  };
  // What cannot be asked or written is told by the heartbeat that is missing.
  const tryToBeat = (): Promise<void> => beat().catch(() => {});
  const run = async (): Promise<void> => {
    for (;;) {
      await delay(everyMs, undefined, { signal: ending.signal });
      await tryToBeat();
    }
  };
  await tryToBeat();
  const done = run().catch(() => {});
  return () => {
    ending.abort();
    return done;
  };
};

/** How long ago the last heartbeat was; undefined when there never was one. */
export const heartbeatAgeMs = async (dataDir: string): Promise<number | undefined> => {
  const found = await stat(fileIn(dataDir)).catch(() => undefined);
  return found === undefined ? undefined : Date.now() - found.mtimeMs;
};
