/** The in-memory event store of the tests, plain and with the quirks of EventStoreDB. */
import { describeEventStore } from '../contracts/event-store.ts';
import { createInMemoryEventStore, createLog } from '../support/in-memory-event-store.ts';
import { withStoreQuirks } from '../support/store-quirks.ts';

describeEventStore('in memory', async () => {
  const log = createLog();
  return () => createInMemoryEventStore(log);
});

describeEventStore('in memory, with the quirks of EventStoreDB', async () => {
  const log = createLog();
  return () => withStoreQuirks(createInMemoryEventStore(log));
});
