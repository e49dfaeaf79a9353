/** What a request left in the history, read from the event table. */
import type { Metadata } from '../../src/kernel/event.ts';
import type { TestDatabase } from './database.ts';

export interface RecordedEvent {
  readonly stream: string;
  readonly type: string;
  readonly data: Readonly<Record<string, unknown>>;
  readonly metadata: Metadata;
}

/** The events of one request, in order. */
export const eventsOf = async ({ pool }: TestDatabase, requestId: string): Promise<readonly RecordedEvent[]> => {
  const { rows } = await pool.query<{ stream: string; type: string; data: string; metadata: string }>(
    `select stream, type, data, metadata from event where metadata::jsonb ->> 'requestId' = $1 order by position`,
    [requestId],
  );
  return rows.map(({ stream, type, data, metadata }) => ({ stream, type, data: JSON.parse(data) as RecordedEvent['data'], metadata: JSON.parse(metadata) as Metadata }));
};

/** The audit records among them. */
export const auditOf = (events: readonly RecordedEvent[]) => events.flatMap(({ metadata: { audit } }) => (audit === undefined ? [] : [audit]));
