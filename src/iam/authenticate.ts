/** Establishes who is calling from the credentials of a request. (iam-auth-audit 1.2, rest-contract 1.7) */
import { Refusal } from '../kernel/errors.ts';
import { newId } from '../kernel/ids.ts';
import type { Clock } from '../runtime/clock.ts';
import type { Authorizer } from './authorizer.ts';
import type { Caller } from './caller.ts';
import type { Keys } from './keys.ts';

/** Header values as received: repeated headers joined or listed. */
export type Headers = Readonly<Record<string, string | readonly string[] | undefined>>;

export type Authenticate = (headers: Headers, requestId: string) => Promise<Caller>;

const unauthenticated = (): Refusal => new Refusal('UNAUTHENTICATED', 'A valid session or service key is required');

/** A request's id is always the server's own. */
export const newRequestId = (): string => newId('req');

/**
 * An `authorization` header is refused whatever else is sent; a key decides alone.
 * @throws Refusal UNAUTHENTICATED, or DEPENDENCY_UNAVAILABLE when policy cannot be read
 */
export const createAuthenticate =
  ({ authorizer, keys, clock }: { readonly authorizer: Authorizer; readonly keys: Keys; readonly clock: Clock }): Authenticate =>
  async (headers, requestId) => {
    const arrivedAt = performance.now();
    const text = headers['x-api-key'];
    if (headers['authorization'] !== undefined || typeof text !== 'string') throw unauthenticated();
    const { state } = await authorizer.current(arrivedAt);
    const key = await keys.verify(text, state, clock.now());
    if (key === undefined) throw unauthenticated();
    return {
      actor: { principalId: key.servicePrincipalId, kind: 'service_principal', serviceKeyId: key.keyId },
      keyNamespaceId: key.namespaceId,
      arrivedAt,
      requestId,
    };
  };
