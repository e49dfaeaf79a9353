/** A connection that one part of the event store owns, and what a failure of PostgreSQL means to its callers. */
import { Client, DatabaseError } from 'pg';
import type { ClientConfig } from 'pg';
import { StoreUnavailable } from '../event-store.ts';

const connectTimeoutMs = 2_000;

/**
 * Opens a connection of its own. `onLost` is called once when it is gone, whoever ended it; the caller
 * then opens the next one.
 */
export const connect = async (
  config: ClientConfig,
  applicationName: string,
  onLost: (client: Client) => void,
): Promise<Client> => {
  const client = new Client({
    connectionTimeoutMillis: connectTimeoutMs,
    keepAlive: true,
    ...config,
    application_name: applicationName,
  });
  client.on('error', () => {}); // 'end' follows, and an unhandled 'error' would end the process
  client.once('end', () => onLost(client));
  await client.connect();
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
  error instanceof DatabaseError && !passing.test(error.code ?? '')
    ? error
    : new StoreUnavailable('PostgreSQL did not answer', { cause: error });
