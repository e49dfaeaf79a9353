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
const signedIn = defineEvent('SignedIn', { skeleton: Type.Object({ principalId: Type.String() }), view: ['principalId'] });
/** Names the Principal whose password was guessed wrong, where the email is one of an account. */
const signInDenied = defineEvent('SignInDenied', { skeleton: Type.Object({ principalId: Type.Optional(Type.String()) }), view: ['principalId'] });
/** Names the session, which an earlier build did not. */
const signedOut = defineEvent('SignedOut', { skeleton: Type.Object({ principalId: Type.String(), sessionKey: Type.Optional(Type.String()) }), view: ['principalId'] });
/** Of an earlier build: by the operator of the host. A password is replaced on the `iam` stream now. */
const passwordReset = defineEvent('PasswordReset', { skeleton: Type.Object({ principalId: Type.String() }), view: ['principalId'] });

const connection = { namespaceId: Type.String(), agentId: Type.String(), revisionId: Type.String(), connectionId: Type.String() };
/** A person's WebSocket to the native admin UI of an Agent. */
const nativeAdminConnected = defineEvent('NativeAdminConnected', { skeleton: Type.Object(connection), view: ['namespaceId', 'agentId', 'revisionId', 'connectionId'] });
const nativeAdminClosed = defineEvent('NativeAdminClosed', {
  skeleton: Type.Object({ ...connection, closeReason: Type.String() }),
  view: ['namespaceId', 'agentId', 'revisionId', 'connectionId', 'closeReason'],
});

export const auditEvents = createCodec(authorizationDenied, commandFailed, denialsSuppressed, signedIn, signInDenied, signedOut, passwordReset, nativeAdminConnected, nativeAdminClosed);
export type AuditEvent =
  | EventOf<typeof authorizationDenied>
  | EventOf<typeof commandFailed>
  | EventOf<typeof denialsSuppressed>
  | EventOf<typeof signedIn>
  | EventOf<typeof signInDenied>
  | EventOf<typeof signedOut>
  | EventOf<typeof passwordReset>
  | EventOf<typeof nativeAdminConnected>
  | EventOf<typeof nativeAdminClosed>;
