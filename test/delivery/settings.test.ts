/** The settings: what each takes, and that a malformed one is refused by its name, before anything is opened or written. */
import { readdir, rm } from 'node:fs/promises';
import { resolve } from 'node:path';
import { expect, it } from 'vitest';
import { readConfig } from '../../src/config.ts';
import { newDataDir } from '../support/app.ts';
import { runToEnd } from '../support/server.ts';

const numbers = { PORT: 65_535, EXUVIA_POOL_SIZE: 200, OCC_WORKER_POLL_INTERVAL_MS: 60_000, OCC_WORKER_LEASE_DURATION_MS: 600_000, OCC_WORKER_MAX_ATTEMPTS: 100, OCC_WORKER_CONVERGENCE_TIMEOUT_MS: 86_400_000, EXUVIA_WORKER_CONCURRENCY: 256 };
const noNumber = (most: number) => ['-1', '1.5', '1e3', '0x10', 'many', 'NaN', 'Infinity', '10 000', '9999999999999', String(most + 1)];
const noOrigin = ['exuvia.example', 'ftp://exuvia.example', 'https://', 'https:exuvia.example', 'https://exuvia.example/path', 'https://exuvia.example?a', 'https://me@exuvia.example', 'https://EXUVIA.example', 'null', '*'];
const noPostgres = ['localhost:5432', '//localhost/db', 'mysql://localhost/db', 'http://localhost:5432', 'postgres:/localhost/db', 'postgresql://', 'postgresql://me@localhost:port/db', 'postgresql://me:pass#word@localhost/db'];

/** Every setting, with what is malformed in it. */
const malformed: Readonly<Record<string, readonly string[]>> = {
  ...Object.fromEntries(Object.entries(numbers).map(([name, most]) => [name, noNumber(most)])),
  HOST: ['http://localhost', 'localhost:4000', '[::1]', 'a b', '-', '127.0.0.1/8'],
  EXUVIA_MODE: ['Production', 'test'],
  EXUVIA_ROLES: ['cook', 'api,cook', 'api,,worker', ',', 'api worker', 'API'],
  EXUVIA_DATA_DIR: [],
  EXUVIA_LOG_LEVEL: ['loud', 'INFO', '30'],
  EXUVIA_TRUSTED_PROXIES: ['gateway', '10.0.0.0/99', '10.0.0.0/', '10.0.0.0/8/16', '10.0.0.0/ 8', '10.0.0.0/-1', '/8', '::1/129', '10.0.0.256', '10.0.0.1,', 'http://10.0.0.1'],
  EXUVIA_TRUSTED_ORIGINS: [...noOrigin, 'https://exuvia.example,', 'https://exuvia.example https://console.example'],
  /** What they hold is looked at when the native admin UI is enabled: test/native-admin/settings.test.ts. */
  OCC_AGENT_NATIVE_ADMIN_DOMAIN: [],
  OCC_AUTH_COOKIE_DOMAIN: [],
  OCC_AGENT_NATIVE_ADMIN_ENABLED: ['yes', 'TRUE', '1'],
  OCC_AUTH_BASE_URL: [...noOrigin, 'https://exuvia.example,https://console.example'],
  OCC_BOOTSTRAP_ADMIN_EMAIL: ['admin', '@exuvia.local', 'admin@', 'admin@exuvia@local', 'the admin@exuvia.local', 'admin@exuvia.local, root@exuvia.local', `${'a'.repeat(320)}@b`],
  OCC_COMPUTE: ['kubernetes', 'Process'],
  OCC_DATABASE_URL: [...noPostgres, 'esdb://localhost:2113'],
  OCC_EVENTSTORE_URL: [...noPostgres, 'esdb:localhost', 'esdb://', 'esdb://user@localhost', 'esdb://localhost:port', 'esdb://one:2113,:2113', 'esdb://localhost?tls', 'esdb://localhost:2113/path', 'eventstore://localhost'],
};

it.each(Object.entries(malformed))('%s refuses what is empty, blank or malformed, by its name', (name, values) => {
  for (const value of ['', ' ', '\t\n', ...values])
    expect(() => readConfig({ [name]: value }), JSON.stringify(value)).toThrow(expect.objectContaining({ name: 'Fault', message: expect.stringMatching(new RegExp(`^${name} [^\\n]+$`)) as string }));
});

