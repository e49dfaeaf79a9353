/** The loopback EventStoreDB as a program. */
import { startEventstoredb } from '../support/eventstoredb/server.ts';

const server = await startEventstoredb();
process.on('SIGTERM', () => void server.close().then(() => process.exit(0)));
process.stdout.write(`loopback ready on ${server.url}\n`);
