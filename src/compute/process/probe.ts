/** Asks a gateway who it is and how far its start has come, over its loopback port. (compute-drivers 6, 11.3) */
import { get } from 'node:http';
import type { RuntimeFailure } from '../driver.ts';

export type GatewayState =
  /** Not listening yet, or listening and not ready. */
  | { readonly kind: 'starting' }
  | { readonly kind: 'ready' }
  /** Alive, unready, and holding the evidence why. */
  | { readonly kind: 'failed'; readonly failure: RuntimeFailure }
  /** Something answers there that is not this start of this revision. */
  | { readonly kind: 'foreign' };

export interface GatewayStart {
  readonly port: number;
  readonly revisionId: string;
  readonly startId: string;
}

const answerLimitMs = 2_000;
const largestAnswerBytes = 65_536;

interface StatusBody {
  readonly revisionId?: string;
  readonly startId?: string;
  readonly runtimeFailure?: RuntimeFailure;
}

/** The state of exactly this start; ready only when both the private status and `/readyz` say so. */
export const probeGateway = async ({ port, revisionId, startId }: GatewayStart, token: string): Promise<GatewayState> => {
  const status = await fetchJson(port, '/openclaw/runtime/status', { authorization: `Bearer ${token}` });
  if (status === undefined || status.code === 404 || status.code === 503) return { kind: 'starting' };
  const body = (status.body ?? {}) as StatusBody;
  if (status.code !== 200 || body.revisionId !== revisionId || body.startId !== startId) return { kind: 'foreign' };
  if (body.runtimeFailure !== undefined) return { kind: 'failed', failure: body.runtimeFailure };
  const readiness = await fetchJson(port, '/readyz', {});
  const { ready } = (readiness?.body ?? {}) as { readonly ready?: boolean };
  return { kind: readiness?.code === 200 && ready === true ? 'ready' : 'starting' };
};

interface Fetched {
  readonly code: number;
  readonly body: unknown;
}

/** The answer to a GET, or undefined when there is none in time; an unreadable body reads as null. */
const fetchJson = (port: number, path: string, headers: Record<string, string>): Promise<Fetched | undefined> =>
  new Promise((resolve) => {
    const signal = AbortSignal.timeout(answerLimitMs);
    const request = get({ host: '127.0.0.1', port, path, headers, agent: false, signal }, (response) => {
      let text = '';
      response.setEncoding('utf8');
      response.on('data', (chunk: string) => {
        text += chunk;
        if (text.length > largestAnswerBytes) response.destroy(new Error('answer too large'));
      });
      response.on('error', () => resolve(undefined));
      response.on('end', () => resolve({ code: response.statusCode ?? 0, body: parsed(text) }));
    });
    // No connection and no answer mean the same to the caller: not serving yet.
    request.on('error', () => resolve(undefined));
  });

const parsed = (text: string): unknown => {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    // Some other program's page; the caller compares members and finds none.
    return null;
  }
};
