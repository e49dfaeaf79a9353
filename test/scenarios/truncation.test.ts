/** Failure scenarios 20 and 30 for the whole product: a start that an event store would betray, and streams that lost their beginning. */
import { rm } from 'node:fs/promises';
import { EventStoreDBClient } from '@eventstore/db-client';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { eventStore } from '../../src/aggregates.ts';
import { systemContext } from '../../src/installation/bootstrap.ts';
import { openEventStore, openStreams, prefixOf } from '../../src/open-stores.ts';
import { createInstallationRow } from '../../src/postgres/private-rows.ts';
import type { Streams } from '../../src/runtime/streams.ts';
import { newDataDir, startTestApplication } from '../support/app.ts';
import { createDatabase, type TestDatabase } from '../support/database.ts';
import { startEventstoredb, type Eventstoredb } from '../support/eventstoredb/server.ts';

let server: Eventstoredb;
let dataDir: string;
beforeAll(async () => {
  server = await startEventstoredb({ users: { admin: { password: 'changeit', groups: ['$admins'] }, exuvia: { password: 's3cret' } } });
  dataDir = await newDataDir();
});
afterAll(async () => {
  await server.close();
  await rm(dataDir, { recursive: true, force: true });
});

const installationOf = ({ pool }: TestDatabase) => createInstallationRow(pool).id();

/** Uses the streams of a database's Installation as the product would. */
const onStreams = async <T>(url: string, database: TestDatabase, use: (streams: Streams) => Promise<T>): Promise<T> => {
  await using stack = new AsyncDisposableStack();
  const store = await openEventStore(url, stack, database);
  const { streams } = await openStreams(store, database, await installationOf(database), stack);
  return await use(streams);
};

/** Folds the stream that tells of openings. */
const foldOpenings = (url: string, database: TestDatabase) => onStreams(url, database, (streams) => streams.load(eventStore, ''));

describe('on EventStoreDB', () => {
  const asAdmin = () => EventStoreDBClient.connectionString(server.urlAs('admin'));
  const anyway = { deadline: 5_000 };
  let database: TestDatabase;
  /** A start that may be the first one, and its end. */
  const start = async () => (await startTestApplication({ database, dataDir, env: { OCC_EVENTSTORE_URL: server.urlAs('exuvia') } })).close();
  beforeAll(async () => {
    database = await createDatabase();
  });

  it('scenario 20: a start whose user may not read $all is refused; with the right it begins a history', async () => {
    await expect(start()).rejects.toThrow('The event store does not let its user exuvia read $all: it lacks the right $r on $all');
    await asAdmin().setStreamMetadata('$all', { acl: { readRoles: ['exuvia'] } }, anyway);
    await start();
  });

  it('scenario 30: a start is refused while a stream is set to be truncated, and goes on once it is not', async () => {
    const stream = `${prefixOf(await installationOf(database))}iam`;
    await asAdmin().setStreamMetadata(stream, { maxCount: 100_000 }, anyway);
    await expect(start()).rejects.toThrow(`The event store would let events of stream ${stream} go: $maxCount is set in its metadata and must be taken out`);
    await asAdmin().setStreamMetadata(stream, {}, anyway);
    await start();
  });

  it('scenario 30: a stream that lost its beginning is not folded', async () => {
    const stream = `${prefixOf(await installationOf(database))}store`;
    await foldOpenings(server.urlAs('exuvia'), database);
    await asAdmin().setStreamMetadata(stream, { truncateBefore: 1 }, anyway);
    await expect(foldOpenings(server.urlAs('exuvia'), database)).rejects.toThrow(`Stream ${stream} has a gap at revision 0`);
  });
});

it('scenario 30: on PostgreSQL a stream that lost its beginning, or an event in its midst, is not folded either', async () => {
  for (const revision of [0, 1]) {
    const database = await createDatabase();
    const installationId = await installationOf(database);
    const stream = `${prefixOf(installationId)}store`;
    await onStreams(database.url, database, async (streams) => {
      await streams.execute(eventStore, '', { type: 'OpenStore', storeId: 'one' }, systemContext(installationId));
      for (const number of [1, 2]) await streams.execute(eventStore, '', { type: 'OpenDatabase', number, found: number }, systemContext(installationId));
    });
    await foldOpenings(database.url, database);
    await database.pool.query('alter table event disable trigger all');
    await database.pool.query('delete from event where stream = $1 and revision = $2', [stream, revision]);
    await expect(foldOpenings(database.url, database)).rejects.toThrow(`Stream ${stream} has a gap after revision ${revision - 1}`);
  }
});
