/** The frames, limits and error shapes of the gateway's WebSocket protocol, version 4. (compute-drivers 11.2) */

export const protocolVersion = 4;
export const largestFrameBytes = 26_214_400;
export const largestFrameBeforeConnectBytes = 65_536;
/** A client that stays silent this long is closed with 1000. */
export const handshakeLimitMs = 15_000;

/** WebSocket close codes in use. */
export const closing = { silent: 1000, goingAway: 1001, protocol: 1002, policy: 1008, tooBig: 1009, tryLater: 1013 } as const;

export type ErrorCode = 'INVALID_REQUEST' | 'NOT_PAIRED' | 'FORBIDDEN' | 'UNAVAILABLE';

export interface ErrorShape {
  readonly code: ErrorCode;
  readonly message: string;
  readonly details?: Readonly<Record<string, unknown>>;
  readonly retryable?: boolean;
  readonly retryAfterMs?: number;
}

export interface RequestFrame {
  readonly type: 'req';
  readonly id: string;
  readonly method: string;
  readonly params: unknown;
}

/** An answer to a method: its payload, or the error shown to the client. */
export type Answer = { readonly payload: unknown } | { readonly error: ErrorShape };

/** An answer that refuses. */
export const refuse = (code: ErrorCode, message: string, details?: Readonly<Record<string, unknown>>): { readonly error: ErrorShape } => ({
  error: { code, message, ...(details && { details }) },
});

/** The request in a text frame, or undefined when the text is none. */
export const parseRequest = (text: string): RequestFrame | undefined => {
  try {
    const frame = JSON.parse(text) as Partial<RequestFrame> | null;
    const { type, id, method, params } = frame ?? {};
    return type === 'req' && typeof id === 'string' && id !== '' && typeof method === 'string' ? { type, id, method, params } : undefined;
  } catch {
    // A frame that is not JSON is no request; the caller closes the connection.
    return undefined;
  }
};

/** The text of a response frame. */
export const responseText = (id: string, answer: Answer): string =>
  JSON.stringify({ type: 'res', id, ok: 'payload' in answer, ...answer });

/** The text of an event frame. */
export const eventText = (event: string, payload: unknown): string => JSON.stringify({ type: 'event', event, payload });

/** A closed object: every member named in `members`, required ones present, each passing its test. */
export const shaped = <T>(
  value: unknown,
  members: { readonly [Name in keyof T]-?: { readonly test: (member: unknown) => boolean; readonly optional?: boolean } },
): value is T => {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return false;
  if (!Object.keys(value).every((name) => Object.hasOwn(members, name))) return false;
  return (Object.keys(members) as (keyof T & string)[]).every((name) => {
    const member = (value as Record<string, unknown>)[name];
    return member === undefined ? members[name].optional === true : members[name].test(member);
  });
};

export const isText = (value: unknown): boolean => typeof value === 'string' && value !== '';
