/**
 * What stands before the routes: requests that name an Agent host get to that Agent's gateway or nowhere. Each one is
 * authenticated, resolved and authorized anew; one that stays open is judged again until it ends. (agent-lifecycle 9.2)
 */
import { randomUUID } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Duplex } from 'node:stream';
import { newRequestId, type Authenticate } from '../../iam/authenticate.ts';
import type { Caller } from '../../iam/caller.ts';
import { Refusal, unavailable } from '../../kernel/errors.ts';
import type { NativeAdminSettings } from '../../native-admin/domains.ts';
import type { Admitted, NativeAdminService } from '../../native-admin/service.ts';
import type { Log } from '../../telemetry/logger.ts';
import type { Metrics } from '../../telemetry/metrics.ts';
import { refuseOnSocket, writeRefusal } from '../answer.ts';
import { publicRefusal } from '../errors.ts';
import type { Transport } from '../transport.ts';
import { exchange } from './exchange.ts';
import { holdLease, LeaseTimedOut, realTimers, type Timers } from './lease.ts';
import { isForAgentHost, targetOf, type Target } from './target.ts';
import { acceptBrowser, connectGateway, join } from './web-socket.ts';

export interface NativeAdminProxy {
  /** Whether a request names an Agent host: then nothing else may answer it. */
  isFor(request: IncomingMessage): boolean;
  /** Answers an HTTP request; never rejects. */
  serve(request: IncomingMessage, response: ServerResponse): Promise<void>;
  /** Answers a request for another protocol; never rejects. */
  upgrade(request: IncomingMessage, socket: Duplex, head: Buffer): Promise<void>;
  /** Lets no more in, ends every WebSocket, and resolves once that is recorded. */
  close(): Promise<void>;
}

/** By `measured`, in place of a route. */
const template = 'native-admin';

const methods = new Set(['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS']);

class RevisionChanged extends Error {
  override readonly name = 'RevisionChanged';
}

/** Whether a page of another origin asks, other than by leading its reader here: the shared cookie comes along from every host under its domain. */
const isForeignFetch = ({ 'sec-fetch-site': site, 'sec-fetch-mode': mode }: IncomingMessage['headers']): boolean => (site === 'same-site' || site === 'cross-site') && mode !== 'navigate';

/** Why a WebSocket that was judged again had to end, as the audit says it. */
const closeReasonOf = (error: unknown): string => {
  if (error instanceof LeaseTimedOut) return 'LEASE_TIMED_OUT';
  if (error instanceof RevisionChanged) return 'REVISION_CHANGED';
  if (!(error instanceof Refusal)) return 'DEPENDENCY_UNAVAILABLE';
  switch (error.kind) {
    case 'unauthenticated':
      return 'SESSION_ENDED';
    case 'forbidden':
    case 'rate-limited':
      return 'AUTHORIZATION_DENIED';
    case 'not-found':
    case 'conflict':
      return 'AGENT_UNAVAILABLE';
    default:
      return 'DEPENDENCY_UNAVAILABLE';
  }
};

const assertOrigin = ({ headers }: IncomingMessage, { origin }: Target): void => {
  if (headers.origin !== origin) throw new Refusal('FORBIDDEN', 'The origin of the Agent host is required');
};

const assertRequest = (request: IncomingMessage, target: Target): void => {
  const { method = 'GET', headers } = request;
  if (!methods.has(method)) throw new Refusal('METHOD_NOT_ALLOWED', `An Agent host answers ${[...methods].join(', ')}`);
  if (method !== 'GET' && method !== 'HEAD') assertOrigin(request, target);
  if (isForeignFetch(headers)) throw new Refusal('FORBIDDEN', 'An Agent host answers no other pages than its own');
  if (headers['service-worker'] !== undefined || headers['sec-fetch-dest'] === 'serviceworker') throw new Refusal('FORBIDDEN', 'An Agent host has no service workers');
};

