/** What the history says of sessions that have ended, for a database that may have forgotten it. (failure scenario 9) */
import { auditEvents } from '../audit/messages.ts';
import type { EventStore, Position, StoredEvent } from '../event-store/event-store.ts';
import type { SessionRows } from './sessions.ts';

const pageLimit = 1_000;

interface Ended {
  /** An earlier build recorded none: then every session of the person counts. */
  readonly sessionKey?: string;
  readonly principalId: string;
}

/** What must not live again; undefined where this build cannot tell. */
const endedBy = (stored: StoredEvent): Ended | undefined => {
  try {
    return auditEvents.decode(stored).event.data as Ended;
  } catch {
    return undefined; // nobody would lead if one event could stop this
  }
};

/**
 * Ends again every session that somebody has ended after a position, and all of them where it cannot be read which one
 * that was; answers how many were alive. May run twice.
 * @throws StoreUnavailable
 */
export const endSessionsSince =
  ({ store, prefix, sessionRows }: { readonly store: Pick<EventStore, 'readAll'>; readonly prefix: string; readonly sessionRows: Pick<SessionRows, 'eraseMany' | 'eraseAll'> }) =>
  async (position: Position | null): Promise<number> => {
    let count = 0;
    for (let [from, end] = [position, false]; !end; ) {
      const page = await store.readAll(from, { streamPrefix: `${prefix}audit-` }, pageLimit);
      const found = page.events.filter(({ type }) => type === 'SignedOut').map(endedBy);
      const ended = found.filter((one) => one !== undefined);
      if (ended.length < found.length) count += await sessionRows.eraseAll();
      else if (ended.length > 0)
        count += await sessionRows.eraseMany({
          sessionKeys: ended.flatMap(({ sessionKey }) => sessionKey ?? []),
          principalIds: ended.flatMap(({ sessionKey, principalId }) => (sessionKey === undefined ? [principalId] : [])),
        });
      [from, end] = [page.position, page.end];
    }
    return count;
  };
