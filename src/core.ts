/** What every service stands on: streams, the authorizer, the audit log, and the wait for one's own write. */
import type { AuditLog } from './audit/audit-log.ts';
import type { Authorizer, Grant, Operation } from './iam/authorizer.ts';
import type { Caller } from './iam/caller.ts';
import type { Position } from './event-store/event-store.ts';
import { digestOf, sha256 } from './kernel/canonical.ts';
import type { CommandContext, Streams } from './runtime/streams.ts';

export interface Core {
  readonly streams: Streams;
  readonly authorizer: Authorizer;
  readonly audit: AuditLog;
  /** Waits at most 1 s until this build's read models (with `work`, the sagas too) have passed a position. */
  readonly waitFor: (position: Position | null, options?: { readonly work?: boolean }) => Promise<void>;
}

/** The context of a command's events: who asked, what was judged, and the audit record of its success. */
export const contextOf = (caller: Caller, operation: Operation, grant: Grant, more: Partial<CommandContext> & { readonly details?: Readonly<Record<string, unknown>> } = {}): CommandContext => {
  const { details, ...rest } = more;
  return {
    actor: caller.actor,
    requestId: caller.requestId,
    correlationId: caller.requestId,
    causationId: null,
    policyRevision: grant.policyRevision,
    audit: {
      kind: 'mutation',
      action: operation.action,
      resource: operation.resource,
      outcome: 'success',
      authorization: grant.authorization,
      ...(details !== undefined && { details }),
    },
    ...rest,
  };
};

/** An append that belongs to a command already audited elsewhere. */
export const withoutAudit = ({ audit: _, ...context }: CommandContext): CommandContext => context;

/** Digests of an idempotency key, scoped to caller, operation and parent, and of the input it came with. (architecture section 10) */
export const idempotencyOf = (caller: Caller, operation: string, parent: string, key: string, input: unknown): { readonly key: string; readonly input: string } => ({
  key: sha256(JSON.stringify([caller.actor.principalId, operation, parent, key])),
  input: digestOf(input),
});
