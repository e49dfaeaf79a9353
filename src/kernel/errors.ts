/**
 * The only list of public error codes, and the two error classes of the product.
 * A Refusal is something the caller can act on and is shown in full; a Fault is something only the
 * operator can act on, logged with its cause and shown masked. (rest-contract 1.3, 4.1)
 */

/** What an edge does with a code: the REST status and the GraphQL `extensions.status` follow from it. */
export type Kind =
  | 'invalid'
  | 'unauthenticated'
  | 'forbidden'
  | 'not-found'
  | 'method-not-allowed'
  | 'conflict'
  | 'too-large'
  | 'unsupported-media-type'
  | 'rate-limited'
  | 'defect'
  | 'not-implemented'
  | 'unavailable';

export const codes = {
  INVALID_REQUEST: 'invalid',
  UNAUTHENTICATED: 'unauthenticated',
  FORBIDDEN: 'forbidden',
  NOT_FOUND: 'not-found',
  METHOD_NOT_ALLOWED: 'method-not-allowed',
  RESOURCE_CONFLICT: 'conflict',
  AGENT_DELETING: 'conflict',
  NAMESPACE_NOT_READY: 'conflict',
  NAMESPACE_NOT_EMPTY: 'conflict',
  CREDENTIAL_GATEWAY_NOT_CONFIGURED: 'conflict',
  SERVICE_ACCOUNT_DRIVER_NOT_CONFIGURED: 'conflict',
  PAYLOAD_TOO_LARGE: 'too-large',
  UNSUPPORTED_MEDIA_TYPE: 'unsupported-media-type',
  RATE_LIMITED: 'rate-limited',
  INTERNAL_ERROR: 'defect',
  NOT_IMPLEMENTED: 'not-implemented',
  DEPENDENCY_UNAVAILABLE: 'unavailable',
} as const satisfies Record<string, Kind>;

export type Code = keyof typeof codes;

/** The closed set of reasons a single field can be refused for. (rest-contract 1.3) */
export type DetailCode =
  | 'REQUIRED'
  | 'UNKNOWN_FIELD'
  | 'INVALID_TYPE'
  | 'INVALID_FORMAT'
  | 'INVALID_VALUE'
  | 'TOO_LONG'
  | 'TOO_DEEP';

/** One refused field: a JSON Pointer into the body, or `/<parameter>` for a path parameter. */
export interface Detail {
  readonly path: string;
  readonly code: DetailCode;
}

const messageLimit = 256;
const detailLimit = 32;
const pathLimit = 512;
const controlCharacters = /[\u0000-\u001f\u007f]/g;

/** At most this many characters, without half a character or half an escape of a JSON Pointer at the end. */
const cut = (text: string, limit: number): string => (text.length <= limit ? text : text.slice(0, limit).replace(/[\ud800-\udbff~]$/, '')).toWellFormed();

/** An answer the caller can act on. The message is public, 1 to 256 characters, and never holds a stored value. */
export class Refusal extends Error {
  override readonly name = 'Refusal';
  readonly code: Code;
  readonly details: readonly Detail[];
  /** Whole seconds the caller should wait; set on `rate-limited` refusals only. */
  readonly retryAfterSeconds: number | undefined;

  constructor(code: Code, message: string, more: { details?: readonly Detail[]; retryAfterSeconds?: number } = {}) {
    super(cut(message.replace(controlCharacters, ' '), messageLimit));
    this.code = code;
    this.details = (more.details ?? []).slice(0, detailLimit).map(({ path, code }) => ({ path: cut(path, pathLimit), code }));
    this.retryAfterSeconds = more.retryAfterSeconds;
  }

  get kind(): Kind {
    return codes[this.code];
  }
}

/** A failure only the operator can act on; its message goes to the log, the caller sees `INTERNAL_ERROR`. */
export class Fault extends Error {
  override readonly name = 'Fault';
}

/** A dependency did not answer; the caller may try again. Carries the cause for the log only. */
export const unavailable = (what: string, cause?: unknown): Refusal => {
  const refusal = new Refusal('DEPENDENCY_UNAVAILABLE', 'A required dependency is unavailable');
  refusal.cause = cause ?? what;
  return refusal;
};
