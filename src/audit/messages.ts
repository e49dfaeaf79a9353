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

export const auditEvents = createCodec(authorizationDenied, commandFailed);
export type AuditEvent = EventOf<typeof authorizationDenied> | EventOf<typeof commandFailed>;
