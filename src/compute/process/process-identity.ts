/** Who a process is beyond its number: a PID alone, or a name, may belong to someone else by now. (compute-drivers 14.4) */
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';

export interface ProcessIdentity {
  readonly pid: number;
  /** Clock ticks since boot on Linux (`/proc/<pid>/stat`, field 22), the start time as `ps` prints it elsewhere. */
  readonly startTime: string;
  readonly bootId: string;
}

/** The identity of a living process; undefined for one that is gone or only waits to be reaped. */
export const identityOf = (pid: number): ProcessIdentity | undefined => {
  const seen = process.platform === 'linux' ? fromProc(pid) : fromPs(pid);
  return seen === undefined || seen.state.startsWith('Z') || seen.state.startsWith('X')
    ? undefined
    : { pid, startTime: seen.startTime, bootId: bootId() };
};

/** Whether exactly this process still lives. */
export const isAlive = (identity: ProcessIdentity): boolean => {
  const found = identityOf(identity.pid);
  return found !== undefined && found.startTime === identity.startTime && found.bootId === identity.bootId;
};

/**
 * Ends the process group led by this process: SIGTERM, then SIGKILL after the grace period, and waits until the
 * leader is gone. A PID that meanwhile belongs to another process is left alone.
 * @throws the reason of `signal`; the call can be repeated
 */
export const endGroup = async (leader: ProcessIdentity, graceMs: number, signal?: AbortSignal): Promise<void> => {
  const killAt = performance.now() + graceMs;
  if (isAlive(leader)) signalGroup(leader.pid, 'SIGTERM');
  for (let killed = false; isAlive(leader); await delay(pollMs, undefined, { ...(signal && { signal }) })) {
    if (killed || performance.now() < killAt) continue;
    signalGroup(leader.pid, 'SIGKILL');
    killed = true;
  }
  // While members of the group live, its number cannot become the PID of a new process.
  if (identityOf(leader.pid) === undefined && leader.bootId === bootId()) signalGroup(leader.pid, 'SIGKILL');
};

const pollMs = 5;

const signalGroup = (leaderPid: number, name: NodeJS.Signals): void => {
  try {
    process.kill(-leaderPid, name);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
  }
};

interface Seen {
  readonly state: string;
  readonly startTime: string;
}

const fromProc = (pid: number): Seen | undefined => {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    // Field 2 is the command in parentheses and may itself hold blanks and parentheses.
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    return { state: fields[0] ?? '', startTime: fields[19] ?? '' };
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'ENOENT' || code === 'ESRCH') return undefined;
    throw error;
  }
};

const fromPs = (pid: number): Seen | undefined => {
  try {
    const line = execFileSync('ps', ['-o', 'stat=', '-o', 'lstart=', '-p', String(pid)], { encoding: 'utf8', stdio: 'pipe' }).trim();
    const [state = '', ...startTime] = line.split(/\s+/);
    return { state, startTime: startTime.join(' ') };
  } catch {
    // `ps` exits with 1 when no such process exists.
    return undefined;
  }
};

let knownBootId: string | undefined;

/** Elsewhere than on Linux the start time is a calendar time and tells boots apart by itself. */
const bootId = (): string =>
  (knownBootId ??= process.platform === 'linux' ? readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim() : 'calendar');
