/** A pool of connections: who hears of one that breaks, and what becomes of one whose server says nothing. */
import { expect, it } from 'vitest';
import { openPool } from '../../src/postgres/pool.ts';
import { createDatabase } from '../support/database.ts';
import { startTcpProxy } from '../support/tcp-proxy.ts';

it('tells of a connection that broke, but not of one that was told to end', async () => {
  const heard: string[] = [];
  const pool = openPool({ url: 'postgresql://nobody@127.0.0.1:1/none', onError: ({ message }) => heard.push(message) });
  pool.emit('error', new Error('lost'), undefined);
  await pool.end();
  pool.emit('error', new Error('ended'), undefined);
  expect(heard).toEqual(['lost']);
});

it('does not wait for a server that falls silent, and uses that connection no more', async () => {
  const proxy = await startTcpProxy((await createDatabase()).url);
  const pool = openPool({ url: proxy.url, max: 1, answerTimeoutMs: 300 });
  try {
    await pool.query('select');
    proxy.behave('swallow answers');
    await expect(pool.query('select')).rejects.toThrow('Query read timeout');
    proxy.behave('pass');
    expect((await pool.query('select 1 as one')).rows).toEqual([{ one: 1 }]);
  } finally {
    await pool.end();
    await proxy.close();
  }
});
