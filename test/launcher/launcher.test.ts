/** The launcher: which Node runs, what passes through it, and that neither end outlives the other. */
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { cp, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { afterAll, beforeAll, expect, it, vi } from 'vitest';

const root = join(import.meta.dirname, '../..');
const deadline = { timeout: 30_000, interval: 25 };

/** Says its version and pid, then lives until a signal or the loss of its launcher, and says which. */
const program = `
import { onLauncherGone } from '${join(root, 'src/launcher-link.ts')}';
const alive: NodeJS.Timeout = setInterval(() => {}, 1_000);
const end = (why: string) => { console.log(why); clearInterval(alive); process.exitCode = 7; };
for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP'] as const) process.once(signal, () => end(signal));
onLauncherGone(() => end('launcher gone'));
console.log(process.versions.node, process.pid);
`;

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'exuvia-launcher-'));
  await writeFile(join(folder, 'program.ts'), program);
  await writeFile(join(folder, 'package.json'), '{"type":"module"}');
});
afterAll(() => rm(folder, { recursive: true }));

const linesOf = (child: ChildProcess): string[] => {
  const lines: string[] = [];
  createInterface(child.stdout!).on('line', (line) => lines.push(line));
  return lines;
};

const start = async (node = process.execPath) => {
  const child = spawn(node, [join(root, 'bin/run.js'), join(folder, 'program.ts')], { stdio: ['ignore', 'pipe', 'inherit'] });
  const lines = linesOf(child);
  await vi.waitFor(() => expect(lines).toHaveLength(1), deadline);
  const [version = '', pid = ''] = lines[0]!.split(' ');
  return { child, lines, version, pid: Number(pid) };
};

it.each(['SIGTERM', 'SIGINT', 'SIGHUP'] as const)('passes %s on and ends with the code of the child', async (signal) => {
  const { child, lines } = await start();
  child.kill(signal);
  expect(await once(child, 'close')).toEqual([7, null]);
  expect(lines[1]).toBe(signal);
});

it('ends by the signal that ended the child', async () => {
  const { child, pid } = await start();
  process.kill(pid, 'SIGKILL');
  expect(await once(child, 'close')).toEqual([null, 'SIGKILL']);
});

it('takes the child along when it is killed', async () => {
  const { child, lines } = await start();
  child.kill('SIGKILL');
  await once(child, 'exit');
  await vi.waitFor(() => expect(lines[1]).toBe('launcher gone'), deadline);
});

it('ends the child when the npm that started it is killed', async () => {
  const npm = spawn(
    process.execPath,
    ['-e', `require('child_process').spawn(process.execPath, process.argv.slice(1), { stdio: 'inherit' })`].concat(
      join(root, 'bin/run.js'),
      join(folder, 'program.ts'),
    ),
    { stdio: ['ignore', 'pipe', 'inherit'], env: { ...process.env, npm_lifecycle_event: 'start' } },
  );
  const lines = linesOf(npm);
  await vi.waitFor(() => expect(lines).toHaveLength(1), deadline);
  npm.kill('SIGKILL');
  await vi.waitFor(() => expect(lines[1]).toBe('SIGTERM'), deadline);
});

it('drains when npm is told to stop, because the script replaces the shell', async () => {
  const { scripts } = JSON.parse(await readFile(join(root, 'package.json'), 'utf8')) as { scripts: Record<string, string> };
  expect(scripts['start']).toBe('exec node bin/exuvia.js serve');
  const start = `exec node ${join(root, 'bin/run.js')} program.ts`;
  await writeFile(join(folder, 'package.json'), JSON.stringify({ type: 'module', scripts: { start } }));
  const npm = spawn('npm', ['start', '--silent'], { cwd: folder, stdio: ['ignore', 'pipe', 'inherit'] });
  const lines = linesOf(npm);
  await vi.waitFor(() => expect(lines).toHaveLength(1), deadline);
  npm.kill('SIGTERM');
  expect(await once(npm, 'close')).toEqual([7, null]);
  expect(lines[1]).toBe('SIGTERM');
});

/** Makes a Node say that it is an old one. */
const pretendOld = async (): Promise<readonly string[]> => {
  const file = join(folder, 'old.cjs');
  await writeFile(file, `Object.defineProperty(process.versions, 'node', { value: '20.20.2' });`);
  return ['--require', file];
};

it('names Node 24 in one sentence when there is none', async () => {
  const alone = join(folder, 'alone');
  await cp(join(root, 'bin'), join(alone, 'bin'), { recursive: true });
  await writeFile(join(alone, 'package.json'), '{"type":"module"}');
  const child = spawn(process.execPath, [...(await pretendOld()), join(alone, 'bin/exuvia.js'), 'serve'], {
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const [said, ended] = await Promise.all([child.stderr.setEncoding('utf8').toArray(), once(child, 'exit')]);
  expect(ended).toEqual([1, null]);
  expect(said.join('')).toMatch(/^Exuvia needs Node 24 or newer: this is Node 20\.20\.2 [^\n]*\n$/);
});

it.runIf(process.platform === 'linux')('uses the packaged Node when the running one is too old', async () => {
  const child = spawn(process.execPath, [...(await pretendOld()), join(root, 'bin/run.js'), '--version', 'bin/run.js'], {
    cwd: root,
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const [said] = await Promise.all([child.stdout.setEncoding('utf8').toArray(), once(child, 'exit')]);
  expect(Number(/^v(\d+)/.exec(said.join(''))?.[1])).toBeGreaterThanOrEqual(24);
});
