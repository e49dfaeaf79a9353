/**
 * Judges callers by the policy at the tail of the `iam` stream: one state per process, one refresh shared by
 * all requests that arrived before it began, never a cache that outlives a revocation.
 * (architecture section 5, iam-auth-audit 8.2, failure scenarios 3 and 26)
 */
import { setImmediate } from 'node:timers/promises';
import { iam } from '../aggregates.ts';
import type { AuditLog } from '../audit/audit-log.ts';
import { Refusal, unavailable, type Code } from '../kernel/errors.ts';
import type { ResourceKind, ResourceRef } from '../kernel/event.ts';
import type { Sent } from '../kernel/parse.ts';
import type { Loaded, Streams } from '../runtime/streams.ts';
import { isCurrentPassword } from '../sign-in/accounts.ts';
import { unauthenticated, type Caller } from './caller.ts';
import type { DenialLimit } from './denial-limit.ts';
import { evaluate, identityProblem, type Action, type Verdict } from './evaluate.ts';
import type { Policy } from './policy.ts';

/** What a request wants to do, as the audit names it. */
export interface Operation {
  /** For example `openclaw.agents.create`. */
  readonly action: string;
  /** Of the Namespace in its path, if there is one: only there a principal or key of a Namespace is known. */
  readonly resource: ResourceRef;
  /** What it answers while there is no Installation, where that is not NOT_FOUND. */
  readonly unfounded?: Code;
}

export type Permission = readonly [action: Action, resource: ResourceRef];

/** A permission that was granted, and the guard that grants it again right before an append. */
export interface Grant {
  readonly policyRevision: number;
  /** The permission asked for first, as the audit record carries it. */
  readonly authorization: { readonly principalId: string; readonly action: string; readonly resource: ResourceRef };
  /** Judges again if the policy moved or is older than 250 ms; completes the context of the append. @throws Refusal UNAUTHENTICATED, FORBIDDEN */
  readonly guard: () => Promise<{ readonly policyRevision: number }>;
}

export interface Authorizer {
  /** The policy at the tail of its stream, read since a moment by `performance.now()` (without one: from now on). @throws Refusal DEPENDENCY_UNAVAILABLE */
  current(since?: number): Promise<Loaded<Policy>>;
  /**
   * Whether the caller is anybody here: known, no Agent's own, and asking in the Namespace of his principal and key.
   * A refusal is audited as one of the permission that would be judged first. (rest-contract 1.1 step 9)
   * @throws Refusal UNAUTHENTICATED, FORBIDDEN, RATE_LIMITED and DEPENDENCY_UNAVAILABLE as {@link Authorizer.require}, NOT_FOUND while there is no Installation
   */
  identify(caller: Caller, operation: Operation, first: Permission): Promise<void>;
  /**
   * What was sent, opened between the identity and the Installation. (rest-contract 1.1 steps 9 to 11)
   * @throws Refusal as {@link Authorizer.identify}, INVALID_REQUEST for what is not safe
   */
  receive<T>(caller: Caller, operation: Operation, first: Permission, sent: Sent<T>): Promise<T>;
  /**
   * Identity and Installation, then all permissions, in order; the first refused one is audited.
   * @throws Refusal UNAUTHENTICATED for who came in with a key or password that has ended since, NOT_FOUND while there is no Installation, FORBIDDEN with one generic message, RATE_LIMITED once the caller's allowance of denials is used up,
   *   or DEPENDENCY_UNAVAILABLE when the denial cannot be recorded
   */
  require(caller: Caller, operation: Operation, permissions: readonly Permission[]): Promise<Grant>;
  /** Records a refusal that is about more than one permission, and returns it. */
  denied(caller: Caller, operation: Operation, refused: Permission, refusal: Refusal, details: Readonly<Record<string, unknown>>, reasonCode?: string): Promise<Refusal>;
  /** Judges without a record: for lists, for what a page may offer, and for the worker. */
  may(principalId: string, action: Action, resource: ResourceRef): Promise<Verdict>;
  /** Judges without a record, by the policy the request is judged by: for what a page may offer. */
  permits(caller: Caller, action: Action, resource: ResourceRef): Promise<boolean>;
}

const maxAgeMs = 250;
const nextTurn = (): Promise<unknown> => setImmediate();

/** What every denied caller is told. */
export const forbidden = (): Refusal => new Refusal('FORBIDDEN', 'You do not have permission for this operation');

/** References as policy knows them: a Namespace carries its own id, a collection the id of its Namespace. */
export const ref = {
  installation: (id: string): ResourceRef => ({ kind: 'installation', id }),
  namespace: (id: string): ResourceRef => ({ kind: 'namespace', id, namespaceId: id }),
  collection: (kind: ResourceKind, namespaceId: string): ResourceRef => ({ kind, id: namespaceId, namespaceId }),
  in: (kind: ResourceKind, namespaceId: string, id: string): ResourceRef => ({ kind, id, namespaceId }),
};

/** A key counts only in the scope its principal had when it was issued. (iam-auth-audit 1.6) */
export const isOutOfScope = (policy: Policy, { actor, keyNamespaceId }: Caller): boolean => {
  const principal = policy.identities.get(actor.principalId);
  return actor.serviceKeyId !== undefined && principal !== undefined && principal.namespaceId !== keyNamespaceId;
};

/** Whether the key a caller came in with, or the password of his session, counts no more: what he began with it is not gone on with. (failure scenario 3) */
export const hasEnded = (policy: Policy, { actor: { principalId, serviceKeyId }, sessionKey, passwordId = null }: Caller): boolean =>
  (serviceKeyId !== undefined && !policy.keys.has(serviceKeyId)) || (sessionKey !== undefined && !isCurrentPassword(policy, { principalId, passwordId }));

