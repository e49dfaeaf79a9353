/** Before all tests: one PostgreSQL server with a migrated template database; after them: everything gone. */
import { randomBytes } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TestProject } from 'vitest/node';
import { startEmbedded, type EmbeddedServer } from '../../src/postgres/embedded.ts';
import { migrate } from '../../src/postgres/migrate.ts';
import { openClient } from '../../src/postgres/pool.ts';
import { withDatabase } from './database-url.ts';

declare module 'vitest' {
  interface ProvidedContext {
    readonly cluster: {
      /** A role that may create databases; the database itself is not to be touched. */
      readonly url: string;
      readonly template: string;
    };
  }
}

/** Nothing outlives the run, so nothing needs to reach the disk. */
const volatile = {
  fsync: 'off',
  synchronous_commit: 'off',
  full_page_writes: 'off',
  max_connections: '200',
};

export default async ({ provide }: TestProject): Promise<() => Promise<void>> => {
  const given = process.env['OCC_TEST_DATABASE_URL'];
  const dataDir = await mkdtemp(join(tmpdir(), 'exuvia-test-'));
  const server = given === undefined ? await startEmbedded({ dataDir, settings: volatile }) : undefined;
  const url = given ?? (server as EmbeddedServer).url;
  const template = `exuvia_template_${randomBytes(6).toString('hex')}`;
  const admin = await openClient({ url });
  await admin.query(`create database ${template}`);
  await migrate(withDatabase(url, template));
  provide('cluster', { url, template });
  return async () => {
    await admin.query(`drop database ${template}`);
    await admin.end();
    await server?.stop();
    await rm(dataDir, { recursive: true });
  };
};
