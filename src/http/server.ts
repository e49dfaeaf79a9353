/** One HTTP server on one port: REST at the root, GraphQL at /graphql, and what operators ask: /healthz, /readyz, /metrics, /openapi.json. (architecture section 7) */
import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import type { FastifyInstance } from 'fastify';
import type { Authenticate } from '../iam/authenticate.ts';
import { Fault, Refusal } from '../kernel/errors.ts';
import { newId } from '../kernel/ids.ts';
import type { NativeAdminSettings } from '../native-admin/domains.ts';
import type { Services } from '../services.ts';
import type { SessionCookieSettings } from '../sign-in/sessions.ts';
import type { Log } from '../telemetry/logger.ts';
import type { Metrics } from '../telemetry/metrics.ts';
import { refuseOnSocket, write, writeRefusal } from './answer.ts';
import { publicRefusal } from './errors.ts';
import type { Timers } from './native-admin/lease.ts';
import { createNativeAdminProxy } from './native-admin/proxy.ts';
import { writeGraphqlRefusal } from './graphql-refusal.ts';
import { openApiText } from './openapi.ts';
import { createRest } from './rest/rest.ts';
import { routes } from './rest/routes.ts';
import { createTransport, type TransportSettings } from './transport.ts';

export interface Health {
  /** Names of the loops of this process that have stopped turning. */
  stalled(): readonly string[];
  /** Whether the stores of this replica answer; what merely lags or is parked is listed and changes nothing. */
  readiness(): Promise<{ readonly ready: boolean; readonly degraded: readonly string[] }>;
}

export interface HttpServerOptions {
  readonly services: Services;
  readonly authenticate: Authenticate;
  readonly health: Health;
  readonly metrics: Metrics;
  readonly log: Log;
  /** Serves `/graphql`, once the request has come by a trusted way. */
  readonly graphql: (request: IncomingMessage, response: ServerResponse) => void | Promise<void>;
  readonly settings: TransportSettings & {
    readonly sessionCookie: SessionCookieSettings;
    /** Undefined unless the native admin UI is enabled. */
    readonly nativeAdmin?: NativeAdminSettings | undefined;
  };
  /** How time passes for those who have a native admin UI open. */
  readonly timers?: Timers | undefined;
}

export interface HttpServer {
  /**
   * Listens, and returns the origin it is reached at; port 0 takes a free one.
   * @throws Fault that names the address
   */
  listen(host: string, port: number): Promise<string>;
  /** Takes no more requests, lets those in progress end, and cuts what has not ended after `drainMs`. */
  close(drainMs?: number): Promise<void>;
}

const requestTimeoutMs = 60_000;
/** Longer than the usual idle time of a load balancer, so that it is never the server who closes under a request. */
const keepAliveMs = 72_000;
const sweepMs = 50;

