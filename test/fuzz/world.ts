/** What the random requests are about: one application, credentials of every kind, and ids of things that exist in several states. */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { cookieOf } from '../support/sign-in.ts';
import { openOperator, permissionOf, type TestOperator, type TestPrincipal } from '../support/principals.ts';
import { startTestApplication, type TestApplication } from '../support/app.ts';
import { send, useCases as use, type UseCase } from '../support/use-cases.ts';
import { newId, type Prefix } from '../../src/kernel/ids.ts';
import { createLogger } from '../../src/telemetry/logger.ts';

export interface Credential {
  /** As a failure names it. */
  readonly name: string;
  readonly headers: Readonly<Record<string, string>>;
}

export interface World {
  readonly application: TestApplication;
  readonly operator: TestOperator;
  /** By kind; a request picks a kind first. */
  readonly credentials: Readonly<Record<'none' | 'junk' | 'stranger' | 'partial' | 'administrator', readonly Credential[]>>;
  /** Ids with this prefix, newest first: of things that exist, or once did; the last one never did. */
  ids(prefix: string): readonly string[];
  /** Remembers an id that an answer told. */
  learn(id: string): void;
  /** Other things instead of those the requests have worn out. */
  renew(): Promise<void>;
  /** What the log says of failed requests; emptied by who reads it. */
  readonly complaints: string[];
  close(): Promise<void>;
}

const keptIds = 6;

/** No worker runs: what it would find is told, and nothing moves between two requests. */
export const createWorld = async (): Promise<World> => {
  const complaints: string[] = [];
  const log = createLogger({ level: 'error', to: { write: (line) => void (line.includes('"requestId"') && complaints.push(line)) } });
  const application = await startTestApplication({ log, env: { EXUVIA_ROLES: 'api,projector', EXUVIA_MODE: 'production', OCC_AUTH_BASE_URL: 'https://console.example' } });
  const { origin, key } = application;
  const operator = await openOperator(application);

  const known = new Map<string, string[]>();
  const learn = (id: string): void => {
    const [prefix = ''] = id.split('_');
    const ids = known.get(prefix) ?? [];
    if (ids.includes(id)) return;
    ids.unshift(id);
    known.set(prefix, ids.slice(0, keptIds));
  };
  const did = async (useCase: UseCase): Promise<string> => {
    const { code, message, data } = await send('REST', origin, useCase, key);
    if (code !== null) throw new Error(`The administrator was refused: ${code}, ${message}`);
    const { id } = data as { id: string };
    learn(id);
    return id;
  };

  const { email, password } = JSON.parse(await readFile(join(application.dataDir, 'admin.json'), 'utf8')) as { email: string; password: string };
  const signIn = async (): Promise<string> => {
    const response = await fetch(`${origin}/api/auth/sign-in/email`, { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify({ email, password }) });
    return cookieOf(response.headers);
  };
  const page = { origin: 'https://console.example' };
  const person = { name: 'the administrator in person', headers: { ...page, cookie: '' } };
  const leftover = { ...page, cookie: await signIn() };
  await fetch(`${origin}/api/auth/sign-out`, { method: 'POST', headers: leftover });

  let renewals = 0;
  const renew = async (): Promise<void> => {
    const number = ++renewals;
    const namespaceId = await did(use.createNamespace({ name: `world ${number}` }));
    await operator.tell.namespaceReady(namespaceId);
    await did(use.createNamespace({ name: `unready ${number}` }));
    const configurationId = await did(use.createConfiguration(namespaceId, { kind: 'agent', values: {} }));
    const agentIn = (state: string) => did(use.createAgent(namespaceId, { name: `${state} ${number}`, configurationId, harnessAuth: { method: 'runtime' } }));
    const [deleted, stopped, deployed] = [await agentIn('deleted'), await agentIn('stopped'), await agentIn('deployed')];
    await did(use.deleteAgent({ namespaceId, agentId: deleted }));
    await did(use.stopAgent({ namespaceId, agentId: stopped }));
    await did(use.deployAgent({ namespaceId, agentId: deployed }));
    learn(namespaceId);
    person.headers.cookie = await signIn();
  };
  await renew();

  const strangers = await Promise.all(Array.from({ length: 30 }, () => operator.principal()));
  const reader = await operator.principal();
  await reader.grant(['namespace:read', 'agent:read', 'agent_revision:read', 'configuration:read', 'installation:read'].map(permissionOf));
  const worker = await operator.principal();
  await worker.grant(['agent:read', 'agent:update', 'agent:operate', 'agent:deploy', 'configuration:read', 'configuration:update'].map(permissionOf));
  const local = await operator.principal({ namespaceId: known.get('ns')!.at(-1) });
  await local.grant(['namespace:read', 'agent:read', 'agent:create', 'configuration:read'].map(permissionOf), { namespaceId: known.get('ns')!.at(-1)! });
  const revoked = await operator.principal();
  await operator.revokeKey(revoked.keyId);

  const of = (name: string, { key: text }: Pick<TestPrincipal, 'key'>): Credential => ({ name, headers: { 'x-api-key': text } });
  return {
    application,
    operator,
    complaints,
    credentials: {
      none: [{ name: 'none', headers: {} }],
      junk: [
        of('a blank key', { key: '' }),
        of('a word', { key: 'lobster' }),
        of('a key with another secret', { key: `${key.slice(0, -4)}AAAA` }),
        of('a key nobody has', { key: key.replace(/key_[0-9a-f-]+/, newId('key')) }),
        of('a revoked key', revoked),
        { name: 'a bearer', headers: { authorization: `Bearer ${key}` } },
        { name: 'a bearer beside a key', headers: { authorization: 'Bearer x', 'x-api-key': key } },
        { name: 'a cookie', headers: { cookie: 'openclaw_occ.session_token=lobster' } },
        { name: 'a cookie of the page', headers: { cookie: 'openclaw_occ.session_token=lobster', origin: 'https://console.example', 'sec-fetch-site': 'same-origin' } },
        { name: 'a session that was ended', headers: leftover },
        { name: 'a CLI session', headers: { 'x-occ-cli-session': 'occcli_lobster' } },
      ],
      stranger: strangers.map((principal, index) => of(`stranger ${index}`, principal)),
      partial: [of('a reader', reader), of('a worker', worker), of('somebody of one Namespace', local)],
      administrator: [of('the administrator', { key }), person],
    },
    ids: (prefix) => [...(known.get(prefix) ?? []), newId(prefix as Prefix)],
    learn,
    renew,
    close: async () => {
      await operator.close();
      await application.close();
    },
  };
};
