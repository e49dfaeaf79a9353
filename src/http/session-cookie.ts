/** The `Set-Cookie` headers of a session. (iam-auth-audit 1.3) */
import { sessionCookieName, sharedCookieName, type SessionCookieSettings } from '../sign-in/sessions.ts';

export interface SessionCookie {
  readonly value: string;
  /** Zero takes it away. */
  readonly maxAgeSeconds: number;
}

const text = (name: string, { value, maxAgeSeconds }: SessionCookie, { secure, domain }: Omit<SessionCookieSettings, 'name'>): string =>
  `${name}=${value}; Max-Age=${maxAgeSeconds};${domain === undefined ? '' : ` Domain=${domain};`} Path=/; HttpOnly; SameSite=Lax${secure ? '; Secure' : ''}`;

/** A shared cookie takes earlier ones of the host alone away first: beside it they would count as a second session. */
export const setCookieTexts = (cookie: SessionCookie, settings: SessionCookieSettings): readonly string[] => {
  const { name, secure, domain } = settings;
  const earlier = domain === undefined ? [] : [...new Set([sessionCookieName, sharedCookieName, name])];
  return [...earlier.map((one) => text(one, { value: '', maxAgeSeconds: 0 }, { secure })), text(name, cookie, settings)];
};
