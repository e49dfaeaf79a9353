/** A control plane of its own that serves one revision with the process driver and then waits to be killed. */
import { createProcessDriver } from '../../src/compute/process/process-driver.ts';
import type { RevisionSnapshot } from '../../src/compute/driver.ts';
import { activated, pass, prepared } from './drive.ts';

const [root = '', text = ''] = process.argv.slice(2);
const revision = JSON.parse(text) as RevisionSnapshot;
const log = { info: () => undefined, warn: () => undefined, error: () => undefined };
const driver = createProcessDriver({ root, log });
await driver.ensureNamespace(revision.namespaceId, pass(0));
await driver.bindAgent(revision, pass(1));
await prepared(driver, revision, pass(1));
await activated(driver, revision, pass(1));
process.stdout.write('serving\n');
setInterval(() => undefined, 60_000);