it('what a setting takes is what the process gets, with the white space around it gone', () => {
  const dataDir = resolve('here');
  const env = { HOST: '::1', EXUVIA_MODE: 'production', EXUVIA_ROLES: 'api, worker', EXUVIA_DATA_DIR: ' here ', EXUVIA_LOG_LEVEL: 'warn', EXUVIA_TRUSTED_PROXIES: '10.0.0.0/8,::1, 127.0.0.1', OCC_COMPUTE: 'process' };
  const origins = { OCC_AUTH_BASE_URL: 'https://exuvia.example/', EXUVIA_TRUSTED_ORIGINS: 'http://localhost:8080, https://console.example' };
  const stores = { OCC_DATABASE_URL: 'postgres://me:a%23b@one,two:5432/db', OCC_EVENTSTORE_URL: 'esdb+discover://admin:changeit@one:2113,two.example:2113?tls=true&tlsCAFile=/ca.pem', OCC_BOOTSTRAP_ADMIN_EMAIL: 'Root@exuvia.local' };
  const nativeAdmin = { OCC_AGENT_NATIVE_ADMIN_ENABLED: 'true', OCC_AGENT_NATIVE_ADMIN_DOMAIN: 'agents.exuvia.example', OCC_AUTH_COOKIE_DOMAIN: 'exuvia.example' };
  const most = Object.fromEntries(Object.entries(numbers).map(([name, value]) => [name, String(value)]));
  expect(Object.keys({ ...env, ...origins, ...stores, ...nativeAdmin, ...most }).sort(), 'every setting').toEqual(Object.keys(malformed).sort());
  expect(readConfig({ ...env, ...origins, ...stores, ...nativeAdmin, ...most })).toEqual({
    mode: 'production',
    roles: ['api', 'worker'],
    host: '::1',
    port: 65_535,
    dataDir,
    databaseUrl: stores.OCC_DATABASE_URL,
    eventstoreUrl: stores.OCC_EVENTSTORE_URL,
    trustedOrigins: ['https://exuvia.example', 'http://localhost:8080', 'https://console.example'],
    trustedProxies: ['10.0.0.0/8', '::1', '127.0.0.1'],
    sessionCookie: expect.anything() as object,
    nativeAdmin: { domain: 'agents.exuvia.example', cookieDomain: 'exuvia.example', consoleOrigin: 'https://exuvia.example' },
    logLevel: 'warn',
    poolSize: 200,
    administratorEmail: 'Root@exuvia.local',
    worker: { pollIntervalMs: 60_000, leaseDurationMs: 600_000, maxAttempts: 100, convergenceTimeoutMs: 86_400_000, concurrency: 256 },
  });
});

it.each(['postgresql://me@/db?host=/run/postgresql', 'postgresql:///db', 'postgres://localhost'])('the database %s', (url) => expect(readConfig({ OCC_DATABASE_URL: url }).databaseUrl).toBe(url));

it('no password of a URL is in the sentence that refuses it', () => {
  for (const [name, value] of [['OCC_DATABASE_URL', 'mysql://me:hidden@localhost'], ['OCC_EVENTSTORE_URL', 'esdb://me:hidden@localhost:port'], ['OCC_AUTH_BASE_URL', 'https://me:hidden@exuvia.example']] as const)
    expect(() => readConfig({ [name]: value })).not.toThrow(/hidden/);
});

it('a malformed email of the first administrator stops the start before anything is written', async () => {
  const dataDir = await newDataDir();
  const { code, stdout, stderr } = await runToEnd(['serve'], { PORT: '0', EXUVIA_DATA_DIR: dataDir, OCC_BOOTSTRAP_ADMIN_EMAIL: 'admin' });
  expect({ code, stdout, stderr }).toEqual({ code: 1, stdout: '', stderr: 'exuvia: OCC_BOOTSTRAP_ADMIN_EMAIL must be an email address, but is "admin"\n' });
  expect(await readdir(dataDir)).toEqual([]);
  await rm(dataDir, { recursive: true });
});
