/**
 * Brings a database to the shape this build needs: plain SQL files `000001.sql`, `000002.sql` … in order, each once.
 *
 * By hand, because node-pg-migrate 9 has no place to refuse a newer database under the lock it takes, and brings 35 packages.
 */
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { Fault } from '../kernel/errors.ts';
import { openClient } from './pool.ts';

/** Any number that nothing else in the database locks. */
const migrationLock = 7_236_001;

/** The folder of the product's own migrations. */
export const migrationsFolder = join(import.meta.dirname, 'migrations');

/**
 * Runs the missing files of `folder`, each in its own transaction, and returns their numbers. Any number of processes may start this
 * at once: one works, the others wait and find nothing to do. Throws a Fault when the database is newer than this build.
 */
export const migrate = async (url: string, folder: string = migrationsFolder): Promise<readonly number[]> => {
  const files = await numberedFiles(folder);
  const known = files.at(-1)?.number ?? 0;
  const client = await openClient({ url, applicationName: 'exuvia migrate', statementTimeoutMs: 0 });
  try {
    await client.query('select pg_advisory_lock($1)', [migrationLock]);
    await client.query(
      'create table if not exists migration (number int primary key, applied_at timestamptz not null default now())',
    );
    const { rows } = await client.query<{ newest: number }>('select coalesce(max(number), 0) as newest from migration');
    const newest = rows[0]?.newest ?? 0;
    if (newest > known)
      throw new Fault(
        `The database is newer than this build: it has migration ${newest}, this build knows ${known}; start a newer build`,
      );
    const missing = files.filter(({ number }) => number > newest);
    for (const { file, number } of missing) {
      const sql = await readFile(join(folder, file), 'utf8');
      // One message is one transaction, so a file and its row stand or fall together.
      await client.query(`${sql}\n;insert into migration (number) values (${number})`).catch((error: Error) => {
        throw new Fault(`The migration ${file} failed: ${error.message}`, { cause: error });
      });
    }
    return missing.map(({ number }) => number);
  } finally {
    await client.end();
  }
};

const numberedFiles = async (folder: string): Promise<readonly { file: string; number: number }[]> =>
  (await readdir(folder))
    .filter((file) => /^\d{6}\.sql$/.test(file))
    .sort()
    .map((file) => ({ file, number: Number.parseInt(file, 10) }));
