/** Starts a gateway process that waits for its settings, so that none can live without a durable record. (compute-drivers 14.4) */
import { spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, constants, openSync } from 'node:fs';
import { createServer } from 'node:net';
import type { AddressInfo } from 'node:net';
import type { GatewaySettings } from '../../gateway/server.ts';
import { identityOf } from './process-identity.ts';
import type { ProcessIdentity } from './process-identity.ts';

export interface LaunchPlan {
  readonly nodeBinary: string;
  readonly gatewayEntry: string;
  /** Shown by `ps` for the operator; identifiers only. */
  readonly labels: readonly string[];
  readonly stateFolder: string;
  readonly logPath: string;
  /** Keeps compiled code of earlier starts: halves the time to ready. */
  readonly compileCacheFolder: string;
}

export interface Launched {
  readonly child: ChildProcess;
  readonly identity: ProcessIdentity;
  /** Lets the child begin. */
  readonly begin: (settings: GatewaySettings) => void;
  /** Takes the settings from the child for good, as the death of its launcher would: it ends by itself. */
  readonly abandon: () => void;
}

const inheritedVariables = ['PATH', 'LANG', 'LC_ALL', 'TZ'];

/** Spawns the process in a group of its own, or answers the errno or exit of one that could not be started. */
export const launchGateway = async (plan: LaunchPlan): Promise<Launched | { readonly startError: string }> => {
  const log = openSync(plan.logPath, constants.O_WRONLY | constants.O_CREAT | constants.O_TRUNC | constants.O_NOFOLLOW, 0o600);
  try {
    const child = spawn(plan.nodeBinary, [plan.gatewayEntry, ...plan.labels], {
      cwd: plan.stateFolder,
      detached: true,
      stdio: ['pipe', log, log],
      env: childEnvironment(plan),
    });
    // A child that ends before it has read its settings breaks the pipe; its exit tells that.
    child.stdin?.on('error', () => undefined);
    if (child.pid === undefined) {
      const [error] = (await once(child, 'error')) as [NodeJS.ErrnoException];
      return { startError: error.code ?? 'UNKNOWN' };
    }
    child.on('error', () => undefined);
    child.unref();
    const identity = identityOf(child.pid);
    if (identity === undefined) return { startError: 'EXITED' };
    return {
      child,
      identity,
      begin: (settings) => child.stdin?.end(JSON.stringify(settings)),
      abandon: () => child.stdin?.destroy(),
    };
  } finally {
    closeSync(log);
  }
};

const childEnvironment = ({ stateFolder, compileCacheFolder }: LaunchPlan): NodeJS.ProcessEnv => {
  const environment: NodeJS.ProcessEnv = { HOME: stateFolder, NODE_COMPILE_CACHE: compileCacheFolder };
  for (const name of inheritedVariables) if (process.env[name] !== undefined) environment[name] = process.env[name];
  return environment;
};

/** A loopback port that could be bound just now: the preferred one, else any. A race for it shows as the child's exit. */
export const reservePort = async (preferred: number | undefined): Promise<number> =>
  (preferred === undefined ? undefined : await boundPort(preferred)) ?? (await boundPort(0)) ?? Promise.reject(new Error('No free loopback port'));

const boundPort = (port: number): Promise<number | undefined> =>
  new Promise((resolve, reject) => {
    const server = createServer();
    server.once('error', (error: NodeJS.ErrnoException) => (error.code === 'EADDRINUSE' ? resolve(undefined) : reject(error)));
    server.listen(port, '127.0.0.1', () => {
      const { port: bound } = server.address() as AddressInfo;
      server.close(() => resolve(bound));
    });
  });
