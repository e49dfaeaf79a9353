/** A process driver over a temporary root, with the truth about its children read from the operating system. */
import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { ComputeDriver } from '../../src/compute/driver.ts';
import { createProcessDriver } from '../../src/compute/process/process-driver.ts';
import type { ProcessDriverOptions } from '../../src/compute/process/process-driver.ts';
import type { DriverWorld } from '../contracts/compute-driver.ts';

export interface Child {
  readonly pid: number;
  readonly agentId: string;
  readonly revisionId: string;
}

export interface LogLine {
  readonly message: string;
  readonly facts: object;
}

export interface ProcessWorld extends DriverWorld {
  readonly root: string;
  readonly lines: readonly LogLine[];
  readonly children: () => Promise<readonly Child[]>;
  readonly reopen: (options?: Partial<ProcessDriverOptions>) => ComputeDriver;
}

/** Living gateways below a root, found by their home folder. */
export const childrenOf = async (root: string): Promise<readonly Child[]> => {
  const found: Child[] = [];
  for (const pid of (await readdir('/proc')).filter((name) => /^\d+$/.test(name))) {
    const [environment, command] = await Promise.all(['environ', 'cmdline'].map((file) => readFile(`/proc/${pid}/${file}`, 'utf8').catch(() => '')));
    if (!environment?.split('\0').some((line) => line.startsWith(`HOME=${root}/`))) continue;
    const [revisionId = '', agentId = ''] = (command ?? '').split('\0').filter(Boolean).reverse();
    found.push({ pid: Number(pid), agentId, revisionId });
  }
  return found;
};

export const openProcessWorld = async (options: Partial<ProcessDriverOptions> = {}): Promise<ProcessWorld> => {
  const root = await mkdtemp(join(tmpdir(), 'exuvia-process-'));
  const lines: LogLine[] = [];
  const write = (facts: object, message: string) => void lines.push({ message, facts });
  const log = { info: write, warn: write, error: write };
  const reopen = (more: Partial<ProcessDriverOptions> = {}) => createProcessDriver({ root, log, ...options, ...more });
  return {
    driver: reopen(),
    root,
    lines,
    documents: {
      good: {},
      held: (code) => ({ exuvia: { holdStartup: { code } } }),
      exiting: { exuvia: { exitAtStartup: 3 } },
    },
    children: () => childrenOf(root),
    living: async () => (await childrenOf(root)).map(({ agentId }) => agentId),
    replica: reopen,
    reopen,
    dispose: () => rm(root, { recursive: true, force: true }),
  };
};
