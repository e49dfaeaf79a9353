/** The `Set-Cookie` header of a session. (iam-auth-audit 1.3) */
import { sessionCookieName } from '../sign-in/sessions.ts';

export interface SessionCookie {
  readonly value: string;
  /** Zero takes it away. */
  readonly maxAgeSeconds: number;
}

export const setCookieText = ({ value, maxAgeSeconds }: SessionCookie, mode: 'development' | 'production'): string =>
  `${sessionCookieName}=${value}; Max-Age=${maxAgeSeconds}; Path=/; HttpOnly; SameSite=Lax${mode === 'production' ? '; Secure' : ''}`;
