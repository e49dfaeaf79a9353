/** The gateway process of one Agent: takes its settings from standard input, serves until SIGTERM, and outlives the control plane. */
import { readFileSync } from 'node:fs';
import { flushCompileCache } from 'node:module';
import { readDocument } from './document.ts';
import { openGateway } from './server.ts';
import type { Gateway, GatewaySettings } from './server.ts';

/** Exit codes of the gateway. */
const exit = { done: 0, failed: 1, abandoned: 75, configuration: 78, portTaken: 98 } as const;

/** A launcher that dies before the child's record is durable sends nothing, and the child must not live on unknown. */
const settingsFromLauncher = async (): Promise<GatewaySettings> => {
  let text = '';
  for await (const chunk of process.stdin) text += String(chunk);
  return text === '' ? process.exit(exit.abandoned) : (JSON.parse(text) as GatewaySettings);
};

const settings = await settingsFromLauncher();
const reading = readDocument(JSON.parse(readFileSync(settings.documentPath, 'utf8')));
if ('problem' in reading) {
  process.stderr.write(`${reading.problem}\n`);
  process.exit(exit.configuration);
}
const { document } = reading;

const gateway: Gateway = await openGateway(settings, document).catch((error: NodeJS.ErrnoException) => {
  process.stderr.write(`cannot listen on port ${settings.port}: ${error.code ?? error.message}\n`);
  return process.exit(error.code === 'EADDRINUSE' ? exit.portTaken : exit.failed);
});

process.once('SIGTERM', () => void gateway.close().then(() => process.exit(exit.done)));

const settle = (): void => {
  if (document.exitAtStartup !== undefined) process.exit(document.exitAtStartup);
  const held = document.holdStartup;
  gateway.settle(held === undefined ? 'ready' : { component: 'gateway', checkedAt: new Date().toISOString(), ...held });
  // Node writes the cache at a clean exit only; the next start shall profit also when this one is killed.
  setImmediate(flushCompileCache);
};
if (document.startupDelayMs === 0) settle();
else setTimeout(settle, document.startupDelayMs);
