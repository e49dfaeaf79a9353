/** Follows one started gateway until its start is settled, and on until its process ends. */
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { setTimeout as delay } from 'node:timers/promises';
import { endGroup, isAlive } from './process-identity.ts';
import type { ProcessIdentity } from './process-identity.ts';
import type { GatewayState } from './probe.ts';

/** How a process ended: `exit-<n>` or `signal-<NAME>`, undefined for an adopted one, whose exit nobody could collect. */
export type ExitDetail = string | undefined;

export interface Watched {
  readonly identity: ProcessIdentity;
  /** Present when this process started it; an adopted one can only be polled. */
  readonly child?: ChildProcess;
  readonly graceMs: number;
  readonly probe: () => Promise<GatewayState>;
  readonly onSettled: (state: GatewayState) => void;
  readonly onExit: (detail: ExitDetail) => Promise<void>;
}

const shortestPollMs = 10;
const longestPollMs = 500;
/** A child of ours wakes us by its exit; this only bounds a lost wake-up. */
const ownChildRecheckMs = 60_000;

/** Runs until the process has ended or `signal` is aborted. */
export const watchGateway = async ({ identity, child, graceMs, probe, onSettled, onExit }: Watched, signal: AbortSignal): Promise<void> => {
  const exited = new AbortController();
  child?.once('exit', () => exited.abort());
  const wake = AbortSignal.any([signal, exited.signal]);
  const beganAt = performance.now();
  let settled = false;

  while (!signal.aborted && isAlive(identity)) {
    if (!settled) {
      const state = await probe();
      if (state.kind === 'foreign') await endGroup(identity, graceMs, signal);
      else if (state.kind !== 'starting') {
        settled = true;
        if (!signal.aborted) onSettled(state);
      }
    }
    const age = performance.now() - beganAt;
    const startPollMs = Math.min(longestPollMs, Math.max(shortestPollMs, age / 20));
    const pauseMs = !settled ? startPollMs : child ? ownChildRecheckMs : longestPollMs;
    await delay(pauseMs, undefined, { signal: wake }).catch(() => undefined);
  }
  if (!signal.aborted) await onExit(await exitDetail(child));
};

/** How a child that is known to have ended did so. */
export const exitDetail = async (child: ChildProcess | undefined): Promise<ExitDetail> => {
  if (child === undefined) return undefined;
  if (child.exitCode === null && child.signalCode === null) await once(child, 'exit');
  return child.signalCode === null ? `exit-${child.exitCode}` : `signal-${child.signalCode}`;
};
