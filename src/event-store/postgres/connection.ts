/** A connection that one part of the event store owns, and what a failure of PostgreSQL means to its callers. */
import pg from 'pg';
import type { Client } from 'pg';
import { openClient } from '../../postgres/pool.ts';
import type { ConnectionOptions } from '../../postgres/pool.ts';
import { StoreUnavailable } from '../event-store.ts';

/** Opens a connection of its own. `onLost` is called once when it is gone, whoever ended it. */
export const connect = async (options: ConnectionOptions, onLost: (client: Client) => void): Promise<Client> => {
  const client = await openClient(options);
  client.on('error', () => {}); // 'end' follows, and an unhandled 'error' would end the process
  client.once('end', () => onLost(client));
  return client;
};

/** Ends a connection at once, also one whose server no longer answers. */
export const disconnect = (client: Client): void => {
  client.connection.stream.destroy();
};

/** SQLSTATEs that pass by themselves: connection, rollback, resources, operator, system; lock timeout, read-only standby. */
const passing = /^(08|40|53|57|58|55P03|25006)/;

/** A failure as the port names it: whatever may pass by itself is {@link StoreUnavailable}, the rest is a fault. */
export const failure = (error: unknown): unknown =>
  error instanceof pg.DatabaseError && !passing.test(error.code ?? '')
    ? error
    : new StoreUnavailable('PostgreSQL did not answer', { cause: error });
