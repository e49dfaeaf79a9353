/** The one LISTEN connection that all subscriptions of a process share. */
import { setTimeout as delay } from 'node:timers/promises';
import type { Client } from 'pg';
import { createBell } from '../follow.ts';
import type { Bell } from '../follow.ts';
import { connect, disconnect } from './connection.ts';

const retryMs = 200;

export interface Listener extends Bell {
  close(): Promise<void>;
}

/**
 * Listens from the first subscription on, and again whenever the connection is lost. Rings at every
 * notification, and after every reconnection for those that were missed.
 */
export const createListener = (url: string): Listener => {
  const bell = createBell();
  const closing = new AbortController();
  let client: Client | undefined;
  let running: Promise<void> | undefined;

  const listen = async (): Promise<void> => {
    while (!closing.signal.aborted) {
      const { promise: lost, resolve: onLost } = Promise.withResolvers<unknown>();
      try {
        client = await connect({ url, applicationName: 'exuvia listen' }, onLost);
        if (closing.signal.aborted) break;
        client.on('notification', bell.ring);
        await client.query('listen event_appended');
        bell.ring();
        await lost;
      } catch {
        // Not reachable now: subscriptions poll until it is.
      } finally {
        if (client !== undefined) disconnect(client);
      }
      await delay(retryMs, undefined, { signal: closing.signal }).catch(() => {});
    }
  };

  return {
    on(listener) {
      running ??= listen();
      return bell.on(listener);
    },
    async close() {
      closing.abort();
      if (client !== undefined) disconnect(client);
      await running;
    },
  };
};
