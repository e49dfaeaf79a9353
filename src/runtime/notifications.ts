/** PostgreSQL's notifications, for a whole process on one connection of its own. (architecture section 4) */
import { setTimeout as delay } from 'node:timers/promises';
import type { Client } from 'pg';
import { openClient } from '../postgres/pool.ts';

export interface Notifications {
  /** Calls the listener at every notification, and after every interruption, in which some may have been missed. The answer ends it. */
  on(channel: string, listener: () => void): () => void;
  close(): Promise<void>;
}

const retryMs = 200;

/** Listens on these channels, for ever. */
export const listen = (url: string, channels: readonly string[]): Notifications => {
  const listeners = new Map<string, Set<() => void>>(channels.map((channel) => [channel, new Set()]));
  const closing = new AbortController();
  let client: Client | undefined;
  const ring = (channel: string): void => {
    for (const listener of listeners.get(channel) ?? []) listener();
  };

  const session = async (): Promise<void> => {
    const opened = await openClient({ url, applicationName: 'exuvia notifications' });
    const ended = new Promise<void>((resolve) => opened.once('end', resolve));
    opened.on('error', () => {}); // 'end' follows
    client = opened;
    opened.on('notification', ({ channel }) => ring(channel));
    if (!closing.signal.aborted) {
      await opened.query(channels.map((channel) => `listen ${channel}`).join('; '));
      channels.forEach(ring);
    } else await opened.end();
    await ended;
  };

  const run = async (): Promise<void> => {
    while (!closing.signal.aborted) {
      await session().catch(() => client?.end()); // not reachable now: those who wait poll
      await delay(retryMs, undefined, { signal: closing.signal }).catch(() => {});
    }
  };

  const running = run();
  return {
    on: (channel, listener) => {
      const registered = listeners.get(channel)?.add(listener);
      if (registered === undefined) throw new RangeError(`Nobody listens on ${channel}`);
      return () => registered.delete(listener);
    },
    close: async () => {
      closing.abort();
      await client?.end();
      await running;
    },
  };
};
