/** The lock file between processes: one holder, and only a dead one is succeeded. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { takeLock } from '../../src/compute/process/lock.ts';
import { identityOf } from '../../src/compute/process/process-identity.ts';

let folder: string;
let path: string;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'exuvia-lock-'));
  path = join(folder, 'lock');
});

afterEach(async () => {
  const left = await readdir(folder);
  await rm(folder, { recursive: true });
  expect(left, 'lock files left').toEqual([]);
});

it('has one holder at a time', async () => {
  let holders = 0;
  const work = async () => {
    const release = await takeLock(path);
    holders += 1;
    expect(holders).toBe(1);
    await new Promise(setImmediate);
    holders -= 1;
    await release();
  };
  await Promise.all(Array.from({ length: 8 }, work));
});

it('keeps waiting for a living holder until the signal ends the wait', async () => {
  const release = await takeLock(path);
  await expect(takeLock(path, AbortSignal.timeout(30))).rejects.toThrow();
  await release();
});

it('succeeds a dead holder, once, however many wait', async () => {
  const holder = spawn(process.execPath, ['-e', 'setInterval(() => {}, 1000)'], { stdio: 'ignore' });
  await writeFile(path, JSON.stringify({ id: 'left-behind', holder: identityOf(holder.pid!) }));
  holder.kill('SIGKILL');
  await once(holder, 'exit');
  let holders = 0;
  const work = async () => {
    const release = await takeLock(path);
    holders += 1;
    expect(holders).toBe(1);
    await new Promise(setImmediate);
    holders -= 1;
    await release();
  };
  await Promise.all(Array.from({ length: 4 }, work));
});

it('succeeds a holder that a power cut made unreadable', async () => {
  await writeFile(path, '');
  const release = await takeLock(path);
  await release();
});
