/** A process that appends to one stream until it is killed, and says when its first append is stored. */
import { randomUUID } from 'node:crypto';
import { noStream } from '../../src/event-store/event-store.ts';
import { createPostgresEventStore } from '../../src/event-store/postgres.ts';
import { openPool } from '../../src/postgres/pool.ts';

const [url, stream] = process.argv.slice(2) as [string, string];
const store = createPostgresEventStore({ url, pool: openPool({ url }), appendBudgetMs: 60_000 });
const event = () => ({ id: randomUUID(), type: 'SomethingHappened', data: '{}', metadata: '{}' });

let { revision } = await store.append(stream, noStream, [event()]);
console.log('appending');
for (;;) ({ revision } = await store.append(stream, revision, Array.from({ length: 20 }, event)));
