/** `exuvia health`: whether the process with these settings is well, for the health checks of containers, where no shell and no curl can ask. */
import { readConfig, type Config } from '../config.ts';
import { Fault } from '../kernel/errors.ts';
import { heartbeatAgeMs, heartbeatLimitMs } from '../telemetry/heartbeat.ts';

const answerLimitMs = 4_000;

/** An address to reach a listener at, also one that listens on all of them. */
const originOf = ({ host, port }: Config): string => {
  const address = host === '0.0.0.0' ? '127.0.0.1' : host === '::' ? '::1' : host;
  return `http://${address.includes(':') ? `[${address}]` : address}:${port}`;
};

const requireOk = async (url: string): Promise<void> => {
  const response = await fetch(url, { signal: AbortSignal.timeout(answerLimitMs) }).catch((error: Error) => {
    throw new Fault(`${url} does not answer: ${error.message}`);
  });
  if (!response.ok) throw new Fault(`${url} answers ${response.status}: ${await response.text()}`);
};

/** With the role `api` it asks the port; without it, it looks for the heartbeat in the data folder. @throws Fault that says what is wrong */
export const health = async (): Promise<void> => {
  const config = readConfig(process.env);
  if (config.roles.includes('api')) {
    for (const path of ['/healthz', '/readyz']) await requireOk(originOf(config) + path);
    return;
  }
  const ageMs = await heartbeatAgeMs(config.dataDir);
  if (ageMs === undefined) throw new Fault(`No process has become ready on ${config.dataDir}`);
  if (ageMs > heartbeatLimitMs) throw new Fault(`The process on ${config.dataDir} was last well ${Math.round(ageMs / 1000)} s ago`);
};
