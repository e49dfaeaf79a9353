/** Who is calling, as an edge has established it. (iam-auth-audit 1.1) */
import type { Actor } from '../kernel/event.ts';

/** What bounds the denials that one request may leave in the history. */
export interface DenialAllowance {
  /** @throws Refusal RATE_LIMITED once the request has ended */
  assertOpen(): void;
  /** Takes one denial; the one too many ends the request. @throws Refusal RATE_LIMITED */
  use(): void;
}

export interface Caller {
  readonly actor: Actor;
  /** Set for a service key frozen to one Namespace: elsewhere it is refused. */
  readonly keyNamespaceId: string | undefined;
  /** When the request arrived, by `performance.now()`: policy read since then is fresh enough to judge it. */
  readonly arrivedAt: number;
  /** Repeated in the answer and carried by every event of the request. */
  readonly requestId: string;
  /** Set where one request asks for many things. */
  readonly denials?: DenialAllowance;
}
