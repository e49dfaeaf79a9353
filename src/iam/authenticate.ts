/** Establishes who is calling from the credentials of a request. (iam-auth-audit 1.2, rest-contract 1.7) */
import type { Actor } from '../kernel/event.ts';
import { newId } from '../kernel/ids.ts';
import type { Clock } from '../runtime/clock.ts';
import { presentedSession, sessionCookieName, type SessionRows } from '../sign-in/sessions.ts';
import type { Authorizer } from './authorizer.ts';
import { unauthenticated, type Caller, type Headers } from './caller.ts';
import type { Keys } from './keys.ts';
import type { Policy } from './policy.ts';

export type Authenticate = (headers: Headers, requestId: string) => Promise<Caller>;

/** A request's id is always the server's own. */
export const newRequestId = (): string => newId('req');

const maxAgeMs = 250;

/** Who calls, once the request has arrived whole: established again where its body was so long in coming that grant, key or session may have ended. */
export const establishedLately = async (caller: Caller, establish: () => Promise<Caller>): Promise<Caller> => (performance.now() - caller.arrivedAt <= maxAgeMs ? caller : establish());

/** An account the history does not know, or no longer: whatever it asks is denied, and audited as nobody's. */
const unresolved: Actor = { principalId: 'unresolved', kind: 'principal', unresolved: true };

const personOf = ({ identities }: Policy, principalId: string): Actor => (identities.get(principalId)?.kind === 'principal' ? { principalId, kind: 'principal' } : unresolved);

/**
 * An `authorization` header is refused whatever else is sent; a key decides alone, a blank one too; sessions of the
 * command line are not built, and their header never falls back to the cookie.
 * @throws Refusal UNAUTHENTICATED, or DEPENDENCY_UNAVAILABLE when policy cannot be read
 */
export const createAuthenticate =
  ({
    authorizer,
    keys,
    sessionRows,
    cookieName = sessionCookieName,
    clock,
  }: {
    readonly authorizer: Authorizer;
    readonly keys: Keys;
    readonly sessionRows: Pick<SessionRows, 'find'>;
    /** The one cookie that carries a session. */
    readonly cookieName?: string;
    readonly clock: Clock;
  }): Authenticate =>
  async (headers, requestId) => {
    const arrivedAt = performance.now();
    if (headers['authorization'] !== undefined || headers['x-occ-cli-session'] !== undefined) throw unauthenticated();
    const text = headers['x-api-key'];
    if (text === undefined) {
      const policy = async () => (await authorizer.current(arrivedAt)).state;
      const session = await presentedSession(headers, { sessionRows, cookieName, policy });
      if (session === undefined) throw unauthenticated();
      return { actor: personOf(await policy(), session.principalId), keyNamespaceId: undefined, sessionKey: session.sessionKey, passwordId: session.passwordId, arrivedAt, requestId };
    }
    const { state } = await authorizer.current(arrivedAt);
    const key = typeof text === 'string' ? await keys.verify(text, state, clock.now()) : undefined;
    if (key === undefined) throw unauthenticated();
    return {
      actor: { principalId: key.servicePrincipalId, kind: 'service_principal', serviceKeyId: key.keyId },
      keyNamespaceId: key.namespaceId,
      arrivedAt,
      requestId,
    };
  };
