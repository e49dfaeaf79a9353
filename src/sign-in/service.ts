/** Signing in with a password, and out. (iam-auth-audit 1.4, 5.6 and 6, rest-contract 3.10) */
import { setTimeout as delay } from 'node:timers/promises';
import type { Core } from '../core.ts';
import { ref } from '../iam/authorizer.ts';
import type { Caller, Visitor } from '../iam/caller.ts';
import type { DenialLimit } from '../iam/denial-limit.ts';
import { evaluate } from '../iam/evaluate.ts';
import { Refusal } from '../kernel/errors.ts';
import type { Actor, AuditRecord } from '../kernel/event.ts';
import { accountNamed, canonicalEmail, isCurrentPassword, type AccountRows } from './accounts.ts';
import type { SignInInput } from './input.ts';
import type { SignInLimits } from './limits.ts';
import type { Passwords } from './passwords.ts';
import { createTurns, tooManyFailed } from './turns.ts';
import { newSession, presentedSession, sessionCookieName, sessionLifetimeMs, type SessionRows } from './sessions.ts';

export interface SessionView {
  readonly sessionKey: string;
  readonly user: { readonly id: string; readonly email: string; readonly name: string };
}

export interface SignInService {
  /**
   * Begins a session; its token is for the cookie and nothing else. Guesses beyond the limits wait, one after the other,
   * and a wrong password, an unknown email and an account that never came to be are one answer after the same work.
   * @throws Refusal UNAUTHENTICATED, RATE_LIMITED, DEPENDENCY_UNAVAILABLE when it cannot be recorded
   */
  signIn(visitor: Visitor, input: SignInInput): Promise<{ readonly token: string; readonly lifetimeMs: number }>;
  /** The session of the cookie; null for nobody, and for every other credential. */
  session(visitor: Visitor): Promise<SessionView | null>;
  /** Ends the session of the caller. */
  signOut(caller: Caller): Promise<void>;
}

const wrong = (): Refusal => new Refusal('UNAUTHENTICATED', 'Email and password do not belong together');
const nobody: Actor = { principalId: 'unresolved', kind: 'principal', unresolved: true };

export const createSignInService = ({
  core,
  accountRows,
  sessionRows,
  passwords,
  limits,
  denialLimit,
  wait = delay,
  cookieName = sessionCookieName,
  installationId,
}: {
  readonly core: Pick<Core, 'authorizer' | 'audit'>;
  readonly accountRows: Pick<AccountRows, 'byEmail'>;
  readonly sessionRows: SessionRows;
  readonly passwords: Passwords;
  readonly limits: SignInLimits;
  /** All that are nobody's have one allowance: by one of its own a known email could be told from an unknown one. */
  readonly denialLimit: Pick<DenialLimit, 'take'>;
  readonly wait?: (ms: number) => Promise<unknown>;
  /** The one cookie that carries a session. */
  readonly cookieName?: string;
  readonly installationId: string;
}): SignInService => {
  const { authorizer, audit } = core;
  const resource = ref.installation(installationId);
  const turns = createTurns();
  const login: Pick<AuditRecord, 'action' | 'resource'> = { action: 'authentication.login', resource };

  const begin = async ({ requestId, arrivedAt }: Visitor, { email, password }: SignInInput, waitMs: number): ReturnType<SignInService['signIn']> => {
    const limited = waitMs > 0;
    if (limited) await wait(waitMs);
    const policy = await authorizer.current(limited ? undefined : arrivedAt);
    const account = await accountNamed(accountRows, policy.state, email);
    const kept = account !== undefined && isCurrentPassword(policy.state, account) ? account.passwordHash : undefined;
    const isRight = await passwords.verify(password, kept);
    // An administrator waits like everybody, and is then let in: nobody locks him out by guessing.
    const isAdministrator = account !== undefined && evaluate(policy.state, account.principalId, 'administer', resource).allowed;
    if (limited && !(isRight && isAdministrator)) throw tooManyFailed(waitMs);

    const session = newSession();
    const began = isRight && (await sessionRows.insert({ ...session, userId: account!.userId, passwordHash: account!.passwordHash }, sessionLifetimeMs));
    if (!began) {
      const known = account === undefined ? {} : { principalId: account.principalId };
      denialLimit.take(nobody);
      await audit.record({ actor: nobody, requestId }, { type: 'SignInDenied', data: known }, { kind: 'authorization_denial', ...login, outcome: 'denied', reasonCode: 'INVALID_CREDENTIALS' }, policy.revision);
      throw wrong();
    }
    const { principalId } = account!;
    try {
      await audit.record({ actor: { principalId, kind: 'principal' }, requestId }, { type: 'SignedIn', data: { principalId } }, { kind: 'mutation', ...login, outcome: 'success' }, policy.revision);
    } catch (error) {
      await sessionRows.erase(session.sessionKey);
      throw error;
    }
    return { token: session.token, lifetimeMs: sessionLifetimeMs };
  };

  return {
    signIn: async (visitor, input) => {
      const email = canonicalEmail(input.email);
      const { clientAddress, peerAddress } = visitor;
      const attempt = limits.begin(email, clientAddress);
      const { waitMs } = attempt;
      const judged = () => begin(visitor, input, waitMs);
      try {
        const session = await (waitMs === 0 ? judged() : turns.inTurn(email, clientAddress ?? peerAddress, waitMs, judged));
        attempt.refund();
        return session;
      } catch (error) {
        // Not beyond the limit: there the attempts before it may be forgotten for it already.
        if (waitMs === 0 && (!(error instanceof Refusal) || error.kind === 'unavailable')) attempt.refund();
        throw error;
      }
    },

    session: async ({ headers, arrivedAt }) => {
      if (['authorization', 'x-api-key', 'x-occ-cli-session'].some((name) => headers[name] !== undefined)) return null;
      const policy = async () => (await authorizer.current(arrivedAt)).state;
      const session = await presentedSession(headers, { sessionRows, cookieName, policy });
      return session === undefined ? null : { sessionKey: session.sessionKey, user: { id: session.userId, email: session.email, name: session.name } };
    },

    // The row goes first: what the history calls ended is not alive anywhere. And again, for a database that went back
    // and was compared with the history in between.
    signOut: async (caller) => {
      const { actor, sessionKey } = caller;
      if (sessionKey === undefined || !(await sessionRows.erase(sessionKey))) return;
      await audit.record(caller, { type: 'SignedOut', data: { principalId: actor.principalId, sessionKey } }, { kind: 'mutation', action: 'authentication.session.end', resource, outcome: 'success' }, null);
      await sessionRows.erase(sessionKey);
    },
  };
};