/** In either form of a target: a proxy's names the origin too. */
const isGraphql = (url = ''): boolean => /^(?:https?:\/\/[^/?#]*)?\/graphql(?:\?|$)/i.test(url);

/** What Node's parser refuses never becomes a request, and is still answered in the envelope. */
const refuseUnparsed = (_: Error, socket: Socket): void => refuseOnSocket(socket, new Refusal('INVALID_REQUEST', 'The request is not valid HTTP'), newId('req'));

const listenError = (error: NodeJS.ErrnoException, host: string, port: number): Fault => {
  const reason = error.code === 'EADDRINUSE' ? 'the port is already in use' : error.code === 'EACCES' ? 'the port may not be used by this user' : error.message;
  return new Fault(`Cannot listen on ${host} port ${port}: ${reason}`, { cause: error });
};

const addOperatorRoutes = (app: FastifyInstance, { health, metrics, log, settings }: HttpServerOptions): void => {
  const answers = (path: string, answer: () => Promise<{ status: number; text: string; contentType?: string }>): void => {
    app.get(path, async (request, reply) => {
      const { status, text, contentType } = await answer();
      reply.hijack();
      write(reply.raw, status, request.id, text, contentType === undefined ? undefined : { 'content-type': contentType });
    });
  };

  answers('/healthz', async () => {
    const stalled = health.stalled();
    return stalled.length === 0 ? { status: 200, text: '{"status":"ok"}' } : { status: 503, text: JSON.stringify({ status: 'stalled', stalled }) };
  });
  answers('/readyz', async () => {
    try {
      const { ready, degraded } = await health.readiness();
      return { status: ready ? 200 : 503, text: JSON.stringify({ status: ready ? 'ready' : 'unready', degraded }) };
    } catch (error) {
      log.warn({ error }, 'Readiness could not be read');
      return { status: 503, text: '{"status":"unready","degraded":[]}' };
    }
  });
  answers('/metrics', async () => ({ status: 200, ...(await metrics.exposition()) }));
  const openApi = openApiText(routes, settings.mode, settings.sessionCookie.name);
  answers('/openapi.json', async () => ({ status: 200, text: openApi }));
};

export const createHttpServer = (options: HttpServerOptions): HttpServer => {
  const { services, authenticate, metrics, log, graphql, settings } = options;
  const transport = createTransport(settings);
  const nativeAdmin = settings.nativeAdmin && createNativeAdminProxy({ settings: settings.nativeAdmin, service: services.nativeAdmin, authenticate, transport, metrics, log, timers: options.timers });
  let server!: Server;

  const serveGraphql = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    try {
      transport.assert(request);
      await graphql(request, response);
    } catch (error) {
      const requestId = newId('req');
      const refusal = publicRefusal(error, requestId, log);
      if (response.headersSent) response.destroy();
      else writeGraphqlRefusal(response, refusal, requestId);
    }
  };

  const app = createRest({
    services,
    authenticate,
    transport,
    sessionCookie: settings.sessionCookie,
    metrics,
    log,
    clientErrorHandler: refuseUnparsed,
    serverFactory: (rest) => {
      const serve = (request: IncomingMessage, response: ServerResponse): void => {
        if (request.headers.host === undefined && request.httpVersion === '1.1') writeRefusal(response, new Refusal('INVALID_REQUEST', 'The Host header is missing'), newId('req'));
        else if (nativeAdmin?.isFor(request) === true) void nativeAdmin.serve(request, response);
        else if (isGraphql(request.url)) void serveGraphql(request, response);
        else rest(request, response);
      };
      // Without these Node answers a missing Host and an unknown expectation by itself, and without a body.
      server = createServer({ requireHostHeader: false, requestTimeout: requestTimeoutMs, keepAliveTimeout: keepAliveMs, shouldUpgradeCallback: (request) => nativeAdmin?.isFor(request) === true }, serve);
      server.on('checkExpectation', serve);
      if (nativeAdmin !== undefined) server.on('upgrade', (request: IncomingMessage, socket: Duplex, head: Buffer) => void nativeAdmin.upgrade(request, socket, head));
      return server;
    },
  });
  addOperatorRoutes(app, options);

  return {
    listen: async (host, port) => {
      await app.ready();
      server.listen({ host, port });
      await once(server, 'listening').catch((error: NodeJS.ErrnoException) => {
        throw listenError(error, host, port);
      });
      const { address, family, port: taken } = server.address() as AddressInfo;
      return `http://${family === 'IPv6' ? `[${address}]` : address}:${taken}`;
    },
    close: async (drainMs = 10_000) => {
      await nativeAdmin?.close();
      // A connection that falls idle after its last answer would otherwise be kept open.
      const sweep = setInterval(() => server.closeIdleConnections(), sweepMs);
      const cut = setTimeout(() => server.closeAllConnections(), drainMs);
      await new Promise<void>((resolve) => server.close(() => resolve()));
      clearInterval(sweep);
      clearTimeout(cut);
      await app.close();
    },
  };
};
