/** Records what changes nothing and is still a fact: denials and audited failures. One stream per writer process. (failure scenario 11) */
import { randomUUID } from 'node:crypto';
import type { Decider } from '../kernel/decider.ts';
import { unavailable } from '../kernel/errors.ts';
import type { Actor, AuditRecord } from '../kernel/event.ts';
import type { Aggregate, Streams } from '../runtime/streams.ts';
import { auditEvents, type AuditEvent } from './messages.ts';

const decider: Decider<null, AuditEvent, AuditEvent> = { initial: null, decide: (_, event) => [event], evolve: () => null };
const audits: Aggregate<null, AuditEvent, AuditEvent> = { streamOf: (writer) => `audit-${writer}`, codec: auditEvents, decider };

export interface AuditLog {
  /**
   * Returns once the record is stored; `requestId` is null for what no single request caused.
   * @throws Refusal DEPENDENCY_UNAVAILABLE when it could not be; the caller then answers so instead
   */
  record(cause: { readonly actor: Actor; readonly requestId: string | null }, event: AuditEvent, audit: AuditRecord, policyRevision: number | null): Promise<void>;
}

export const createAuditLog = (streams: Streams): AuditLog => {
  let writer = randomUUID();
  return {
    record: async ({ actor, requestId }, event, audit, policyRevision) => {
      const context = { actor, requestId, correlationId: requestId ?? writer, causationId: null, policyRevision, audit };
      try {
        await streams.execute(audits, writer, event, context);
      } catch (error) {
        writer = randomUUID();
        throw unavailable('audit', error);
      }
    },
  };
};
