/** `exuvia rebuild`: fills read models anew beside those that serve, also while a server runs, and puts each in its place. (failure scenario 17) */
import { productEvents } from '../../projections/index.ts';
import { readConfig } from '../config.ts';
import { consumers } from '../consumers.ts';
import { Fault } from '../kernel/errors.ts';
import { openHostStores, prefixOf } from '../open-stores.ts';
import { rebuild } from '../runtime/consumer-rebuild.ts';
import { createLogger } from '../telemetry/logger.ts';
import { say } from './derive.ts';

/**
 * Rebuilds the read models with these names; all of them where none is named.
 * @throws Fault for a name that no read model has, and for stores that cannot be reached
 */
export const rebuildReadModels = async (names: readonly string[]): Promise<void> => {
  const readModels = consumers.filter(({ shadow }) => shadow !== undefined);
  const known = readModels.map(({ name }) => name);
  const unknown = names.find((name) => !known.includes(name));
  if (unknown !== undefined) throw new Fault(`There is no read model ${JSON.stringify(unknown)}; there are ${known.join(', ')}`);
  const config = readConfig(process.env);
  await using stack = new AsyncDisposableStack();
  const { database, store, installationId } = await openHostStores(config, createLogger({ level: config.logLevel }), stack);
  for (const consumer of readModels) {
    if (names.length > 0 && !names.includes(consumer.name)) continue;
    await rebuild({ url: database.url, store, prefix: prefixOf(installationId), codec: productEvents, consumer });
    say(`${consumer.name} is rebuilt`);
  }
};
