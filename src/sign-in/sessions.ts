/** Sessions of people: the cookie that carries one, the private row it is found by, and what narrows a request to it. (iam-auth-audit 1.2 to 1.4) */
import { createHash, randomBytes } from 'node:crypto';
import { unauthenticated, type Headers } from '../iam/caller.ts';
import type { Policy } from '../iam/policy.ts';
import { isCurrentPassword } from './accounts.ts';

/** How the cookie of a session is called, and where browsers send it. */
export interface SessionCookieSettings {
  readonly name: string;
  /** Over HTTPS only. */
  readonly secure: boolean;
  /** The parent domain it is shared under; without one it is for the host that set it. */
  readonly domain?: string;
}

export const sessionCookieName = 'openclaw_occ.session_token';
/** The name without its prefix of a cookie that is shared with other hosts. */
export const sharedCookieName = 'openclaw_occ_shared.session_token';

export const hostCookie = (secure: boolean): SessionCookieSettings => ({ name: sessionCookieName, secure });
export const sharedCookie = (domain: string, secure: boolean): SessionCookieSettings => ({ name: secure ? `__Secure-${sharedCookieName}` : sharedCookieName, secure, domain });

/** From sign-in; use does not extend it. */
export const sessionLifetimeMs = 7 * 24 * 60 * 60 * 1000;

export interface FoundSession {
  /** Public: tells one session from another and opens none. */
  readonly sessionKey: string;
  readonly userId: string;
  readonly principalId: string;
  readonly email: string;
  readonly name: string;
  /** The password it was begun with; null for the first one of an account. */
  readonly passwordId: string | null;
}

/** Private rows of sessions. Only a hash of the token is kept, and time is the database's. */
export interface SessionRows {
  /** Begins a session while the account still has the password that was checked; answers whether it does. Forgets sessions that have expired. */
  insert(session: { readonly sessionKey: string; readonly tokenHash: Buffer; readonly userId: string; readonly passwordHash: string }, lifetimeMs: number): Promise<boolean>;
  /**
   * The session of a token, unless it has expired.
   * @throws Refusal DEPENDENCY_UNAVAILABLE while sessions are not compared with the history on a server that took the place of another (failure scenario 9)
   */
  find(tokenHash: Buffer): Promise<FoundSession | undefined>;
  /** Answers whether there was one. */
  erase(sessionKey: string): Promise<boolean>;
  /** Sessions by key, and all sessions of some Principals; answers how many there were. */
  eraseMany(ended: { readonly sessionKeys: readonly string[]; readonly principalIds: readonly string[] }): Promise<number>;
  /** All of them; answers how many. */
  eraseAll(): Promise<number>;
}

const hashOf = (token: string): Buffer => createHash('sha256').update(token).digest();

/** A fresh session: the token for the cookie, the hash to keep, and a key that comes from neither. */
export const newSession = (): { readonly token: string; readonly tokenHash: Buffer; readonly sessionKey: string } => {
  const token = randomBytes(32).toString('base64url');
  return { token, tokenHash: hashOf(token), sessionKey: randomBytes(16).toString('base64url') };
};

const tokenText = /^[A-Za-z0-9_-]{43}$/;

/** The values of every cookie with this name; Node has joined repeated headers. */
const tokensIn = (cookies: string, wanted: string): readonly string[] =>
  cookies.split(';').flatMap((cookie) => {
    const [name = '', ...value] = cookie.split('=');
    return name.trim() === wanted && value.length > 0 ? [value.join('=').trim()] : [];
  });

/**
 * The session of a request's cookie with this name, unless its account has another password since; of two cookies neither counts.
 * @throws Refusal UNAUTHENTICATED when `x-occ-session-key` does not name that session; DEPENDENCY_UNAVAILABLE when it cannot be judged
 */
export const presentedSession = async (
  { cookie, 'x-occ-session-key': named }: Headers,
  { sessionRows, cookieName, policy }: { readonly sessionRows: Pick<SessionRows, 'find'>; readonly cookieName: string; readonly policy: () => Promise<Policy> },
): Promise<FoundSession | undefined> => {
  const [token, another] = typeof cookie === 'string' ? tokensIn(cookie, cookieName) : [];
  if (token === undefined || another !== undefined || !tokenText.test(token)) return undefined;
  const session = await sessionRows.find(hashOf(token));
  if (session !== undefined && !isCurrentPassword(await policy(), session)) return undefined;
  if (session !== undefined && named !== undefined && named !== session.sessionKey) throw unauthenticated();
  return session;
};
