/** Who is calling, as an edge has established it. (iam-auth-audit 1.1) */
import type { Actor } from '../kernel/event.ts';

export interface Caller {
  readonly actor: Actor;
  /** Set for a service key frozen to one Namespace: elsewhere it is refused. */
  readonly keyNamespaceId: string | undefined;
  /** When the request arrived, by `performance.now()`: policy read since then is fresh enough to judge it. */
  readonly arrivedAt: number;
  /** Repeated in the answer and carried by every event of the request. */
  readonly requestId: string;
}