/** Why a caller is nobody in a place, whatever he asks for there; undefined for one who is somebody. (iam-auth-audit 2.6 step 12) */
const callerProblem = (policy: Policy, caller: Caller, namespaceId: string | undefined): string | undefined => {
  const { actor, keyNamespaceId } = caller;
  if (isOutOfScope(policy, caller)) return 'The principal has another scope than the key';
  if (keyNamespaceId !== undefined && keyNamespaceId !== namespaceId) return 'The key counts in its own Namespace alone';
  if (policy.identities.get(actor.principalId)?.agentId !== undefined) return 'The identity is the one of an Agent';
  return identityProblem(policy, actor.principalId, namespaceId);
};

export const createAuthorizer = ({ streams, audit, denialLimit }: { readonly streams: Streams; readonly audit: AuditLog; readonly denialLimit: Pick<DenialLimit, 'take'> }): Authorizer => {
  let running: Promise<unknown> = Promise.resolve();
  let gathering: Promise<Loaded<Policy>> | undefined;
  let latest: { readonly policy: Loaded<Policy>; readonly at: number } | undefined;

  const refresh = async (): Promise<Loaded<Policy>> => {
    const at = performance.now();
    try {
      const policy = await streams.load(iam, '');
      if (latest === undefined || policy.revision >= latest.policy.revision) latest = { policy, at };
      return policy;
    } catch (error) {
      throw error instanceof Refusal ? error : unavailable('policy', error);
    }
  };

  /** The first refresh that starts after this call: all who ask in one turn of the event loop share it. */
  const refreshed = (): Promise<Loaded<Policy>> => {
    gathering ??= running
      .then(nextTurn, nextTurn)
      .then(() => {
        gathering = undefined;
        const started = refresh();
        running = started;
        return started;
      });
    return gathering;
  };

  const current = async (since = Infinity): Promise<Loaded<Policy>> => (latest !== undefined && latest.at >= since ? latest.policy : refreshed());

  const judge = (policy: Policy, caller: Caller, [action, resource]: Permission, namespaceId = resource.namespaceId): Verdict => {
    const verdict = evaluate(policy, caller.actor.principalId, action, resource);
    const problem = callerProblem(policy, caller, namespaceId);
    return problem === undefined ? verdict : { ...verdict, allowed: false, reason: problem };
  };

  const denied: Authorizer['denied'] = async (caller, operation, [action, resource], refusal, details, reasonCode = 'AUTHORIZATION_DENIED') => {
    const namespaceId = operation.resource.namespaceId;
    caller.denials?.use();
    denialLimit.take(caller.actor);
    await audit.record(
      caller,
      { type: 'AuthorizationDenied', data: namespaceId === undefined ? {} : { namespaceId } },
      {
        kind: 'authorization_denial',
        action: operation.action,
        resource: operation.resource,
        outcome: 'denied',
        reasonCode,
        authorization: { principalId: caller.actor.principalId, action, resource },
        details,
      },
      latest?.policy.revision ?? null,
    );
    return refusal;
  };

  const refused = (caller: Caller, operation: Operation, permission: Permission, { reason, evidence }: Verdict): Promise<Refusal> =>
    denied(caller, operation, permission, forbidden(), { ...evidence, decisionReason: reason });

  const judgeAll = async (policy: Loaded<Policy>, caller: Caller, operation: Operation, permissions: readonly Permission[]): Promise<number> => {
    for (const permission of permissions) {
      const verdict = judge(policy.state, caller, permission);
      if (!verdict.allowed) throw await refused(caller, operation, permission, verdict);
    }
    return policy.revision;
  };

  const assertNotEnded = ({ state }: Loaded<Policy>, caller: Caller): void => {
    if (hasEnded(state, caller)) throw unauthenticated();
  };

  /** The policy by which the caller is somebody. */
  const identified = async (caller: Caller, operation: Operation, first: Permission): Promise<Loaded<Policy>> => {
    caller.denials?.assertOpen();
    const policy = await current(caller.arrivedAt);
    assertNotEnded(policy, caller);
    const { namespaceId } = operation.resource;
    if (callerProblem(policy.state, caller, namespaceId) !== undefined) throw await refused(caller, operation, first, judge(policy.state, caller, first, namespaceId));
    return policy;
  };

  const founded = (policy: Loaded<Policy>, { unfounded = 'NOT_FOUND' }: Operation): Loaded<Policy> => {
    if (policy.state.installation === null) throw new Refusal(unfounded, 'The Installation does not exist yet');
    return policy;
  };

  return {
    current,
    denied,
    identify: async (caller, operation, first) => {
      founded(await identified(caller, operation, first), operation);
    },
    receive: async (caller, operation, first, sent) => {
      const policy = await identified(caller, operation, first);
      const value = sent.open();
      founded(policy, operation);
      return value;
    },
    require: async (caller, operation, permissions) => {
      const first = permissions[0]!;
      const policy = founded(await identified(caller, operation, first), operation);
      const policyRevision = await judgeAll(policy, caller, operation, permissions);
      const [action, resource] = first;
      return {
        policyRevision,
        authorization: { principalId: caller.actor.principalId, action, resource },
        guard: async () => {
          const recent = latest !== undefined && performance.now() - latest.at <= maxAgeMs ? latest.policy : await current();
          if (recent.revision === policyRevision) return { policyRevision };
          assertNotEnded(recent, caller);
          return { policyRevision: await judgeAll(recent, caller, operation, permissions) };
        },
      };
    },
    permits: async (caller, action, resource) => judge((await current(caller.arrivedAt)).state, caller, [action, resource]).allowed,
    may: async (principalId, action, resource) => evaluate((await current()).state, principalId, action, resource),
  };
};
