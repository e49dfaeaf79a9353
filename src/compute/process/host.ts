/** The host a root belongs to: two hosts must not run children from one shared folder. (failure scenario 37) */
import { mkdirSync, readFileSync } from 'node:fs';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { sha256 } from '../../kernel/canonical.ts';
import { writeDurably } from './disk.ts';

/** An identity of this host that survives reboots, digested. */
export const hostIdentity = (): string => {
  for (const path of ['/etc/machine-id', '/var/lib/dbus/machine-id']) {
    const machineId = textOf(path)?.trim();
    if (machineId !== undefined && machineId !== '') return sha256(`machine:${machineId}`);
  }
  return sha256(`hostname:${hostname()}`);
};

/**
 * Opens a root for this host and returns the claim to make before the first child starts.
 * @throws Error with one sentence for the operator when another host has children here
 */
export const openRoot = (root: string, identity: string): (() => Promise<void>) => {
  mkdirSync(root, { recursive: true, mode: 0o700 });
  const path = join(root, 'host.json');
  const refuseOther = (): boolean => {
    const text = textOf(path);
    if (text === undefined) return false;
    if ((JSON.parse(text) as { readonly host: string }).host === identity) return true;
    throw new Error(
      `The Agents in ${root} run on another host; start the worker there, or stop them there, remove ${path} and start again`,
    );
  };
  let claimed = refuseOther();
  return async () => {
    claimed ||= refuseOther();
    if (!claimed) await writeDurably(path, JSON.stringify({ host: identity }));
    claimed = true;
  };
};

const textOf = (path: string): string | undefined => {
  try {
    return readFileSync(path, 'utf8');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw error;
  }
};
