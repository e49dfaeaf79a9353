/** Connections to PostgreSQL, embedded or not: bounded in number and in how long a statement may take. */
import pg from 'pg';

export interface ConnectionOptions {
  /** `postgresql://…`, as OCC_DATABASE_URL or the embedded server gives it. */
  readonly url: string;
  /** Shown in pg_stat_activity. */
  readonly applicationName?: string;
  /** After this the server cancels a statement; 0 is never. */
  readonly statementTimeoutMs?: number;
  /** After this an open but idle transaction is ended, and its locks with it. */
  readonly idleTransactionTimeoutMs?: number;
}

export interface PoolOptions extends ConnectionOptions {
  /** The most connections held at once. */
  readonly max?: number;
  /** After this a server that says nothing counts as gone, and its connection with it; without one it is waited for. */
  readonly answerTimeoutMs?: number;
  /** Hears of an idle connection that broke; the pool replaces it. */
  readonly onError?: (error: Error) => void;
}

const connectTimeoutMs = 5_000;

const configuration = ({
  url,
  applicationName = 'exuvia',
  statementTimeoutMs = 30_000,
  idleTransactionTimeoutMs = 30_000,
}: ConnectionOptions): pg.ClientConfig => ({
  connectionString: url,
  application_name: applicationName,
  connectionTimeoutMillis: connectTimeoutMs,
  statement_timeout: statementTimeoutMs,
  idle_in_transaction_session_timeout: idleTransactionTimeoutMs,
  keepAlive: true,
});

/** A pool that outlives broken connections. Connects on first use; `end()` it. */
export const openPool = ({ max = 10, answerTimeoutMs, onError = () => {}, ...options }: PoolOptions): pg.Pool => {
  const pool = new pg.Pool({ ...configuration(options), max, ...(answerTimeoutMs !== undefined && { query_timeout: answerTimeoutMs }) });
  // Its end does not wait for its sockets, so a server that stops right after it still tells them.
  pool.on('error', (error) => void (pool.ending || onError(error)));
  return pool;
};

/** A connected client outside any pool, for a session lock or LISTEN. The caller hears `error` and must `end()` it. */
export const openClient = async (options: ConnectionOptions): Promise<pg.Client> => {
  const client = new pg.Client(configuration(options));
  await client.connect();
  return client;
};
