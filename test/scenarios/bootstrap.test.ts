/** Failure scenario 36: the birth of the Installation, by two replicas at once and across a crash. */
import { access, readdir, rename, rm, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, expect, it } from 'vitest';
import { startApplication } from '../../src/compose.ts';
import { readConfig } from '../../src/config.ts';
import { createLogger } from '../../src/telemetry/logger.ts';
import { storedEvents } from '../end-to-end/stored-history.ts';
import { newDataDir, readKey } from '../support/app.ts';
import { createClient } from '../support/client.ts';
import { createDatabase, type TestDatabase } from '../support/database.ts';

const folders: string[] = [];
const newFolder = async () => {
  const folder = await newDataDir();
  folders.push(folder);
  return folder;
};
afterAll(() => Promise.all(folders.map((folder) => rm(folder, { recursive: true }))));

const start = ({ url }: TestDatabase, dataDir: string) =>
  startApplication(readConfig({ PORT: '0', EXUVIA_DATA_DIR: dataDir, OCC_DATABASE_URL: url }), createLogger({ level: 'silent' }));

const filesOf = async (dataDir: string) => (await readdir(dataDir)).filter((name) => /^(admin|service-key)/.test(name)).sort();
const bothFiles = ['admin.json', 'service-key.json'];
const count = async ({ pool }: TestDatabase, table: string) => (await pool.query<{ count: number }>(`select count(*)::integer as count from ${table}`)).rows[0]!.count;

it('scenario 36: two replicas that start on empty stores make one administrator', async () => {
  const database = await createDatabase();
  const dataDirs = [await newFolder(), await newFolder()];
  const replicas = await Promise.all(dataDirs.map((dataDir) => start(database, dataDir)));
  try {
    expect((await storedEvents(database.pool)).filter(({ type }) => type === 'InstallationBootstrapped')).toHaveLength(1);
    expect([await count(database, 'account'), await count(database, 'service_key')]).toEqual([1, 1]);
    const files = await Promise.all(dataDirs.map(filesOf));
    expect(files.toSorted((one, other) => one.length - other.length)).toEqual([[], bothFiles]);
    const winner = dataDirs[files.findIndex(({ length }) => length > 0)]!;
    for (const name of bothFiles) expect((await stat(join(winner, name))).mode & 0o777).toBe(0o600);
    const key = await readKey(winner);
    for (const { origin } of replicas) {
      const { status, data } = await createClient(origin!, key).rest<{ name: string }[]>('GET', '/namespaces');
      expect({ status, names: data.map(({ name }) => name) }).toEqual({ status: 200, names: ['default'] });
    }
  } finally {
    await Promise.all(replicas.map((replica) => replica.close()));
  }
});

it('scenario 36: a crash between the event and the names of the files is finished by the next start', async () => {
  const database = await createDatabase();
  const dataDir = await newFolder();
  await (await start(database, dataDir)).close();
  const key = await readKey(dataDir);
  // What such a crash leaves; of the two names, the key's is given last.
  for (const crashed of [['service-key.json'], bothFiles]) {
    for (const name of crashed) await rename(join(dataDir, name), join(dataDir, `${name}.new`));
    const next = await start(database, dataDir);
    await next.close();
    expect(await filesOf(dataDir)).toEqual(bothFiles);
    expect(await readKey(dataDir)).toBe(key);
  }
});

it('scenario 36: what a crash before the event left is replaced, and never counts', async () => {
  const database = await createDatabase();
  const dataDir = await newFolder();
  for (const name of bothFiles) await writeFile(join(dataDir, `${name}.new`), '{"data":{"id":"key_of-a-lost-try","key":"lost"}}');
  const application = await start(database, dataDir);
  try {
    expect(await filesOf(dataDir)).toEqual(bothFiles);
    await expect(access(join(dataDir, 'service-key.json.new'))).rejects.toThrow();
    expect((await createClient(application.origin!, await readKey(dataDir)).rest('GET', '/namespaces')).status).toBe(200);
    expect((await createClient(application.origin!, 'lost').rest('GET', '/namespaces')).status).toBe(401);
  } finally {
    await application.close();
  }
});
