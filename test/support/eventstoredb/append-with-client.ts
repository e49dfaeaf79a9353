/** A process that appends once with the vendor's client as it comes, and stays for a second answer: `<url> <stream>`. */
import { EventStoreDBClient, jsonEvent } from '@eventstore/db-client';

const [url, stream] = process.argv.slice(2);
await EventStoreDBClient.connectionString(url!).appendToStream(stream!, jsonEvent({ type: 'SomethingHappened', data: {} }));
setTimeout(() => process.exit(0), 2_000);
