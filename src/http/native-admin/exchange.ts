/** One HTTP request to an Agent host, forwarded to the gateway and never a second time. (agent-lifecycle 9.2) */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { request as requestOf } from 'node:https';
import { pipeline } from 'node:stream/promises';
import { unavailable } from '../../kernel/errors.ts';
import type { Admitted } from '../../native-admin/service.ts';
import { framing, toBrowser, toGateway } from './headers.ts';
import type { Timers } from './lease.ts';
import { rewrittenLocation, upstreamUrl, type Target } from './target.ts';

/** Until the gateway begins to answer. */
const answerWithinMs = 60_000;

/** A picture the gateway could not fetch from elsewhere: its UI shows initials where there is none. */
const isMissingPicture = (path: string, { statusCode }: IncomingMessage): boolean => statusCode === 502 && /^\/api\/users\/[^/?]+\/avatar(?:\?|$)/.test(path);

/** Asks the gateway; a browser that leaves ends it. @throws Refusal DEPENDENCY_UNAVAILABLE when it does not begin to answer */
const ask = async (request: IncomingMessage, url: URL, { token, certificate }: Admitted['gateway'], timers: Timers, left: AbortSignal): Promise<IncomingMessage> => {
  const upstream = requestOf(url, { method: request.method!, headers: { ...toGateway(request, token), ...framing(request) }, agent: false, signal: left, ...(certificate !== undefined && { ca: certificate }) });
  const prevent = timers.after(answerWithinMs, () => upstream.destroy(new Error(`The gateway did not answer within ${answerWithinMs} ms`)));
  try {
    request.pipe(upstream);
    return await new Promise<IncomingMessage>((resolve, reject) => {
      upstream.once('response', resolve);
      // Afterwards these tell nothing: an answer that is cut tells by itself, and one that came before the whole body was sent is still an answer.
      upstream.on('error', reject);
      upstream.once('close', () => reject(new Error('The gateway closed the connection without an answer')));
    });
  } catch (error) {
    throw unavailable('gateway', error);
  } finally {
    prevent();
  }
};

/**
 * Forwards a request and its answer. Resolves once both have ended, also when one of them was cut.
 * @throws Refusal DEPENDENCY_UNAVAILABLE while nothing of an answer is written
 */
export const exchange = async (request: IncomingMessage, response: ServerResponse, { path, origin }: Target, { gateway }: Admitted, timers: Timers, requestId: string): Promise<void> => {
  const left = new AbortController();
  response.once('close', () => left.abort());
  const url = upstreamUrl(gateway.url, path, 'https:');
  const answer = await ask(request, url, gateway, timers, left.signal);
  response.setHeader('x-request-id', requestId);
  if (isMissingPicture(path, answer)) {
    answer.destroy();
    response.writeHead(404, { 'content-length': 0, 'cache-control': 'no-store' }).end();
    return;
  }
  const { location, ...headers } = toBrowser(answer);
  const rewritten = location === undefined ? undefined : rewrittenLocation(String(location), gateway.url, url, origin);
  if (location !== undefined && rewritten === undefined) {
    answer.destroy();
    throw unavailable('gateway', 'The gateway redirects out of its base');
  }
  response.writeHead(answer.statusCode!, { ...headers, ...(rewritten !== undefined && { location: rewritten }) });
  await pipeline(answer, response).catch(() => response.destroy());
};
