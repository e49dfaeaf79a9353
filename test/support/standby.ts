/** A standby: a second PostgreSQL server that follows an embedded one by streaming replication, can be cut off from it, and takes its place. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { appendFile, chown, cp, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { createInterface } from 'node:readline';
import { environment, install, own, packagedBinaries } from '../../src/postgres/binaries.ts';
import { openClient } from '../../src/postgres/pool.ts';
import { eventually } from './client.ts';

/** What the primary needs to be started with. */
export const replicated = { wal_level: 'replica', max_wal_senders: '4', wal_keep_size: '256MB' } as const;

export interface Standby {
  readonly url: string;
  /** Waits until everything the primary has committed is here as well. */
  caughtUp(): Promise<void>;
  /** From here on nothing of the primary arrives. */
  cutOff(): Promise<void>;
  /** Ends the recovery: a primary of its own, on the next timeline. */
  promote(): Promise<void>;
  stop(): Promise<void>;
}

const ask = async <Row extends object>(url: string, sql: string): Promise<Row[]> => {
  const client = await openClient({ url });
  try {
    return (await client.query<Row>(sql)).rows;
  } finally {
    await client.end();
  }
};

/** A base backup by the low-level way, since the packaged binaries hold no pg_basebackup. */
const backUp = async (url: string, from: string, to: string): Promise<void> => {
  const client = await openClient({ url });
  try {
    await client.query(`select pg_backup_start('standby', true)`);
    const wal = join(from, 'pg_wal');
    const isLeftOut = (path: string): boolean => basename(path) === 'postmaster.pid' || (path.startsWith(`${wal}/`) && /^[0-9A-F]{24}/.test(basename(path)));
    await cp(from, to, { recursive: true, filter: (path) => !isLeftOut(path) });
    const { rows } = await client.query<{ labelfile: string }>('select labelfile from pg_backup_stop(false)');
    await writeFile(join(to, 'backup_label'), rows[0]!.labelfile);
  } finally {
    await client.end();
  }
};

/** Starts a standby of the embedded server on a data folder, which was started as {@link replicated}. */
export const startStandby = async ({ url, dataDir }: { readonly url: string; readonly dataDir: string }): Promise<Standby> => {
  const folder = await mkdtemp(join(tmpdir(), 'exuvia-standby-'));
  const data = join(folder, 'data');
  await backUp(url, join(dataDir, 'postgres-18/data'), data);
  const [, password = '', host = ''] = /:([0-9a-f]+)@.*host=(.*)$/.exec(url) ?? [];
  await writeFile(join(data, 'standby.signal'), '');
  await appendFile(join(data, 'postgresql.auto.conf'), `primary_conninfo = 'host=${decodeURIComponent(host)} user=exuvia password=${password}'\n`);

  const { root, prefix, ids, owner } = await install(packagedBinaries(), dataDir);
  if (owner !== undefined) await chown(folder, owner, owner).then(() => own(data, owner));
  const [command = '', ...args] = [...prefix, join(root, 'bin/postgres'), '-D', data, '-k', folder, '-c', 'listen_addresses=', '-c', 'hot_standby=on', '-c', 'lc_messages=C', '-c', 'fsync=off'];
  const child = spawn(command, args, { stdio: ['ignore', 'ignore', 'pipe'], cwd: '/', env: environment, ...ids });
  const said: string[] = [];
  const ended = once(child, 'close');
  await new Promise<void>((resolve, reject) => {
    createInterface(child.stderr).on('line', (line) => {
      said.push(line);
      if (line.endsWith('ready to accept read-only connections')) resolve();
    });
    void ended.then(() => reject(new Error(said.join('\n'))));
  });

  const itself = url.replace(/host=.*$/, `host=${encodeURIComponent(folder)}`);
  const receivers = async () => (await ask<{ count: number }>(itself, 'select count(*)::integer as count from pg_stat_wal_receiver'))[0]!.count;
  return {
    url: itself,
    caughtUp: async () => {
      const [{ lsn }] = (await ask<{ lsn: string }>(url, 'select pg_current_wal_flush_lsn()::text as lsn')) as [{ lsn: string }];
      await eventually('a standby that has caught up', () => ask<{ there: boolean }>(itself, `select pg_last_wal_replay_lsn() >= '${lsn}'::pg_lsn as there`), ([row]) => row?.there === true);
    },
    cutOff: async () => {
      await ask(itself, `alter system set primary_conninfo = ''`);
      await ask(itself, 'select pg_reload_conf()');
      await eventually('a standby that is cut off', receivers, (count) => count === 0);
    },
    promote: async () => {
      await ask(itself, 'select pg_promote()');
    },
    stop: async () => {
      child.kill('SIGINT');
      await ended;
      await rm(folder, { recursive: true, force: true });
    },
  };
};
