/**
 * A process that appends with the vendor's client as it comes, and stays for answers nobody waits for: `<url> <stream>`.
 * With a further URL it first begins an append there, and makes the other one once it is told to.
 */
import { EventStoreDBClient, jsonEvent } from '@eventstore/db-client';
import { once } from 'node:events';

const [url, stream, otherUrl] = process.argv.slice(2);
const append = (to: string) => EventStoreDBClient.connectionString(to).appendToStream(stream!, jsonEvent({ type: 'SomethingHappened', data: {} }));

const begun = otherUrl === undefined ? undefined : append(otherUrl).catch(() => {});
if (begun !== undefined) await once(process.stdin, 'data');
await append(url!).catch(() => {});
await begun;
process.stdout.write('settled\n');
setTimeout(() => process.exit(0), 2_000);
