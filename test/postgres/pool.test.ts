/** A pool of connections: who hears of one that breaks. */
import { expect, it } from 'vitest';
import { openPool } from '../../src/postgres/pool.ts';

it('tells of a connection that broke, but not of one that was told to end', async () => {
  const heard: string[] = [];
  const pool = openPool({ url: 'postgresql://nobody@127.0.0.1:1/none', onError: ({ message }) => heard.push(message) });
  pool.emit('error', new Error('lost'), undefined);
  await pool.end();
  pool.emit('error', new Error('ended'), undefined);
  expect(heard).toEqual(['lost']);
});
