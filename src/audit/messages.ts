/** Events of the `audit-<writer>` streams, one writer process each: what happened without changing anything. (architecture section 3, failure scenario 11) */
import Type from 'typebox';
import { createCodec, defineEvent, type EventOf } from '../kernel/codec.ts';

/** A permission was refused; everything an auditor needs is in the envelope's audit record. */
const authorizationDenied = defineEvent('AuthorizationDenied', {
  skeleton: Type.Object({ namespaceId: Type.Optional(Type.String()) }),
  view: ['namespaceId'],
});
/** A command failed for a reason that is audited although nothing changed. */
const commandFailed = defineEvent('CommandFailed', {
  skeleton: Type.Object({ namespaceId: Type.Optional(Type.String()), code: Type.String() }),
  view: ['namespaceId', 'code'],
});

/** Denials of one principal that were refused without a record of their own, one process's count of a minute. */
const denialsSuppressed = defineEvent('DenialsSuppressed', {
  skeleton: Type.Object({ principalId: Type.String(), from: Type.String(), to: Type.String(), count: Type.Integer({ minimum: 1 }) }),
  view: ['principalId', 'from', 'to', 'count'],
});

export const auditEvents = createCodec(authorizationDenied, commandFailed, denialsSuppressed);
export type AuditEvent = EventOf<typeof authorizationDenied> | EventOf<typeof commandFailed> | EventOf<typeof denialsSuppressed>;
