/** Migrations: each once, in order, whoever starts them at once, and never under a build that is too old. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest';
import { migrate, migrationsFolder } from '../../src/postgres/migrate.ts';
import { createDatabase, type TestDatabase } from '../support/database.ts';

let folder: string;
let database: TestDatabase;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'exuvia-migrations-'));
  const files = {
    '000001.sql': 'create table animal (name text); insert into animal values ($$lobster$$);',
    '000002.sql': '-- no statement is needed after the last one\nalter table animal add column legs int not null default 10',
    '000003.sql': 'insert into animal (name) values ($$crab$$);\n-- a comment may end the file',
  };
  for (const [file, sql] of Object.entries(files)) await writeFile(join(folder, file), sql);
});
afterAll(() => rm(folder, { recursive: true }));

beforeEach(async () => {
  database = await createDatabase();
  await database.pool.query('drop table migration');
});

const animals = async () => (await database.pool.query('select name, legs from animal order by name')).rows as unknown[];
const both = [
  { name: 'crab', legs: 10 },
  { name: 'lobster', legs: 10 },
];

it('runs each file once, in order', async () => {
  expect(await migrate(database.url, folder)).toEqual([1, 2, 3]);
  expect(await migrate(database.url, folder)).toEqual([]);
  expect(await animals()).toEqual(both);
});

it('is safe from two processes at once, and from twenty callers', async () => {
  const script = `
    import { migrate } from '${join(import.meta.dirname, '../../src/postgres/migrate.ts')}';
    console.log(JSON.stringify(await migrate(process.argv[1], process.argv[2])));`;
  const run = async (): Promise<readonly number[]> => {
    const child = spawn(process.execPath, ['--input-type=module', '-e', script, database.url, folder], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    const [output] = await Promise.all([child.stdout.setEncoding('utf8').toArray(), once(child, 'exit')]);
    return JSON.parse(output.join('')) as number[];
  };
  const callers = Array.from({ length: 20 }, () => migrate(database.url, folder));
  const ran = await Promise.all([run(), run(), ...callers]);
  expect(ran.flat()).toEqual([1, 2, 3]);
  expect(await animals()).toEqual(both);
});

it('refuses a database that is newer than the build, and changes nothing', async () => {
  await migrate(database.url, folder);
  await database.pool.query('insert into migration (number) values (4)');
  await expect(migrate(database.url, folder)).rejects.toThrow(
    'The database is newer than this build: it has migration 4, this build knows 3; start a newer build',
  );
});

it('undoes a file that fails, names it, and goes on from there', async () => {
  const broken = await mkdtemp(join(folder, 'broken-'));
  await writeFile(join(broken, '000001.sql'), 'create table animal (name text);');
  await writeFile(join(broken, '000002.sql'), 'alter table animal add column legs int; select no_such_column from animal;');
  await expect(migrate(database.url, broken)).rejects.toThrow(/^The migration 000002\.sql failed: .*no_such_column/);
  await writeFile(join(broken, '000002.sql'), 'alter table animal add column legs int;');
  expect(await migrate(database.url, broken)).toEqual([2]);
});

it('has the product\'s own files numbered without a gap', async () => {
  const files = (await readdir(migrationsFolder)).sort();
  expect(files).toEqual(files.map((_, index) => `${`${index + 1}`.padStart(6, '0')}.sql`));
});