export const createNativeAdminProxy = ({
  settings,
  service,
  authenticate,
  transport,
  metrics,
  log,
  timers = realTimers,
}: {
  readonly settings: NativeAdminSettings;
  readonly service: Pick<NativeAdminService, 'admit' | 'connected' | 'closed'>;
  readonly authenticate: Authenticate;
  readonly transport: Transport;
  readonly metrics: Pick<Metrics, 'answered'>;
  readonly log: Log;
  readonly timers?: Timers | undefined;
}): NativeAdminProxy => {
  const closing = new AbortController();
  const open = new Set<Promise<void>>();

  /** Who asks, and what they are let in to. */
  const enter = async (request: IncomingMessage, { hash }: Target, verb: Parameters<NativeAdminService['admit']>[2], requestId: string): Promise<{ readonly caller: Caller; readonly admitted: Admitted }> => {
    const caller = await authenticate(request.headers, requestId);
    return { caller, admitted: await service.admit(caller, hash, verb) };
  };

  /** Enters again, to the same revision at the same gateway. */
  const lease = (request: IncomingMessage, target: Target, verb: Parameters<NativeAdminService['admit']>[2], requestId: string, entered: Admitted, lost: (reason: unknown) => void): (() => void) =>
    holdLease(
      timers,
      async () => {
        const { revisionId, gateway } = (await enter(request, target, verb, requestId)).admitted;
        if (revisionId !== entered.revisionId || gateway.url !== entered.gateway.url || gateway.token !== entered.gateway.token) throw new RevisionChanged();
      },
      lost,
    );

  const forward = async (request: IncomingMessage, response: ServerResponse, requestId: string): Promise<void> => {
    transport.assertWay(request);
    const target = targetOf(settings, request);
    assertRequest(request, target);
    const { admitted } = await enter(request, target, 'request', requestId);
    const release = lease(request, target, 'request', requestId, admitted, () => response.destroy());
    try {
      await exchange(request, response, target, admitted, timers, requestId);
    } finally {
      release();
    }
  };

  const connect = async (request: IncomingMessage, socket: Duplex, head: Buffer, requestId: string): Promise<void> => {
    transport.assertWay(request);
    const target = targetOf(settings, request);
    assertOrigin(request, target);
    const { caller, admitted } = await enter(request, target, 'websocket.connect', requestId);
    const gateway = await connectGateway(request, target, admitted, timers, closing.signal);
    const connectionId = randomUUID();
    let closeReason = 'CLIENT_CLOSED';
    try {
      if (closing.signal.aborted) throw unavailable('server');
      await service.connected(caller, admitted, connectionId);
    } catch (error) {
      gateway.terminate();
      throw error;
    }
    const browser = await acceptBrowser(request, socket, head, gateway.protocol);
    if (browser === undefined) gateway.terminate();
    else {
      const joined = join(browser, gateway);
      let forced: string | undefined;
      const end = (reason: string): void => {
        forced ??= reason;
        joined.end();
      };
      const release = lease(request, target, 'websocket.connect', requestId, admitted, (error) => end(closeReasonOf(error)));
      const shutDown = (): void => end('SHUTDOWN');
      if (closing.signal.aborted) shutDown();
      closing.signal.addEventListener('abort', shutDown);
      const first = await joined.closed;
      closing.signal.removeEventListener('abort', shutDown);
      release();
      closeReason = forced ?? first;
    }
    await service
      .closed(caller, admitted, connectionId, closeReason)
      .catch((error: unknown) => log.error({ requestId, connectionId, closeReason, error }, 'The end of a native admin WebSocket is not recorded'));
  };

  return {
    isFor: (request) => isForAgentHost(settings, request),

    serve: async (request, response) => {
      const requestId = newRequestId();
      const arrivedAt = performance.now();
      response.once('close', () => metrics.answered(request.method ?? 'GET', template, response.statusCode, (performance.now() - arrivedAt) / 1_000));
      try {
        await forward(request, response, requestId);
      } catch (error) {
        if (response.headersSent) response.destroy();
        else writeRefusal(response, publicRefusal(error, requestId, log), requestId);
      }
    },

    upgrade: async (request, socket, head) => {
      const requestId = newRequestId();
      socket.on('error', () => socket.destroy());
      const connection = connect(request, socket, head, requestId).catch((error: unknown) => {
        // The server no longer knows this socket, so nobody would close it for a client that does not.
        socket.once('finish', () => socket.destroy());
        refuseOnSocket(socket, publicRefusal(error, requestId, log), requestId);
      });
      open.add(connection);
      await connection;
      open.delete(connection);
    },

    close: async () => {
      closing.abort();
      await Promise.all(open);
    },
  };
};
