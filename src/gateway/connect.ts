/** Judges the first request of a connection: its schema, its protocol, its shared token, and the scopes it is granted. */
import { createHash, timingSafeEqual } from 'node:crypto';
import { closing, isText, protocolVersion, refuse, shaped } from './protocol.ts';
import type { ErrorShape } from './protocol.ts';

export type Scope = 'operator.admin' | 'operator.read';

/** The granted scopes, or the error with the code that closes the connection after it. */
export type ConnectVerdict =
  | { readonly scopes: readonly string[] }
  | { readonly error: ErrorShape; readonly closeCode: number };

interface Client {
  readonly id: string;
  readonly version: string;
  readonly platform: string;
  readonly mode: string;
  readonly displayName?: string;
  readonly deviceFamily?: string;
  readonly modelIdentifier?: string;
  readonly instanceId?: string;
}

interface ConnectParams {
  readonly minProtocol: number;
  readonly maxProtocol: number;
  readonly client: Client;
  readonly role?: string;
  readonly scopes?: readonly string[];
  readonly caps?: readonly string[];
  readonly auth?: { readonly token?: string; readonly password?: string };
  readonly locale?: string;
  readonly userAgent?: string;
}

const clientIds = [
  'gateway-client', 'cli', 'webchat-ui', 'openclaw-control-ui', 'openclaw-tui', 'webchat', 'openclaw-macos', 'openclaw-ios',
  'openclaw-android', 'node-host', 'test', 'fingerprint', 'openclaw-probe',
];
const clientModes = ['backend', 'cli', 'ui', 'webchat', 'node', 'probe', 'test'];

const text = { test: isText };
const optionalText = { test: isText, optional: true };
const isVersion = (value: unknown): boolean => typeof value === 'number' && Number.isInteger(value) && value >= 1;
const optionalTexts = { test: (value: unknown) => Array.isArray(value) && value.every(isText), optional: true };
const oneOf = (values: readonly string[]) => ({ test: (value: unknown) => typeof value === 'string' && values.includes(value) });

const isClient = (value: unknown): boolean =>
  shaped<Client>(value, {
    id: oneOf(clientIds),
    version: text,
    platform: text,
    mode: oneOf(clientModes),
    displayName: optionalText,
    deviceFamily: optionalText,
    modelIdentifier: optionalText,
    instanceId: optionalText,
  });

const isAuth = (value: unknown): boolean =>
  shaped<NonNullable<ConnectParams['auth']>>(value, {
    token: { test: (token) => typeof token === 'string', optional: true },
    password: { test: (password) => typeof password === 'string', optional: true },
  });

const isConnectParams = (value: unknown): value is ConnectParams =>
  shaped<ConnectParams>(value, {
    minProtocol: { test: isVersion },
    maxProtocol: { test: isVersion },
    client: { test: isClient },
    role: optionalText,
    scopes: optionalTexts,
    caps: optionalTexts,
    auth: { test: isAuth, optional: true },
    locale: optionalText,
    userAgent: optionalText,
  });

/** Whether two texts are equal, in a time that does not depend on where they differ. */
export const sameSecret = (given: string, expected: string): boolean =>
  timingSafeEqual(createHash('sha256').update(given).digest(), createHash('sha256').update(expected).digest());

/** Judges `connect` of a loopback client against the shared token. (compute-drivers 11.2) */
export const judgeConnect = (params: unknown, sharedToken: string): ConnectVerdict => {
  const refused = (closeCode: number, ...error: Parameters<typeof refuse>): ConnectVerdict => ({ ...refuse(...error), closeCode });
  if (!isConnectParams(params)) return refused(closing.policy, 'INVALID_REQUEST', 'invalid connect params');
  if (params.maxProtocol < protocolVersion || params.minProtocol > protocolVersion)
    return refused(closing.protocol, 'INVALID_REQUEST', 'protocol mismatch', { code: 'PROTOCOL_MISMATCH', expectedProtocol: protocolVersion });
  if ((params.role ?? 'operator') !== 'operator') return refused(closing.policy, 'INVALID_REQUEST', 'invalid role');
  const secret = params.auth?.token ?? params.auth?.password;
  if (secret === undefined) return refused(closing.policy, 'NOT_PAIRED', 'device identity required', { code: 'DEVICE_IDENTITY_REQUIRED' });
  if (!sameSecret(secret, sharedToken))
    return refused(closing.policy, 'INVALID_REQUEST', 'unauthorized: gateway token mismatch', { code: 'AUTH_TOKEN_MISMATCH' });
  return { scopes: params.scopes ?? [] };
};
