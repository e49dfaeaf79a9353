/** A database of its own for a test file, copied from the migrated template. */
import { randomBytes } from 'node:crypto';
import type pg from 'pg';
import { inject } from 'vitest';
import { openClient, openPool } from '../../src/postgres/pool.ts';
import { withDatabase } from './database-url.ts';

export interface TestDatabase {
  readonly url: string;
  readonly pool: pg.Pool;
}

const opened: { readonly name: string; readonly pool: pg.Pool }[] = [];

const asAdmin = async (statement: string): Promise<void> => {
  const client = await openClient({ url: inject('cluster').url });
  await client.query(statement).finally(() => client.end());
};

const create = async (template: string): Promise<TestDatabase> => {
  const name = `exuvia_test_${randomBytes(6).toString('hex')}`;
  await asAdmin(`create database ${name} template ${template}`);
  const url = withDatabase(inject('cluster').url, name);
  const pool = openPool({ url });
  opened.push({ name, pool });
  return { url, pool };
};

/** Creates a migrated database; it is dropped after the file's tests, which fails if the file left a connection open. */
export const createDatabase = (): Promise<TestDatabase> => create(inject('cluster').template);

/** Another database with everything this one holds now, as a backup that was restored would. Nobody may be at work on it. */
export const copyDatabase = async ({ pool }: TestDatabase): Promise<TestDatabase> => {
  const name = opened.find((database) => database.pool === pool)!.name;
  // The pool's own idle connections; it makes new ones.
  await asAdmin(`select pg_terminate_backend(pid) from pg_stat_activity where datname = '${name}'`);
  return create(name);
};

/** Closes and drops what this file created. */
export const dropDatabases = async (): Promise<void> => {
  for (const { name, pool } of opened.splice(0)) {
    if (!pool.ended) await pool.end();
    await asAdmin(`drop database ${name}`);
  }
};
