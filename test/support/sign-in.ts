/** People who sign in: their parts of a process, cheap hashing, and what a browser keeps and sends. */
import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Pool } from 'pg';
import { createAccountRows, createSessionRows } from '../../src/postgres/private-rows.ts';
import type { SignInParts } from '../../src/services.ts';
import { createSignInLimits } from '../../src/sign-in/limits.ts';
import { createPasswords, type Derive } from '../../src/sign-in/passwords.ts';

/** Hashes that cost nothing, for tests of everything else. */
export const cheaply: Derive = async (password, salt, length) => createHash('shake256', { outputLength: length }).update(salt).update(password).digest();

export const signInParts = (pool: Pool): SignInParts => ({
  accountRows: createAccountRows(pool),
  sessionRows: createSessionRows(pool),
  passwords: createPasswords(cheaply),
  limits: createSignInLimits({ now: () => performance.now(), onLimit: () => {} }),
  denialLimit: { take: () => {} },
});

/** Where the pages of a test application come from. */
export const consoleOrigin = 'http://localhost:3000';

/** The headers of a page with a session that may change state. */
export const pageHeaders = (cookie: string): Readonly<Record<string, string>> => ({ cookie, origin: consoleOrigin });

/** What a browser keeps of an answer: the cookie without its attributes. */
export const cookieOf = (headers: Headers): string => headers.get('set-cookie')!.split(';')[0]!;

/** Signs in with what `admin.json` in a data folder says, or another password; answers the status and the cookie. */
export const signInAsAdministrator = async ({ origin, dataDir }: { readonly origin: string; readonly dataDir: string }, password?: string): Promise<{ readonly status: number; readonly cookie: string }> => {
  const credentials = JSON.parse(await readFile(join(dataDir, 'admin.json'), 'utf8')) as { email: string; password: string };
  const body = JSON.stringify(password === undefined ? credentials : { ...credentials, password });
  const { status, headers } = await fetch(`${origin}/api/auth/sign-in/email`, { method: 'POST', headers: { 'content-type': 'application/json' }, body });
  return { status, cookie: status === 200 ? cookieOf(headers) : '' };
};

/** Whether a cookie opens anything. */
export const isAlive = async (origin: string, cookie: string): Promise<boolean> => (await fetch(`${origin}/namespaces`, { headers: { cookie } })).status === 200;
