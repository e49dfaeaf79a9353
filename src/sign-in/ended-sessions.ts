/** What the history says of sessions that have ended, for a database that may have forgotten it. (failure scenario 9) */
import { auditEvents } from '../audit/messages.ts';
import type { EventStore, Position, StoredEvent } from '../event-store/event-store.ts';
import type { SessionRows } from './sessions.ts';

const pageLimit = 1_000;

/** A session that had ended and was alive again must end: its key, or where an earlier build recorded none, its person. */
const endedBy = (stored: StoredEvent): { readonly sessionKey?: string | undefined; readonly principalId: string } => {
  const { event } = auditEvents.decode(stored);
  return event.data as { readonly sessionKey?: string; readonly principalId: string };
};

/**
 * Ends again every session that somebody has ended after a position; answers how many were alive. May run twice.
 * @throws StoreUnavailable
 */
export const endSessionsSince =
  ({ store, prefix, sessionRows }: { readonly store: Pick<EventStore, 'readAll'>; readonly prefix: string; readonly sessionRows: Pick<SessionRows, 'eraseMany'> }) =>
  async (position: Position | null): Promise<number> => {
    let count = 0;
    for (let [from, end] = [position, false]; !end; ) {
      const page = await store.readAll(from, { streamPrefix: `${prefix}audit-` }, pageLimit);
      const ended = page.events.filter(({ type }) => type === 'SignedOut').map(endedBy);
      if (ended.length > 0)
        count += await sessionRows.eraseMany({
          sessionKeys: ended.flatMap(({ sessionKey }) => sessionKey ?? []),
          principalIds: ended.flatMap(({ sessionKey, principalId }) => (sessionKey === undefined ? [principalId] : [])),
        });
      [from, end] = [page.position, page.end];
    }
    return count;
  };
