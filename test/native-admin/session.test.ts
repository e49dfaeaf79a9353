/** Signing in where the session is shared with Agent hosts. (iam-auth-audit 1.3) */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { agentHost, hashOf } from '../../src/native-admin/domains.ts';
import { startTlsGateway, type TlsGateway } from '../support/tls-gateway.ts';
import { browse } from './browser.ts';
import { consolePage, domain, sharedCookieName, startNativeAdminWorld, type NativeAdminWorld } from './world.ts';

let world: NativeAdminWorld;
let gateway: TlsGateway;
beforeAll(async () => {
  gateway = await startTlsGateway();
  world = await startNativeAdminWorld();
});
afterAll(async () => {
  await world?.close();
  await gateway?.close();
});

const console = new URL(consolePage).host;

it('one sign-in opens the console and the Agent hosts, and one sign-out closes both', async () => {
  const { origin, dataDir } = world.application;
  const place = await world.serving();
  world.endpoints.set(place.agentId, gateway.endpoint);
  const host = agentHost({ domain, consoleOrigin: consolePage, cookieDomain: 'occ.example.com' }, hashOf(world.operator.installationId, place)).host;
  const credentials = await readFile(join(dataDir, 'admin.json'), 'utf8');
  const signedIn = await browse(origin, console, '/api/auth/sign-in/email', { method: 'POST', headers: { origin: consolePage, 'content-type': 'application/json' }, body: credentials });
  const kept = signedIn.headers['set-cookie']!.at(-1)!.split(';')[0]!;
  expect(kept).toMatch(new RegExp(`^${sharedCookieName}=[A-Za-z0-9_-]{43}$`));
  expect(signedIn.headers['set-cookie']!.slice(0, -1).every((cookie) => /^[\w.-]+=; Max-Age=0; Path=\//.test(cookie))).toBe(true);

  const page = (at: string, path: string, cookie = kept) => browse(origin, at, path, { headers: { cookie } });
  expect((await page(console, '/namespaces')).status).toBe(200);
  expect((await page(host, '/')).status).toBe(200);
  expect((await page(console, '/namespaces', kept.replace(sharedCookieName, 'openclaw_occ.session_token'))).status).toBe(401);

  // A page of an Agent shares the cookie, and may change nothing with it.
  const forged = await browse(origin, console, '/namespaces', { method: 'POST', headers: { cookie: kept, origin: `https://${host}`, 'content-type': 'application/json' }, body: '{"name":"forged"}' });
  expect([forged.status, forged.code]).toEqual([403, 'FORBIDDEN']);

  const signedOut = await browse(origin, console, '/api/auth/sign-out', { method: 'POST', headers: { cookie: kept, origin: consolePage } });
  expect(signedOut.headers['set-cookie']!.at(-1)).toBe(`${sharedCookieName}=; Max-Age=0; Domain=occ.example.com; Path=/; HttpOnly; SameSite=Lax; Secure`);
  expect([(await page(console, '/namespaces')).status, (await page(host, '/')).status]).toEqual([401, 401]);
});
