/** `exuvia serve`: read the settings, put the product together, say that it is ready, drain when asked to. */
import { readConfig } from './config.ts';
import { onLauncherGone } from './launcher-link.ts';
import { createLogger } from './telemetry/logger.ts';

/** How long a drain may take before the process ends anyway. */
const drainLimitMs = 30_000;

/** Resolves with the reason to stop: a signal, or the launcher's end. */
const asked = (): Promise<string> =>
  new Promise((resolve) => {
    for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP'] as const) process.on(signal, () => resolve(signal));
    onLauncherGone(() => resolve('the launcher has ended'));
  });

export const serve = async (): Promise<void> => {
  const config = readConfig(process.env);
  const log = createLogger({ level: config.logLevel });
  const stop = asked();
  const stopping = new AbortController();
  void stop.then(() => stopping.abort());
  // The product takes a second to load: a wrong setting is told, and a signal heard, before that.
  const { startApplication } = await import('./compose.ts');
  const application = await startApplication(config, log, { stopping: stopping.signal });
  await Promise.race([application.ready(), application.broken]);
  // Standard output carries this line and nothing else: scripts wait for it.
  if (!stopping.signal.aborted) process.stdout.write(application.origin === undefined ? 'exuvia ready\n' : `exuvia ready on ${application.origin}\n`);
  const reason = await Promise.race([stop, application.broken]);
  log.info({ reason: reason instanceof Error ? reason.message : reason }, 'draining');
  setTimeout(() => process.exit(1), drainLimitMs).unref();
  await application.close();
  if (reason instanceof Error) throw reason;
  process.exit(0);
};
