/** The settings of a process: one list over the environment, read once; a wrong value stops the start with one sentence that names it. */
import { resolve } from 'node:path';
import { Fault } from './kernel/errors.ts';

export type Role = 'api' | 'projector' | 'worker';
const allRoles: readonly Role[] = ['api', 'projector', 'worker'];
const logLevels = ['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent'] as const;
export type LogLevel = (typeof logLevels)[number];

export interface Config {
  readonly mode: 'development' | 'production';
  readonly roles: readonly Role[];
  readonly host: string;
  readonly port: number;
  /** Absolute. */
  readonly dataDir: string;
  /** A real PostgreSQL server; undefined for the embedded one. */
  readonly databaseUrl: string | undefined;
  /** An event store of its own; undefined for the tables of the database. */
  readonly eventstoreUrl: string | undefined;
  /** Origins of pages that may change state with a cookie. */
  readonly trustedOrigins: readonly string[];
  /** Addresses whose forwarding headers are accepted. */
  readonly trustedProxies: readonly string[];
  readonly logLevel: LogLevel;
  /** Connections of the pool that serves requests. */
  readonly poolSize: number;
  readonly administratorEmail: string;
  readonly worker: {
    readonly pollIntervalMs: number;
    readonly leaseDurationMs: number;
    readonly maxAttempts: number;
    readonly convergenceTimeoutMs: number;
    readonly concurrency: number;
  };
}

type Environment = Readonly<Record<string, string | undefined>>;

const wrong = (name: string, expected: string, found: string): Fault => new Fault(`${name} must be ${expected}, but is ${JSON.stringify(found)}`);

/**
 * Reads the settings.
 * @throws Fault whose one sentence names the setting, what was expected and what was found
 */
export const readConfig = (env: Environment): Config => {
  const text = (name: string): string | undefined => {
    const value = env[name]?.trim();
    return value === undefined || value === '' ? undefined : value;
  };
  const integer = (name: string, fallback: number, least: number, most: number): number => {
    const value = text(name);
    if (value === undefined) return fallback;
    const number = /^\d{1,12}$/.test(value) ? Number(value) : NaN;
    if (!(number >= least && number <= most)) throw wrong(name, `a whole number from ${least} to ${most}`, value);
    return number;
  };
  const oneOf = <T extends string>(name: string, fallback: T, choices: readonly T[]): T => {
    const value = text(name) ?? fallback;
    if (!choices.includes(value as T)) throw wrong(name, `one of ${choices.join(', ')}`, value);
    return value as T;
  };
  const list = (name: string): readonly string[] => (text(name) ?? '').split(',').map((item) => item.trim()).filter((item) => item !== '');
  /** The value may hold a password, so it is not repeated. */
  const url = (name: string, ...schemes: readonly string[]): string | undefined => {
    const value = text(name);
    if (value !== undefined && !schemes.some((scheme) => value.startsWith(`${scheme}://`)))
      throw new Fault(`${name} must be a URL that begins with ${schemes.map((scheme) => `${scheme}://`).join(' or ')}`);
    return value;
  };
  const origins = (name: string): readonly string[] =>
    list(name).map((value) => {
      const bare = value.replace(/\/$/, '');
      if (!['http:', 'https:'].includes(URL.parse(bare)?.protocol ?? '') || new URL(bare).origin !== bare)
        throw wrong(name, 'an origin without path, query or credentials', value);
      return bare;
    });

  const roles = list('EXUVIA_ROLES');
  const unknownRole = roles.find((role) => !allRoles.includes(role as Role));
  if (unknownRole !== undefined) throw wrong('EXUVIA_ROLES', `a list of ${allRoles.join(', ')}`, unknownRole);
  oneOf('OCC_COMPUTE', 'process', ['process']);

  const mode = oneOf('EXUVIA_MODE', 'development', ['development', 'production']);
  const port = integer('PORT', 4000, 0, 65_535);
  const [baseUrl] = origins('OCC_AUTH_BASE_URL');
  const local = mode === 'development' ? [`http://localhost:${port}`, `http://127.0.0.1:${port}`] : [];

  return {
    mode,
    roles: roles.length === 0 ? allRoles : (roles as readonly Role[]),
    host: text('HOST') ?? '127.0.0.1',
    port,
    dataDir: resolve(text('EXUVIA_DATA_DIR') ?? '.exuvia'),
    databaseUrl: url('OCC_DATABASE_URL', 'postgres', 'postgresql'),
    eventstoreUrl: url('OCC_EVENTSTORE_URL', 'esdb', 'esdb+discover', 'postgres', 'postgresql'),
    trustedOrigins: [...(baseUrl === undefined ? [] : [baseUrl]), ...origins('EXUVIA_TRUSTED_ORIGINS'), ...local],
    trustedProxies: list('EXUVIA_TRUSTED_PROXIES'),
    logLevel: oneOf('EXUVIA_LOG_LEVEL', 'info', logLevels),
    poolSize: integer('EXUVIA_POOL_SIZE', 10, 2, 200),
    administratorEmail: text('OCC_BOOTSTRAP_ADMIN_EMAIL') ?? 'admin@exuvia.local',
    worker: {
      pollIntervalMs: integer('OCC_WORKER_POLL_INTERVAL_MS', 250, 10, 60_000),
      leaseDurationMs: integer('OCC_WORKER_LEASE_DURATION_MS', 5_000, 500, 600_000),
      maxAttempts: integer('OCC_WORKER_MAX_ATTEMPTS', 5, 1, 100),
      convergenceTimeoutMs: integer('OCC_WORKER_CONVERGENCE_TIMEOUT_MS', 900_000, 1_000, 86_400_000),
      concurrency: integer('EXUVIA_WORKER_CONCURRENCY', 8, 1, 256),
    },
  };
};
