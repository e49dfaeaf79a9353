/**
 * Marked secrets go in wherever a secret can: passwords, keys, cookies, headers, documents of refused requests. They come
 * out nowhere: not in the history or any table but the private ones, not in the log at its most talkative, not in
 * answers, not in metrics. (iam-auth-audit 5.4 and 8.7 assertion 4, failure scenario 38)
 */
import { randomBytes } from 'node:crypto';
import { readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { newDataDir, readKey } from '../support/app.ts';
import { createDatabase, type TestDatabase } from '../support/database.ts';
import { startServer, type LaunchedServer } from '../support/server.ts';
import { consoleOrigin, cookieOf } from '../support/sign-in.ts';

/** Secrets by what they are; a mark is found wherever it is a part of a text. */
const secrets = new Map<string, string>();
const secret = (what: string, text: string): string => {
  secrets.set(what, text);
  return text;
};
const mark = (what: string): string => secret(what, `canary${randomBytes(16).toString('hex')}`);

/** Which secrets a text holds, but for those it is there to tell. */
const secretsIn = (text: string, told: readonly string[] = []): readonly string[] => [...secrets].filter(([what, value]) => !told.includes(what) && text.includes(value)).map(([what]) => what);

let database: TestDatabase;
let dataDir: string;
let server: LaunchedServer;
let key: string;
/** Everything that was answered, each with the secrets that it was there to tell. */
const answers: { readonly asked: string; readonly text: string; readonly told: readonly string[] }[] = [];

interface Asked {
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: unknown;
  readonly told?: readonly string[];
}

const ask = async (method: string, path: string, { headers = {}, body, told = [] }: Asked = {}): Promise<Response & { readonly said: string }> => {
  const response = await fetch(server.origin + path, {
    method,
    headers: { ...(body !== undefined && { 'content-type': 'application/json' }), ...headers },
    ...(body !== undefined && { body: typeof body === 'string' ? body : JSON.stringify(body) }),
  });
  const said = await response.text();
  // The cookie is where a token belongs.
  const shown = [...response.headers].filter(([name]) => name !== 'set-cookie').map(([name, value]) => `${name}: ${value}`);
  answers.push({ asked: `${method} ${path}`, text: [...shown, said].join('\n'), told });
  return Object.assign(response, { said });
};
const dataOf = <T>({ said }: { readonly said: string }): T => (JSON.parse(said) as { data: T }).data;

beforeAll(async () => {
  [database, dataDir] = await Promise.all([createDatabase(), newDataDir()]);
  server = await startServer({
    PORT: '0',
    EXUVIA_DATA_DIR: dataDir,
    OCC_DATABASE_URL: database.url,
    EXUVIA_ROLES: 'api,projector',
    EXUVIA_LOG_LEVEL: 'trace',
    EXUVIA_TRUSTED_ORIGINS: consoleOrigin,
  });
  key = secret('the first key', await readKey(dataDir));
});
afterAll(async () => {
  await server?.stop();
  await rm(dataDir, { recursive: true });
});

/** Every table but the private ones, as text. */
const tables = async (): Promise<readonly (readonly [name: string, text: string])[]> => {
  const { rows } = await database.pool.query<{ name: string }>(`select tablename as name from pg_tables where schemaname = 'public' and tablename not in ('account', 'session', 'service_key')`);
  const read = async (name: string) => [name, (await database.pool.query<{ text: string | null }>(`select string_agg(t::text, E'\\n') as text from "${name}" t`)).rows[0]!.text ?? ''] as const;
  return Promise.all(rows.map(({ name }) => read(name)));
};

describe('in go', () => {
  let page: { readonly cookie: string; readonly origin: string };
  let email: string;

  it('passwords, right and wrong', async () => {
    const { email: known, password } = JSON.parse(await readFile(join(dataDir, 'admin.json'), 'utf8')) as { email: string; password: string };
    email = known;
    secret('the password of the administrator', password);
    const signedIn = await ask('POST', '/api/auth/sign-in/email', { body: { email, password } });
    expect(signedIn.status).toBe(200);
    page = { cookie: cookieOf(signedIn.headers), origin: consoleOrigin };
    secret('the token of a session', page.cookie.split('=')[1]!);
    expect((await ask('POST', '/api/auth/sign-in/email', { body: { email, password: mark('a wrong password') } })).status).toBe(401);
    expect((await ask('POST', '/api/auth/sign-in/email', { body: { email: `${mark('an unknown email')}@example.org`, password: mark('the password of nobody') } })).status).toBe(401);
    expect((await ask('POST', '/api/auth/sign-in/email', { body: { email, password: [mark('a password in a list')] } })).status).toBe(400);
    expect((await ask('GET', '/api/auth/session', { headers: page })).status).toBe(200);
  });

  it('an account, and a session of its own', async () => {
    const [address, password] = [`${mark('the email of an account')}@example.org`, mark('the password of an account')];
    const told = ['the email of an account'];
    expect((await ask('POST', '/api/auth/accounts', { headers: page, body: { email: address, password }, told })).status).toBe(201);
    expect((await ask('POST', '/api/auth/accounts', { headers: page, body: { email: address, password } })).status).toBe(409);
    const theirs = { cookie: cookieOf((await ask('POST', '/api/auth/sign-in/email', { body: { email: address, password } })).headers), origin: consoleOrigin };
    secret('the token of another session', theirs.cookie.split('=')[1]!);
    expect((await ask('GET', '/installation', { headers: theirs })).status).toBe(403);
    expect((await ask('GET', '/api/auth/session', { headers: theirs, told })).status).toBe(200);
    expect((await ask('POST', '/api/auth/sign-out', { headers: theirs })).status).toBe(200);
    expect((await ask('GET', '/installation', { headers: theirs })).status).toBe(401);
  });

  it('service keys, issued, used, wrong and revoked', async () => {
    const [namespace] = dataOf<{ id: string }[]>(await ask('GET', '/namespaces', { headers: { 'x-api-key': key } }));
    const principal = dataOf<{ id: string }>(await ask('POST', `/namespaces/${namespace!.id}/iam/service-principals`, { headers: { 'x-api-key': key }, body: {} }));
    const issue = { servicePrincipalId: principal.id, namespaceId: namespace!.id, name: 'canary' };
    const issued = await ask('POST', '/api/auth/service-keys', { headers: { 'x-api-key': key }, body: issue, told: ['an issued key', 'the secret of an issued key'] });
    expect(issued.status).toBe(201);
    const { id, key: theirs } = dataOf<{ id: string; key: string }>(issued);
    secret('an issued key', theirs);
    secret('the secret of an issued key', theirs.split('.')[2]!);
    expect((await ask('GET', `/namespaces/${namespace!.id}`, { headers: { 'x-api-key': theirs } })).status).toBe(403);
    expect((await ask('DELETE', `/api/auth/service-keys/${id}`, { headers: { 'x-api-key': key } })).status).toBe(200);
    expect((await ask('GET', `/namespaces/${namespace!.id}`, { headers: { 'x-api-key': theirs } })).status).toBe(401);
    for (const wrong of [mark('a word as a key'), `exk.${id}.${mark('the secret of a wrong key').padEnd(43, 'A')}`, `${key}${mark('the end of a key')}`])
      expect((await ask('GET', '/namespaces', { headers: { 'x-api-key': wrong } })).status).toBe(401);
  });

  it('headers of every kind', async () => {
    const credentials: readonly (readonly [string, string])[] = [
      ['authorization', `Bearer ${mark('a bearer token')}`],
      ['authorization', `Basic ${secret('basic credentials', Buffer.from(mark('a basic password')).toString('base64'))}`],
      ['cookie', `openclaw_occ.session_token=${mark('a wrong cookie')}; another=${mark('another cookie')}`],
      ['x-occ-cli-session', `occcli_${mark('a CLI token')}`],
    ];
    for (const [name, value] of credentials) expect((await ask('GET', '/namespaces', { headers: { [name]: value } })).status).toBe(401);
    expect((await ask('GET', '/namespaces', { headers: { ...page, 'x-occ-session-key': mark('a session key') } })).status).toBe(401);
    const idempotent = { 'x-api-key': key, 'idempotency-key': mark('an idempotency key') };
    expect((await ask('POST', '/namespaces', { headers: idempotent, body: { name: 'canary' } })).status).toBe(201);
    expect((await ask('POST', '/namespaces', { headers: idempotent, body: { name: 'other' } })).status).toBe(409);
    expect((await ask('GET', `/namespaces/${mark('a path')}?token=${mark('a query string')}`, { headers: { 'x-api-key': key } })).status).toBe(400);
    expect((await ask('GET', `/${mark('an unknown path')}`)).status).toBe(404);
  });

  it('bodies that are refused', async () => {
    const [namespace] = dataOf<{ id: string }[]>(await ask('GET', '/namespaces', { headers: { 'x-api-key': key } }));
    const configurations = `/namespaces/${namespace!.id}/configurations`;
    const by = { 'x-api-key': key };
    const refused: readonly (readonly [number, unknown, Readonly<Record<string, string>>])[] = [
      [401, { kind: 'agent', values: { token: mark('a value of nobody') } }, {}],
      [400, `{"kind":"agent","values":{"token":"${mark('a value of broken JSON')}"`, by],
      [400, { kind: mark('a wrong kind'), values: {} }, by],
      [400, { kind: 'agent', values: { constructor: mark('an unsafe value') } }, by],
      [400, { kind: 'agent', values: mark('a document that is none') }, by],
      [403, { kind: 'agent', values: { token: mark('a value of somebody without grants') } }, await stranger()],
    ];
    for (const [status, body, headers] of refused) expect((await ask('POST', configurations, { headers, body })).status).toBe(status);
  });

  it('GraphQL operations', async () => {
    const graphql = (query: string, variables: object, headers: Readonly<Record<string, string>>, told?: readonly string[]) => ask('POST', '/graphql', { headers, body: { query, variables }, ...(told !== undefined && { told }) });
    const create = 'mutation ($input: CreateConfigurationInput!) { createConfiguration(input: $input) { __typename ... on Refusal { code message details { path code } } } }';
    const [namespace] = dataOf<{ id: string }[]>(await ask('GET', '/namespaces', { headers: { 'x-api-key': key } }));
    const input = (values: unknown) => ({ input: { namespaceId: namespace!.id, kind: 'agent', values } });
    const by = { 'x-api-key': key };
    expect((await graphql(`{ node(id: "${mark('a literal of nobody')}") { id } }`, {}, {})).status).toBe(401);
    expect((await graphql(create, input({ token: mark('a variable of somebody without grants') }), await stranger())).said).toContain('FORBIDDEN');
    expect((await graphql(create, input({ constructor: mark('an unsafe variable') }), by)).said).toContain('INVALID_REQUEST');
    expect((await graphql(`{ node(id: "${mark('an id of nothing')}") { id } namespace(id: "${mark('a Namespace of nothing')}") { name } }`, {}, by)).said).toContain('INVALID_REQUEST');
    // A document that does not fit the schema is told back to who wrote it, and to nobody else.
    const misplaced = ['a literal of the wrong type', 'a variable of the wrong type', 'a field there is not'];
    await graphql(`mutation { createNamespace(input: { name: ["${mark(misplaced[0]!)}"] }) { __typename } }`, {}, by, misplaced);
    await graphql('mutation ($input: CreateNamespaceInput!) { createNamespace(input: $input) { __typename } }', { input: { name: { text: mark(misplaced[1]!) } } }, by, misplaced);
    await graphql(`{ ${mark(misplaced[2]!)} }`, {}, by, misplaced);
  });

  it('failures of ours', async () => {
    await database.pool.query(`
      create function refuse_for_canary() returns trigger language plpgsql as $$ begin raise exception 'refused by a test'; end $$;
      create trigger refuse_session before insert on session for each row execute function refuse_for_canary()`);
    const password = secrets.get('the password of the administrator')!;
    expect((await ask('POST', '/api/auth/sign-in/email', { body: { email, password } })).status).toBe(500);
    await database.pool.query('drop trigger refuse_session on session');
  });

  /** Somebody with a key and no grant. */
  const stranger = async (): Promise<Readonly<Record<string, string>>> => {
    const [namespace] = dataOf<{ id: string }[]>(await ask('GET', '/namespaces', { headers: { 'x-api-key': key } }));
    const principal = dataOf<{ id: string }>(await ask('POST', `/namespaces/${namespace!.id}/iam/service-principals`, { headers: { 'x-api-key': key }, body: {} }));
    const issued = await ask('POST', '/api/auth/service-keys', { headers: { 'x-api-key': key }, body: { servicePrincipalId: principal.id, namespaceId: namespace!.id, name: 'stranger' }, told: ['the key of a stranger'] });
    return { 'x-api-key': secret('the key of a stranger', dataOf<{ key: string }>(issued).key) };
  };
});

describe('out comes none', () => {
  beforeAll(async () => {
    // Not even what is kept of them leaves the private tables.
    const { rows } = await database.pool.query<{ password_hash: string; hash: string }>(`select password_hash, '' as hash from account union all select '', encode(secret_hash, 'hex') from service_key union all select '', encode(token_hash, 'hex') from session`);
    rows.forEach(({ password_hash: password, hash }, index) => secret(`hash ${index}`, password || hash));
    expect(secrets.size).toBeGreaterThan(35);
  });

  it('in any table but the private ones, the history among them', async () => {
    const dumped = await tables();
    expect(dumped.map(([name]) => name)).toEqual(expect.arrayContaining(['event', 'work_item', 'namespace_v1']));
    expect(dumped.find(([name]) => name === 'event')![1]).toContain('SignInDenied');
    for (const [name, text] of dumped) expect({ name, found: secretsIn(text) }).toEqual({ name, found: [] });
  });

  it('in an answer, but the one that is there to tell it', () => {
    expect(answers.length).toBeGreaterThan(40);
    for (const { asked, text, told } of answers) expect({ asked, found: secretsIn(text, told) }).toEqual({ asked, found: [] });
  });

  it('in metrics, or in what operators ask', async () => {
    for (const path of ['/metrics', '/readyz', '/healthz', '/openapi.json']) expect({ path, found: secretsIn((await ask('GET', path)).said) }).toEqual({ path, found: [] });
  });

  it('in what auditors read', async () => {
    const query = '{ auditEvents(first: 100) { nodes { type action details actor { principalId } resource { id } } } eventHistory(first: 100) { nodes { type data audit { details } actor { principalId } } } }';
    const { said } = await ask('POST', '/graphql', { headers: { 'x-api-key': key }, body: { query } });
    expect({ errors: said.includes('"errors"') ? said.slice(0, 500) : undefined, found: secretsIn(said) }).toEqual({ errors: undefined, found: [] });
  });

  it('on standard output or error, where a failure of ours was told at length', async () => {
    const { code, stdout, stderr } = await server.stop();
    expect(code).toBe(0);
    expect(stderr).toContain('Request failed');
    expect({ stdout: secretsIn(stdout), stderr: secretsIn(stderr) }).toEqual({ stdout: [], stderr: [] });
  });
});
