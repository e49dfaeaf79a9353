/** What a request left in the history, read from the event table. */
import type { Metadata } from '../../src/kernel/event.ts';
import type { TestDatabase } from './database.ts';

export interface RecordedEvent {
  readonly stream: string;
  readonly type: string;
  readonly data: Readonly<Record<string, unknown>>;
  readonly metadata: Metadata;
}

interface Row {
  readonly stream: string;
  readonly type: string;
  readonly data: string;
  readonly metadata: string;
}

const recorded = ({ stream, type, data, metadata }: Row): RecordedEvent => ({ stream, type, data: JSON.parse(data) as RecordedEvent['data'], metadata: JSON.parse(metadata) as Metadata });

/** The events of one request, in order. */
export const eventsOf = async ({ pool }: TestDatabase, requestId: string): Promise<readonly RecordedEvent[]> => {
  const { rows } = await pool.query<Row>(`select stream, type, data, metadata from event where metadata::jsonb ->> 'requestId' = $1 order by position`, [requestId]);
  return rows.map(recorded);
};

/** Gives, each time it is called, the events of everybody since the time before, in order; the first time all of them. */
export const followEvents = ({ pool }: TestDatabase): (() => Promise<readonly RecordedEvent[]>) => {
  let passed = '0';
  return async () => {
    const { rows } = await pool.query<Row & { readonly position: string }>('select position::text, stream, type, data, metadata from event where event.position > $1 order by event.position', [passed]);
    passed = rows.at(-1)?.position ?? passed;
    return rows.map(recorded);
  };
};

/** The audit records among them. */
export const auditOf = (events: readonly RecordedEvent[]) => events.flatMap(({ metadata: { audit } }) => (audit === undefined ? [] : [audit]));
