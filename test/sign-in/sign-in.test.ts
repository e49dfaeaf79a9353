/** Signing in and out over real HTTP: the cookie, what a session opens, and what it leaves in the history. (iam-auth-audit 1.2 to 1.5, rest-contract 3.10) */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startTestApplication, type TestApplication } from '../support/app.ts';
import { eventsOf } from '../support/request-events.ts';
import { cookieOf, pageHeaders } from '../support/sign-in.ts';
import { send, useCases as use } from '../support/use-cases.ts';

let application: TestApplication;
let administrator: { readonly email: string; readonly password: string };
beforeAll(async () => {
  application = await startTestApplication({ env: { EXUVIA_ROLES: 'api,projector' } });
  administrator = JSON.parse(await readFile(join(application.dataDir, 'admin.json'), 'utf8')) as typeof administrator;
});
afterAll(() => application?.close());

const ask = async (method: string, path: string, headers: Readonly<Record<string, string>> = {}, body?: unknown) => {
  const response = await fetch(application.origin + path, {
    method,
    headers: { ...headers, ...(body !== undefined && { 'content-type': 'application/json' }) },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  });
  const { data, error, meta } = (await response.json()) as { data?: unknown; error?: { code: string; message: string; details?: unknown }; meta: { requestId: string } };
  return { status: response.status, code: error?.code, message: error?.message, details: error?.details, data, headers: response.headers, requestId: meta.requestId };
};
const signIn = (credentials: object = administrator, headers: Readonly<Record<string, string>> = {}) => ask('POST', '/api/auth/sign-in/email', headers, credentials);
const signedIn = async (): Promise<string> => cookieOf((await signIn()).headers);
const namespaces = (headers: Readonly<Record<string, string>>) => ask('GET', '/namespaces', headers);

describe('signing in', () => {
  it('sets the cookie, and says nothing of it in the answer', async () => {
    const answer = await signIn();
    expect(answer).toMatchObject({ status: 200, data: { authenticated: true } });
    expect(answer.headers.get('set-cookie')).toMatch(/^openclaw_occ\.session_token=[A-Za-z0-9_-]{43}; Max-Age=604800; Path=\/; HttpOnly; SameSite=Lax$/);
    const events = await eventsOf(application.database, answer.requestId);
    expect(events).toMatchObject([{ type: 'SignedIn', metadata: { actor: { kind: 'principal' }, audit: { action: 'authentication.login', outcome: 'success' } } }]);
  });

  it('opens both edges to the person', async () => {
    const cookie = await signedIn();
    expect(await namespaces({ cookie })).toMatchObject({ status: 200, data: [{ name: 'default' }] });
    expect(await send('GraphQL', application.origin, use.listNamespaces(), pageHeaders(cookie))).toMatchObject({ code: null, data: [{ name: 'default' }] });
    const created = await send('REST', application.origin, use.createNamespace({ name: 'by a person' }), pageHeaders(cookie));
    expect(created.status).toBe(201);
    const [{ metadata } = { metadata: undefined }] = await eventsOf(application.database, created.requestId);
    expect(metadata!.actor).toEqual({ kind: 'principal', principalId: expect.stringMatching(/^prn_/) as string });
  });
});
