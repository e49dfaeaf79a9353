/** Who is calling, as an edge has established it. (iam-auth-audit 1.1, 1.2) */
import { Refusal } from '../kernel/errors.ts';
import type { Actor } from '../kernel/event.ts';

/** Header values as received: repeated headers joined or listed. */
export type Headers = Readonly<Record<string, string | readonly string[] | undefined>>;

/** A request before anybody is known to stand behind it. */
export interface Visitor {
  readonly headers: Headers;
  /** The client's address as a trusted proxy tells it. Evidence of nothing: guesses are counted by it. */
  readonly clientAddress: string | undefined;
  /** The other end of the connection, which may be a proxy's. */
  readonly peerAddress: string;
  /** When the request arrived, by `performance.now()`: policy read since then is fresh enough to judge it. */
  readonly arrivedAt: number;
  /** Repeated in the answer and carried by every event of the request. */
  readonly requestId: string;
}

/** What bounds the denials that one request may leave in the history. */
export interface DenialAllowance {
  /** @throws Refusal RATE_LIMITED once the request has ended */
  assertOpen(): void;
  /** Takes one denial; the one too many ends the request. @throws Refusal RATE_LIMITED */
  use(): void;
}

export interface Caller extends Pick<Visitor, 'arrivedAt' | 'requestId'> {
  readonly actor: Actor;
  /** Set for a service key frozen to one Namespace: elsewhere it is refused. */
  readonly keyNamespaceId: string | undefined;
  /** The session of a person who has signed in. */
  readonly sessionKey?: string;
  /** The password that session was begun with; null for the first one of an account. */
  readonly passwordId?: string | null;
  /** Set where one request asks for many things. */
  readonly denials?: DenialAllowance;
}

/** What everybody is told who could not be identified. */
export const unauthenticated = (): Refusal => new Refusal('UNAUTHENTICATED', 'A valid session or service key is required');
