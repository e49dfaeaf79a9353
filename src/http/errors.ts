/** What becomes of an error at the edges: a Refusal is shown in full, everything else is masked and logged once with its cause. (rest-contract 1.3, 4.1) */
import { Undecodable } from '../kernel/codec.ts';
import { Refusal, unavailable, type Kind } from '../kernel/errors.ts';
import type { Log } from '../telemetry/logger.ts';

const statusOfKind = {
  invalid: 400,
  unauthenticated: 401,
  forbidden: 403,
  'not-found': 404,
  'method-not-allowed': 405,
  conflict: 409,
  'too-large': 413,
  'unsupported-media-type': 415,
  'rate-limited': 429,
  defect: 500,
  'not-implemented': 501,
  unavailable: 503,
} as const satisfies Record<Kind, number>;

export const statusOf = ({ kind }: Refusal): number => statusOfKind[kind];

/** SQLSTATEs of a server that is away, full, shutting down or still a standby, and what a socket says when nobody answers. */
const goneCode = /^(08|25006|40001|53|55000|57|58)|^E(CONN|PIPE|TIMEDOUT|HOST|NET|NOTFOUND|AI_AGAIN)|^ENOENT$/;
const goneMessage = /^(Connection terminated|timeout exceeded when trying to connect|Client has encountered a connection error|Query read timeout)/;

const isUnavailable = (error: unknown): boolean => {
  if (!(error instanceof Error)) return false;
  const code = 'code' in error && typeof error.code === 'string' ? error.code : '';
  return error instanceof Undecodable || error.name === 'StoreUnavailable' || goneCode.test(code) || goneMessage.test(error.message);
};

const refusalOf = (error: unknown): Refusal => {
  if (error instanceof Refusal) return error;
  if (isUnavailable(error)) return unavailable('store', error);
  const refusal = new Refusal('INTERNAL_ERROR', 'An unexpected error occurred');
  refusal.cause = error;
  return refusal;
};

/** What the caller is told of an error. The operator's part of it goes to the log, once. */
export const publicRefusal = (error: unknown, requestId: string, log: Log): Refusal => {
  const refusal = refusalOf(error);
  if (refusal.kind === 'defect') log.error({ requestId, error: refusal.cause }, 'Request failed');
  if (refusal.kind === 'unavailable') log.warn({ requestId, error: refusal.cause }, 'Dependency unavailable');
  return refusal;
};
