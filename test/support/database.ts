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

/** Creates a migrated database; it is dropped after the file's tests, which fails if the file left a connection open. */
export const createDatabase = async (): Promise<TestDatabase> => {
  const { url: clusterUrl, template } = inject('cluster');
  const name = `exuvia_test_${randomBytes(6).toString('hex')}`;
  await asAdmin(`create database ${name} template ${template}`);
  const url = withDatabase(clusterUrl, name);
  const pool = openPool({ url });
  opened.push({ name, pool });
  return { url, pool };
};

/** Closes and drops what this file created. */
export const dropDatabases = async (): Promise<void> => {
  for (const { name, pool } of opened.splice(0)) {
    if (!pool.ended) await pool.end();
    await asAdmin(`drop database ${name}`);
  }
};
