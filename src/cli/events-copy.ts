/** `exuvia events copy`: moves the history of an Installation into another event store, event by event as it is. (failure scenario 28) */
import { readConfig } from '../config.ts';
import { anyInstallation, survey } from '../event-store/chain.ts';
import { copyEvents } from '../event-store/copy.ts';
import { StoreUnavailable, type EventStore } from '../event-store/event-store.ts';
import { Fault } from '../kernel/errors.ts';
import { openDatabase, openDatabaseAt, openEventStore, openStreams, prefixOf } from '../open-stores.ts';
import { findInstallation } from '../postgres/store-identity-row.ts';
import { createLogger } from '../telemetry/logger.ts';
import { holdConsumers, rebuildAll, say } from './derive.ts';

export interface EventsCopyOptions {
  /** `esdb://…` or `postgresql://…`; without it the event store of the settings, embedded or not. */
  readonly from?: string;
  readonly to: string;
  /** A database that shall follow the target from now on. */
  readonly database?: string;
  /** The Installation to copy, where the source holds several. */
  readonly installation?: string;
}

const openSource = async (url: string | undefined, stack: AsyncDisposableStack): Promise<EventStore> => {
  if (url !== undefined) return openEventStore(url, stack);
  const config = readConfig(process.env);
  const database = await openDatabase(config, createLogger({ level: config.logLevel }), stack);
  return openEventStore(config.eventstoreUrl ?? database.url, stack, database);
};

/** @throws Fault when there is none, or several and none was named */
const installationIn = async (store: EventStore, named: string | undefined): Promise<string> => {
  const held = [...(await survey(store)).keys()].sort();
  if (named !== undefined && held.includes(named)) return named;
  const [only, another] = held;
  if (only === undefined) throw new Fault('The source holds no history of any Installation');
  if (named !== undefined || another !== undefined) throw new Fault(`Name the Installation to copy with --installation: ${held.join(', ')}`);
  return only;
};

const rebuildDatabase = async (url: string, store: EventStore, installationId: string, stack: AsyncDisposableStack): Promise<void> => {
  const database = await openDatabaseAt(url, stack);
  const own = (await findInstallation(database.pool)) ?? installationId;
  if (own !== installationId) throw new Fault(`The history is copied, but the named database belongs to Installation ${own}: see exuvia restore --installation`);
  const held = await holdConsumers(database, [installationId], stack);
  const { streams } = await openStreams(store, database, installationId, stack);
  await rebuildAll(database, store, streams, installationId, held);
};

/** Copies, or goes on with a copy that was interrupted. @throws Fault when the target holds anything else, or the source is not whole */
export const eventsCopy = async ({ from, to, database, installation }: EventsCopyOptions): Promise<void> => {
  await using stack = new AsyncDisposableStack();
  const source = await openSource(from, stack);
  const target = await openEventStore(to, stack);
  const installationId = await installationIn(source, installation);
  let told = 0;
  const onProgress = (events: number): void => {
    if (events - told < 10_000) return;
    told = events;
    say(`${events} events are there`);
  };
  try {
    const { present, copied } = await copyEvents({ from: source, to: target, prefix: prefixOf(installationId), exclusivePrefix: anyInstallation, onProgress });
    say(`Installation ${installationId}: ${copied} events copied, ${present} were there; ids, order, bytes and hashes are the same.`);
  } catch (error) {
    if (!(error instanceof StoreUnavailable)) throw error;
    throw new Fault('An event store did not answer: run the copy again, it goes on where it stopped', { cause: error });
  }
  if (database !== undefined) await rebuildDatabase(database, target, installationId, stack);
  else say('Give the server OCC_EVENTSTORE_URL and run exuvia restore: read models are rebuilt, for positions are not the same.');
};
