/** `exuvia restore`: the one way on after a store was restored to another state or exchanged; says what it will do before it does it. (failure scenarios 5 and 9) */
import { join } from 'node:path';
import { createInterface } from 'node:readline/promises';
import { agents, iam } from '../aggregates.ts';
import { readConfig, type Config } from '../config.ts';
import { survey, type Survey } from '../event-store/chain.ts';
import type { KeyRows } from '../iam/keys.ts';
import { createOperator } from '../iam/operator.ts';
import type { Policy } from '../iam/policy.ts';
import { writePrivately } from '../installation/bootstrap.ts';
import { Fault } from '../kernel/errors.ts';
import { openDatabase, openEventStore, openStreams, runningAgents } from '../open-stores.ts';
import { createKeyRows, createWaysIn } from '../postgres/private-rows.ts';
import { findInstallation } from '../postgres/store-identity-row.ts';
import { readDerived } from '../runtime/consumer-reset.ts';
import type { Streams } from '../runtime/streams.ts';
import { createLogger } from '../telemetry/logger.ts';
import { holdConsumers, rebuildAll, say } from './derive.ts';

export interface RestoreOptions {
  /** Goes on without asking. */
  readonly yes?: boolean;
  /** The Installation to follow, where the store and the database leave a choice. */
  readonly installation?: string;
}

const keyLifetimeMs = 30 * 24 * 60 * 60 * 1000;

/** The Installation whose history the database will follow. @throws Fault when the operator has to name it */
const chooseInstallation = (named: string | undefined, own: string | undefined, found: ReadonlyMap<string, Survey>): string => {
  const held = [...found.keys()].sort();
  const choice = `name one with --installation: ${held.join(', ')}`;
  if (named !== undefined) {
    if (!found.has(named)) throw new Fault(`The event store holds no history of Installation ${named}${held.length === 0 ? '' : `; ${choice}`}`);
    return named;
  }
  if (own === undefined) {
    const [only, another] = held;
    if (only === undefined) throw new Fault('Database and event store are both empty: there is nothing to restore, start the server');
    if (another !== undefined) throw new Fault(`The database is new and the event store holds several Installations: ${choice}`);
    return only;
  }
  if (held.length > 0 && !found.has(own)) throw new Fault(`The event store does not hold the history of Installation ${own}, to which this database belongs; to follow another, ${choice}`);
  return own;
};

/** Whether any key would still let somebody in: named by the history, not expired, and with its row. */
const hasUsableKey = async ({ keys }: Policy, rows: Pick<KeyRows, 'secretHash'>, nowMs: number): Promise<boolean> => {
  for (const { keyId, expiresAt } of keys.values()) if (Date.parse(expiresAt) > nowMs && (await rows.secretHash(keyId)) !== undefined) return true;
  return false;
};

const withoutHistory = async (config: Config, streams: Streams): Promise<readonly string[]> => {
  const running = await runningAgents(config);
  const folds = await streams.loadMany(agents, running);
  return running.filter((_, index) => folds[index]!.state.phase === 'none');
};

const confirm = async (): Promise<void> => {
  if (!process.stdin.isTTY) throw new Fault('Nothing was changed: add --yes to go on');
  const asking = createInterface({ input: process.stdin, output: process.stdout });
  const answer = await asking.question('Go on? [y/N] ').finally(() => asking.close());
  if (!/^y(es)?$/i.test(answer.trim())) throw new Fault('Nothing was changed');
};

/**
 * Restores the agreement of database and event store of the settings.
 * @throws Fault while a server runs on the folder or the database, for a history that is not whole, and without consent
 */
export const restore = async ({ yes = false, installation }: RestoreOptions): Promise<void> => {
  const config = readConfig(process.env);
  await using stack = new AsyncDisposableStack();
  const database = await openDatabase(config, createLogger({ level: config.logLevel }), stack);
  const store = await openEventStore(config.eventstoreUrl ?? database.url, stack, database);
  const found = await survey(store);
  const own = await findInstallation(database.pool);
  const installationId = chooseInstallation(installation, own, found);
  const history = found.get(installationId);
  if (history?.broken !== undefined) throw history.broken;
  const held = await holdConsumers(database, [installationId, ...(own === undefined ? [] : [own])], stack);
  const { streams, clock } = await openStreams(store, database, installationId, stack);
  const keyRows = createKeyRows(database.pool);
  const keyFile = join(config.dataDir, 'service-key.json');
  const { state: policy } = await streams.load(iam, '');
  const needsKey = policy.installation !== null && !(await hasUsableKey(policy, keyRows, clock.now()));
  const derived = await readDerived(held);
  const strangers = await withoutHistory(config, streams);

  say(`Installation ${installationId}: the event store holds ${history?.events ?? 0} events in ${history?.streams ?? 0} streams, unbroken.`);
  if (own !== undefined && own !== installationId) say(`The database followed Installation ${own} and will follow this one.`);
  if (history === undefined) say('Nothing is left of its history: the next start begins a new one.');
  say('Restoring will');
  say(`- drop and rebuild ${derived.readModels.length} read models${derived.readModels.length === 0 ? '' : ` (${derived.readModels.join(', ')})`}`);
  say(`- drop ${derived.workItems} work items and derive them again`);
  say(`- reset ${derived.checkpoints} checkpoints to the first event`);
  say('- make the database know this event store again, and end every session');
  if (needsKey) say(`- issue a new service key to ${keyFile}, for no key of this history has its row in the database`);
  say(strangers.length === 0 ? 'No child runs here without a history.' : `Running here without a history, and left alone: ${strangers.join(', ')}`);
  if (!yes) await confirm();

  await rebuildAll(database, store, streams, installationId, held);
  if (needsKey) {
    const { servicePrincipalId } = policy.installation.servicePrincipal;
    const name = 'restored-admin';
    const operator = createOperator({ streams, keyRows, waysIn: createWaysIn(database.pool), clock, installationId });
    const { keyId: id, text: key, expiresAt } = await operator.issueKey(servicePrincipalId, { name, lifetimeMs: keyLifetimeMs });
    await writePrivately(keyFile, { data: { id, servicePrincipalId, name, expiresAt, key }, meta: { installationId } });
    say(`A new service key is in ${keyFile}`);
  }
  say('Restored: start the server.');
};
