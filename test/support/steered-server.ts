/** The whole product in a process that holds its worker at a named point when its parent says so, until it is let go. */
import { once } from 'node:events';
import { startApplication } from '../../src/compose.ts';
import { readConfig } from '../../src/config.ts';
import { createLogger } from '../../src/telemetry/logger.ts';

/** What the parent says; the same message is the answer when it has been heard, and when it has come to pass. */
export interface Steering {
  readonly hold?: string;
  readonly reached?: string;
  readonly go?: true;
  readonly origin?: string;
}

const say = (steering: Steering): void => void process.send!(steering);
let held: string | undefined;
process.on('message', ({ hold }: Steering) => {
  if (hold === undefined) return;
  held = hold;
  say({ hold });
});

const config = readConfig(process.env);
const application = await startApplication(config, createLogger({ level: config.logLevel }), {
  onPoint: async (name) => {
    if (name !== held) return;
    held = undefined;
    say({ reached: name });
    await once(process, 'message');
  },
});
process.on('SIGTERM', () => void application.close().then(() => process.exit(0)));
say({ origin: application.origin! });
