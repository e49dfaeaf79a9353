/** The highest fencing number per Agent, kept where the effects happen and beyond the Agent's end. (failure scenario 24) */
import { join } from 'node:path';
import { FencedOff } from '../driver.ts';
import type { EffectOptions } from '../driver.ts';
import { ensureDirectory, OwnershipConflict, readRecord, writeDurably } from './disk.ts';
import { h12 } from './layout.ts';
import { takeLock } from './lock.ts';

interface FenceRecord {
  readonly agentId: string;
  readonly fence: number;
  /** The Agent was deleted; nothing may be made for it again. */
  readonly removed: boolean;
}

export interface Fences {
  /** Runs `body` as the only effect on this Agent on this host, outside any pass. */
  readonly alone: <T>(agentId: string, body: () => Promise<T>, signal?: AbortSignal) => Promise<T>;
  /**
   * Runs `body` alone under the fencing number of a pass, which is durable before `body` begins.
   * @throws FencedOff when a later pass was here, or, unless `removed` says what to do instead, when the Agent was removed
   */
  readonly fenced: <T>(agentId: string, options: EffectOptions, body: () => Promise<T>, removed?: () => Promise<T>) => Promise<T>;
  /** Inside `alone` or `fenced`: refuses every later pass that would make something for this Agent. */
  readonly remove: (agentId: string) => Promise<void>;
}

/** The fences below a driver's root. */
export const openFences = (root: string): Fences => {
  const folder = join(root, 'fences');
  const recordPath = (agentId: string) => join(folder, `${h12(agentId)}.json`);
  /** Calls in this process queue here, so that only one of them waits for the lock file. */
  const queues = new Map<string, Promise<unknown>>();

  const read = async (agentId: string): Promise<FenceRecord | undefined> => {
    const record = await readRecord<FenceRecord>(recordPath(agentId));
    if (record !== undefined && record.agentId !== agentId) throw new OwnershipConflict(`The fence of ${agentId} names another Agent`);
    return record;
  };

  const locked = async <T>(agentId: string, body: () => Promise<T>, signal?: AbortSignal): Promise<T> => {
    await ensureDirectory(folder);
    const release = await takeLock(join(folder, `${h12(agentId)}.lock`), signal);
    try {
      return await body();
    } finally {
      await release();
    }
  };

  const alone: Fences['alone'] = (agentId, body, signal) => {
    const turn = (queues.get(agentId) ?? Promise.resolve()).then(() => {
      signal?.throwIfAborted();
      return locked(agentId, body, signal);
    });
    const done = turn.catch(() => undefined).then(() => {
      if (queues.get(agentId) === done) queues.delete(agentId);
    });
    queues.set(agentId, done);
    return turn;
  };

  return {
    alone,
    fenced: (agentId, { fence, signal }, body, removed) =>
      alone(
        agentId,
        async () => {
          const record = await read(agentId);
          if (record?.removed === true) {
            if (removed === undefined) throw new FencedOff(`${agentId} was removed`);
            return removed();
          }
          if (record !== undefined && fence < record.fence) throw new FencedOff(`${agentId} was taken over by pass ${record.fence}`);
          if (record === undefined || fence > record.fence)
            await writeDurably(recordPath(agentId), JSON.stringify({ agentId, fence, removed: false } satisfies FenceRecord));
          return body();
        },
        signal,
      ),
    remove: async (agentId) => {
      const fence = (await read(agentId))?.fence ?? 0;
      await writeDurably(recordPath(agentId), JSON.stringify({ agentId, fence, removed: true } satisfies FenceRecord));
    },
  };
};
