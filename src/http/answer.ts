/** How every answer is written: one envelope, the same headers on successes and errors. (rest-contract 1.2, 1.3, 1.7) */
import { STATUS_CODES, type OutgoingHttpHeaders, type ServerResponse } from 'node:http';
import type { Duplex } from 'node:stream';
import type { Refusal } from '../kernel/errors.ts';
import { statusOf } from './errors.ts';

const fixedHeaders = { 'cache-control': 'no-store', 'content-type': 'application/json; charset=utf-8', 'x-content-type-options': 'nosniff' };

const meta = (requestId: string): string => `"meta":{"requestId":"${requestId}"}`;

/** The headers of an answer; `more` may replace the content type. */
export const headersOf = (requestId: string, text: string, more?: OutgoingHttpHeaders): OutgoingHttpHeaders => ({
  ...fixedHeaders,
  'x-request-id': requestId,
  'content-length': Buffer.byteLength(text),
  ...more,
});

export const write = (response: ServerResponse, status: number, requestId: string, text: string, more?: OutgoingHttpHeaders): void => {
  response.writeHead(status, headersOf(requestId, text, more));
  response.end(text);
};

export const successText = (data: object | null, requestId: string): string => `{"data":${JSON.stringify(data)},${meta(requestId)}}`;

/** 204: no byte of a body, and so no length either. */
export const writeNothing = (response: ServerResponse, requestId: string): void => {
  response.writeHead(204, { ...fixedHeaders, 'x-request-id': requestId });
  response.end();
};

/** A 429 always says when to come back. */
export const refusalHeaders = ({ kind, retryAfterSeconds = 1 }: Refusal): OutgoingHttpHeaders => (kind === 'rate-limited' ? { 'retry-after': String(retryAfterSeconds) } : {});

export const refusalText = ({ code, message, details }: Refusal, requestId: string): string =>
  `{"error":${JSON.stringify(details.length === 0 ? { code, message } : { code, message, details })},${meta(requestId)}}`;

/** Writes a refusal and returns its status. */
export const writeRefusal = (response: ServerResponse, refusal: Refusal, requestId: string, more?: OutgoingHttpHeaders): number => {
  const status = statusOf(refusal);
  write(response, status, requestId, refusalText(refusal, requestId), { ...refusalHeaders(refusal), ...more });
  return status;
};

/** Writes a refusal where no request was made of the bytes, or one that asked for another protocol, and ends the connection. */
export const refuseOnSocket = (socket: Duplex, refusal: Refusal, requestId: string): void => {
  if (!socket.writable) return void socket.destroy();
  const status = statusOf(refusal);
  const text = refusalText(refusal, requestId);
  const headers = Object.entries(headersOf(requestId, text, { ...refusalHeaders(refusal), connection: 'close' })).map(([name, value]) => `${name}: ${String(value)}\r\n`);
  socket.end(`HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\n${headers.join('')}\r\n${text}`);
};
