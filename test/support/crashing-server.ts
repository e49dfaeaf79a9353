/** The whole product in a process that kills itself, as a power cut would, when the worker reaches a named point. */
import { startApplication } from '../../src/compose.ts';
import { readConfig } from '../../src/config.ts';
import { createLogger } from '../../src/telemetry/logger.ts';

const [fatalPoint] = process.argv.slice(2);
const config = readConfig(process.env);
const application = await startApplication(config, createLogger({ level: config.logLevel }), {
  onPoint: async (name) => {
    if (name !== fatalPoint) return;
    process.kill(process.pid, 'SIGKILL');
    // Nothing of the pass may happen between the signal and the end.
    await new Promise(() => {});
  },
});
process.stdout.write(`${application.origin}\n`);
