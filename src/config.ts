/** The settings of a process: one list over the environment, read once; a wrong value stops the start with one sentence that names it. */
import { isIP } from 'node:net';
import { resolve } from 'node:path';
import { isEmail } from './kernel/email.ts';
import { Fault } from './kernel/errors.ts';
import { nativeAdminSettings, type NativeAdminSettings } from './native-admin/domains.ts';
import { hostCookie, sharedCookie, type SessionCookieSettings } from './sign-in/sessions.ts';

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
  /** Addresses, or networks in CIDR notation, whose forwarding headers are accepted. */
  readonly trustedProxies: readonly string[];
  readonly sessionCookie: SessionCookieSettings;
  /** Undefined unless the native admin UI is enabled. */
  readonly nativeAdmin: NativeAdminSettings | undefined;
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

/** A user and a password in front of a host are not repeated. */
const wrong = (name: string, expected: string, found: string): Fault => new Fault(`${name} must be ${expected}, but is ${JSON.stringify(found.replace(/\/\/.*@/, '//…@'))}`);

const isHost = (value: string): boolean => isIP(value) !== 0 || /^[a-z0-9]([a-z0-9._-]*[a-z0-9])?$/i.test(value);

const isNetwork = (value: string): boolean => {
  const [, address = '', bits] = /^([^/]+)(?:\/(\d{1,3}))?$/.exec(value) ?? [];
  const family = isIP(address);
  return family !== 0 && (bits === undefined || Number(bits) <= (family === 4 ? 32 : 128));
};

/** A user without a host, whose socket the options name, is none to the standard and one to the driver. */
const isPostgres = (value: string): boolean => /^postgres(ql)?:\/\/./.test(value) && URL.canParse(value.replace('@/', '@localhost/'));

/** One member or several, as no other URL names them. */
const isEventstoredb = (value: string): boolean => {
  const [, members = '', options] = /^esdb(?:\+discover)?:\/\/(?:[^:@\s]+:[^@\s]+@)?([^\s/?@]+)\/?(?:\?(\S+))?$/.exec(value) ?? [];
  const isMember = (member: string): boolean => /^[a-z0-9._-]+(:\d{1,5})?$/i.test(member);
  return members.split(',').every(isMember) && (options === undefined || options.split('&').every((option) => /^[^=]+=./.test(option)));
};

/**
 * Reads the settings; one that is set says something.
 * @throws Fault whose one sentence names the setting, what was expected and what was found
 */
export const readConfig = (env: Environment): Config => {
  const text = (name: string): string | undefined => {
    const value = env[name]?.trim();
    if (value === '') throw new Fault(`${name} is set but empty: give it a value, or leave it unset`);
    return value;
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
  const valid = (name: string, expected: string, isValid: (value: string) => boolean): string | undefined => {
    const value = text(name);
    if (value !== undefined && !isValid(value)) throw wrong(name, expected, value);
    return value;
  };
  const listOf = (name: string, expected: string, isValid: (item: string) => boolean): readonly string[] => {
    const items = text(name)?.split(',').map((item) => item.trim()) ?? [];
    const unfit = items.find((item) => !isValid(item));
    if (unfit !== undefined) throw wrong(name, `a list of ${expected}`, unfit);
    return items;
  };
  /** The value may hold a password, so it is not repeated. */
  const url = (name: string, expected: string, isValid: (value: string) => boolean): string | undefined => {
    const value = text(name);
    if (value !== undefined && !isValid(value)) throw new Fault(`${name} must be a URL such as ${expected}`);
    return value;
  };
  const origin = (value: string): string => value.replace(/\/$/, '');
  const isOrigin = (value: string): boolean => /^https?:/.test(value) && URL.parse(value)?.origin === origin(value);

  const roles = listOf('EXUVIA_ROLES', allRoles.join(', '), (role) => allRoles.includes(role as Role));
  oneOf('OCC_COMPUTE', 'process', ['process']);

  const mode = oneOf('EXUVIA_MODE', 'development', ['development', 'production']);
  const port = integer('PORT', 4000, 0, 65_535);
  const named = valid('OCC_AUTH_BASE_URL', 'an origin such as https://exuvia.example', isOrigin);
  const baseUrl = named === undefined ? undefined : origin(named);
  const trusted = listOf('EXUVIA_TRUSTED_ORIGINS', 'origins such as https://console.example', isOrigin).map(origin);
  const local = mode === 'development' ? [`http://localhost:${port}`, `http://127.0.0.1:${port}`] : [];

  const trustedOrigins = [...(baseUrl === undefined ? [] : [baseUrl]), ...trusted, ...local];
  const [domain, cookieDomain] = [text('OCC_AGENT_NATIVE_ADMIN_DOMAIN'), text('OCC_AUTH_COOKIE_DOMAIN')];
  const nativeAdmin =
    oneOf('OCC_AGENT_NATIVE_ADMIN_ENABLED', 'false', ['true', 'false']) === 'false'
      ? undefined
      : nativeAdminSettings({
          domain,
          cookieDomain,
          consoleOrigin: baseUrl,
          trustedOrigins,
          isProduction: mode === 'production',
        });

  return {
    mode,
    roles: roles.length === 0 ? allRoles : (roles as readonly Role[]),
    host: valid('HOST', 'a name or an address to listen at', isHost) ?? '127.0.0.1',
    port,
    dataDir: resolve(text('EXUVIA_DATA_DIR') ?? '.exuvia'),
    databaseUrl: url('OCC_DATABASE_URL', 'postgresql://user@host:5432/name', isPostgres),
    eventstoreUrl: url('OCC_EVENTSTORE_URL', 'esdb://user:password@host:2113?tls=true or postgresql://user@host:5432/name', (value) => isEventstoredb(value) || isPostgres(value)),
    trustedOrigins,
    trustedProxies: listOf('EXUVIA_TRUSTED_PROXIES', 'addresses or networks such as 10.0.0.0/8', isNetwork),
    sessionCookie: nativeAdmin === undefined ? hostCookie(mode === 'production') : sharedCookie(nativeAdmin.cookieDomain, nativeAdmin.consoleOrigin.startsWith('https:')),
    nativeAdmin,
    logLevel: oneOf('EXUVIA_LOG_LEVEL', 'info', logLevels),
    poolSize: integer('EXUVIA_POOL_SIZE', 10, 2, 200),
    administratorEmail: valid('OCC_BOOTSTRAP_ADMIN_EMAIL', 'an email address', isEmail) ?? 'admin@exuvia.local',
    worker: {
      pollIntervalMs: integer('OCC_WORKER_POLL_INTERVAL_MS', 250, 10, 60_000),
      leaseDurationMs: integer('OCC_WORKER_LEASE_DURATION_MS', 5_000, 500, 600_000),
      maxAttempts: integer('OCC_WORKER_MAX_ATTEMPTS', 5, 1, 100),
      convergenceTimeoutMs: integer('OCC_WORKER_CONVERGENCE_TIMEOUT_MS', 900_000, 1_000, 86_400_000),
      concurrency: integer('EXUVIA_WORKER_CONCURRENCY', 8, 1, 256),
    },
  };
};
