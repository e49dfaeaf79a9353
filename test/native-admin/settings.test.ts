/** Settings of the native admin UI that a start refuses, and what becomes of the session cookie when they are right. (agent-lifecycle 9.2, iam-auth-audit 1.3) */
import { describe, expect, it } from 'vitest';
import { readConfig } from '../../src/config.ts';
import { setCookieTexts } from '../../src/http/session-cookie.ts';
import { enabled, sharedCookieName } from './world.ts';

const config = (more: Readonly<Record<string, string | undefined>> = {}) => readConfig({ ...enabled, ...more });
const domain = 'OCC_AGENT_NATIVE_ADMIN_DOMAIN';
const parent = 'OCC_AUTH_COOKIE_DOMAIN';

describe('a start is refused with AGENT_NATIVE_ADMIN_INVALID for', () => {
  it.each<readonly [string, Readonly<Record<string, string | undefined>>, string]>([
    ['no Agent domain', { [domain]: undefined }, domain],
    ['no cookie domain', { [parent]: undefined }, parent],
    ['no base URL', { OCC_AUTH_BASE_URL: undefined }, 'OCC_AUTH_BASE_URL'],
    ['a scheme', { [domain]: 'https://agents.occ.example.com' }, domain],
    ['a port', { [domain]: 'agents.occ.example.com:443' }, domain],
    ['a path', { [domain]: 'agents.occ.example.com/' }, domain],
    ['a wildcard', { [domain]: '*.agents.occ.example.com' }, domain],
    ['a leading dot', { [parent]: '.occ.example.com' }, parent],
    ['a trailing dot', { [parent]: 'occ.example.com.' }, parent],
    ['capitals', { [domain]: 'Agents.occ.example.com' }, domain],
    ['an empty label', { [domain]: 'agents..occ.example.com' }, domain],
    ['an address', { [parent]: '10.0.0.1' }, parent],
    ['one label', { [parent]: 'localhost' }, parent],
    ['no room for the label of an Agent', { [domain]: `${'a'.repeat(60)}.${'a'.repeat(60)}.${'a'.repeat(60)}.${'a'.repeat(20)}.occ.example.com` }, domain],
    ['a public suffix', { [parent]: 'co.uk', [domain]: 'agents.co.uk', OCC_AUTH_BASE_URL: 'https://console.co.uk' }, parent],
    ['a suffix that others hand out', { [parent]: 'github.io', [domain]: 'agents.github.io', OCC_AUTH_BASE_URL: 'https://console.github.io' }, parent],
    ['a console outside the cookie domain', { OCC_AUTH_BASE_URL: 'https://console.example.com' }, 'OCC_AUTH_BASE_URL'],
    ['a console that only ends like it', { OCC_AUTH_BASE_URL: 'https://evilocc.example.com' }, 'OCC_AUTH_BASE_URL'],
    ['Agents outside the cookie domain', { [domain]: 'agents.example.com' }, domain],
    ['Agents that only end like it', { [domain]: 'agents-occ.example.com' }, domain],
    ['a trusted page under the Agent domain', { EXUVIA_TRUSTED_ORIGINS: 'https://page.agents.occ.example.com' }, 'EXUVIA_TRUSTED_ORIGINS'],
    ['production without HTTPS', { OCC_AUTH_BASE_URL: 'http://console.occ.example.com' }, 'OCC_AUTH_BASE_URL'],
  ])('%s', (_, more, named) => {
    expect(() => config(more)).toThrow(new RegExp(`^AGENT_NATIVE_ADMIN_INVALID: ${named} `));
  });
});

it('what is set beside it means nothing while it is off', () => {
  expect(config({ OCC_AGENT_NATIVE_ADMIN_ENABLED: 'false', [domain]: 'no domain' })).toMatchObject({ nativeAdmin: undefined, sessionCookie: { name: 'openclaw_occ.session_token', secure: true } });
});

it('the Agent domain may be the cookie domain, and hold the console', () => {
  expect(config({ [domain]: 'occ.example.com' }).nativeAdmin).toMatchObject({ domain: 'occ.example.com' });
});

describe('the session cookie', () => {
  const session = { value: 'token', maxAgeSeconds: 60 };

  it('is shared under the parent domain, after the earlier ones of the host are taken away', () => {
    const gone = (name: string) => `${name}=; Max-Age=0; Path=/; HttpOnly; SameSite=Lax; Secure`;
    expect(setCookieTexts(session, config().sessionCookie)).toEqual([
      gone('openclaw_occ.session_token'),
      gone('openclaw_occ_shared.session_token'),
      gone(sharedCookieName),
      `${sharedCookieName}=token; Max-Age=60; Domain=occ.example.com; Path=/; HttpOnly; SameSite=Lax; Secure`,
    ]);
  });

  it('has no prefix where HTTPS does not reach', () => {
    const local = { EXUVIA_MODE: 'development', OCC_AUTH_BASE_URL: 'http://console.exuvia.localhost:4000', [domain]: 'agents.exuvia.localhost', [parent]: 'exuvia.localhost' };
    expect(setCookieTexts(session, config(local).sessionCookie).at(-1)).toBe('openclaw_occ_shared.session_token=token; Max-Age=60; Domain=exuvia.localhost; Path=/; HttpOnly; SameSite=Lax');
  });
});
