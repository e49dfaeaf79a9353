/**
 * How many denials of one principal this process records: a burst, then so many a second; of the others one summary a
 * minute, so that nobody fills the history by asking. (architecture section 3, failure scenario 25)
 */
import type { AuditLog } from '../audit/audit-log.ts';
import { Refusal } from '../kernel/errors.ts';
import type { Actor } from '../kernel/event.ts';
import { timestamp, type Clock } from '../runtime/clock.ts';

const burst = 100;
const perSecond = 10;
const summariseEveryMs = 60_000;
/** Principals remembered at once; the one that was denied longest ago is forgotten first. */
const mostPrincipals = 10_000;

interface Bucket {
  readonly tokens: number;
  readonly filledAt: number;
}

interface Suppressed {
  readonly actor: Pick<Actor, 'principalId' | 'kind'>;
  readonly from: number;
  readonly to: number;
  readonly count: number;
}

export interface DenialLimit {
  /** Takes one denial of a caller. @throws Refusal RATE_LIMITED for one too many, which is only counted */
  take(actor: Actor): void;
  /** Records what was suppressed since the last time; what cannot be recorded now is kept for the next. Runs every minute by itself. */
  summarise(): Promise<void>;
  /** Records the rest. */
  close(): Promise<void>;
}

export const createDenialLimit = ({
  audit,
  clock,
  installationId,
  onSuppressed = () => {},
  onError = () => {},
}: {
  readonly audit: AuditLog;
  readonly clock: Clock;
  readonly installationId: string;
  readonly onSuppressed?: () => void;
  /** A summary could not be recorded. */
  readonly onError?: (error: unknown) => void;
}): DenialLimit => {
  /** By principal, the one denied longest ago first. */
  const buckets = new Map<string, Bucket>();
  /** By principal: a handful, each has used up a burst within the minute. */
  const suppressed = new Map<string, Suppressed>();

  const filled = (principalId: string, now: number): number => {
    const { tokens, filledAt } = buckets.get(principalId) ?? { tokens: burst, filledAt: now };
    return Math.min(burst, tokens + (Math.max(0, now - filledAt) / 1000) * perSecond);
  };

  const remember = (principalId: string, bucket: Bucket): void => {
    buckets.delete(principalId);
    buckets.set(principalId, bucket);
    if (buckets.size > mostPrincipals) buckets.delete(buckets.keys().next().value!);
  };

  const record = async ({ actor, from, to, count }: Suppressed): Promise<void> => {
    const data = { principalId: actor.principalId, from: timestamp(from), to: timestamp(to), count };
    const resource = { kind: 'installation', id: installationId } as const;
    await audit.record(
      { actor, requestId: null },
      { type: 'DenialsSuppressed', data },
      { kind: 'authorization_denial', action: 'openclaw.iam.denials.suppress', resource, outcome: 'denied', reasonCode: 'RATE_LIMITED', details: { count } },
      null,
    );
  };

  const summariseNow = async (): Promise<void> => {
    const due = [...suppressed];
    suppressed.clear();
    const each = async ([principalId, one]: readonly [string, Suppressed]): Promise<void> => {
      try {
        await record(one);
      } catch (error) {
        const later = suppressed.get(principalId);
        suppressed.set(principalId, later === undefined ? one : { ...later, from: one.from, count: one.count + later.count });
        onError(error);
      }
    };
    await Promise.all(due.map(each));
  };

  let summarised = Promise.resolve();
  /** One after the other: the last one, at the end, takes with it what an earlier one could not record. */
  const summarise = (): Promise<void> => (summarised = summarised.then(summariseNow));

  const timer = setInterval(() => void summarise(), summariseEveryMs);
  timer.unref();

  return {
    take: ({ principalId, kind }) => {
      const now = clock.now();
      const tokens = filled(principalId, now);
      if (tokens >= 1) return remember(principalId, { tokens: tokens - 1, filledAt: now });
      remember(principalId, { tokens, filledAt: now });
      const { from = now, count = 0 } = suppressed.get(principalId) ?? {};
      suppressed.set(principalId, { actor: { principalId, kind }, from, to: now, count: count + 1 });
      onSuppressed();
      throw new Refusal('RATE_LIMITED', 'Too many requests were denied', { retryAfterSeconds: Math.ceil((1 - tokens) / perSecond) });
    },
    summarise,
    close: async () => {
      clearInterval(timer);
      await summarise();
    },
  };
};
