/** Runs a program under Node 24 whatever Node was used to call it: plain JavaScript, because Node 20 cannot read TypeScript. */
import { spawn } from 'node:child_process';
import { createRequire } from 'node:module';
import { constants } from 'node:os';
import { dirname, join } from 'node:path';
import process from 'node:process';

const wantedMajor = 24;
const parentCheckMs = 250;
const major = (version) => Number(version.split('.')[0]);
const platform = process.platform === 'win32' ? 'win' : process.platform;
const packageName = `node-${platform}-${process.arch}`;

/** The running Node if it is new enough, else the packaged one by its path: npm 10 links none when several are named. */
const findNode = () => {
  if (major(process.versions.node) >= wantedMajor) return process.execPath;
  try {
    const manifest = createRequire(import.meta.url).resolve(`${packageName}/package.json`);
    return join(dirname(manifest), 'bin', platform === 'win' ? 'node.exe' : 'node');
  } catch {
    return undefined; // not installed for this platform
  }
};

const refuse = () => {
  process.stderr.write(
    `Exuvia needs Node ${wantedMajor} or newer: this is Node ${process.versions.node} and the package ${packageName}, which would bring one, is not usable here.\n`,
  );
  process.exit(1);
};

/**
 * Runs Node with `args`, passes signals on and ends as the child ends. The child holds an IPC channel
 * to this process: when it closes, the launcher is gone, even if it was killed (src/launcher-link.ts).
 */
export const launch = (args) => {
  const node = findNode();
  if (node === undefined) return refuse();
  const child = spawn(node, args, {
    stdio: ['inherit', 'inherit', 'inherit', 'ipc'],
    // Tools call `node` through their own `#!` line: let them find the same one.
    env: { ...process.env, PATH: `${dirname(node)}${platform === 'win' ? ';' : ':'}${process.env.PATH ?? ''}` },
  });
  child.on('error', refuse);
  for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP']) process.on(signal, () => child.kill(signal));
  // A killed npm leaves its scripts running, and the next start would find the data folder in use.
  const parent = process.ppid;
  if (process.env.npm_lifecycle_event !== undefined)
    setInterval(() => process.ppid === parent || child.kill('SIGTERM'), parentCheckMs);
  child.on('exit', (code, signal) => {
    if (signal === null) process.exit(code);
    process.removeAllListeners(signal);
    process.kill(process.pid, signal);
    // Still here: the signal is one that this process survives, as SIGPIPE. Answer as a shell would.
    process.exit(128 + constants.signals[signal]);
  });
};
