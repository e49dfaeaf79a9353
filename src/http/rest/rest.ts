/**
 * The REST routes on fastify. It matches paths and reads bodies; what it would answer by itself is said in
 * our envelope. `HEAD` is a method like any other that no route lists: 405. (rest-contract 1.1, 1.11)
 */
import type { ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { fastify, type FastifyInstance, type FastifyReply, type FastifyRequest, type FastifyServerFactory } from 'fastify';
import { establishedLately, type Authenticate } from '../../iam/authenticate.ts';
import type { Caller, Visitor } from '../../iam/caller.ts';
import { Refusal } from '../../kernel/errors.ts';
import { newId } from '../../kernel/ids.ts';
import { receive, receiveUnread } from '../../kernel/parse.ts';
import type { Services } from '../../services.ts';
import type { SessionCookieSettings } from '../../sign-in/sessions.ts';
import type { Log } from '../../telemetry/logger.ts';
import type { Metrics } from '../../telemetry/metrics.ts';
import { successText, write, writeNothing, writeRefusal } from '../answer.ts';
import { publicRefusal } from '../errors.ts';
import { setCookieTexts } from '../session-cookie.ts';
import type { Transport } from '../transport.ts';
import { createAdmission } from './admission.ts';
import { defaultBodyLimit, type Route } from './route.ts';
import { allowedMethods, routes } from './routes.ts';

declare module 'fastify' {
  interface FastifyRequest {
    caller: Caller | Visitor | null;
    /** By `performance.now()`. */
    arrivedAt: number;
  }
}

export interface RestOptions {
  readonly services: Services;
  readonly authenticate: Authenticate;
  readonly transport: Transport;
  readonly sessionCookie: SessionCookieSettings;
  readonly metrics: Metrics;
  readonly log: Log;
  readonly serverFactory: FastifyServerFactory;
  readonly clientErrorHandler: (error: Error, socket: Socket) => void;
}

const utf8 = new TextDecoder('utf-8', { fatal: true });

const parseJson = (_: FastifyRequest, body: Buffer, done: (error: Error | null, value?: unknown) => void): void => {
  try {
    done(null, JSON.parse(utf8.decode(body)));
  } catch {
    done(new Refusal('INVALID_REQUEST', body.length === 0 ? 'The body is empty' : 'The body is not valid JSON'));
  }
};

/** What fastify refuses by itself: it marks such errors, a client that left in the middle of its body included, with a status. */
const refusalOfFastify = (error: unknown): Refusal | undefined => {
  switch (error instanceof Error && 'statusCode' in error && error.statusCode) {
    case 413:
      return new Refusal('PAYLOAD_TOO_LARGE', 'The body is too large');
    case 415:
      return new Refusal('UNSUPPORTED_MEDIA_TYPE', 'The body must be application/json');
    case 400:
    case 414:
      return new Refusal('INVALID_REQUEST', 'The request is malformed');
    default:
      return undefined;
  }
};

const idempotencyKeyOf = ({ takes }: Route, { headers }: FastifyRequest): string | undefined => {
  const key = takes === 'Idempotency-Key' ? headers['idempotency-key'] : undefined;
  if (key === undefined) return undefined;
  if (typeof key !== 'string' || key.length < 16 || key.length > 128) throw new Refusal('INVALID_REQUEST', 'Idempotency-Key must have 16 to 128 characters');
  return key;
};

const entityTag = /^"(0|[1-9][0-9]{0,14})"$/;

/** `*` asks for any version, which is what a PATCH without the header does. */
const ifMatchOf = ({ takes }: Route, { headers }: FastifyRequest): number | undefined => {
  const tag = takes === 'If-Match' ? headers['if-match'] : undefined;
  if (tag === undefined || tag === '*') return undefined;
  const version = entityTag.exec(tag)?.[1];
  if (version === undefined) throw new Refusal('INVALID_REQUEST', 'If-Match must be the ETag of an earlier answer');
  return Number(version);
};

/** Stands for the template of every path that no route has. */
const unmatched = 'unmatched';

const pathOf = (url: string): string => url.replace(/^https?:\/\/[^/?#]*/i, '').replace(/[?#].*$/s, '');

const writeView = ({ answer, cookie, status }: Route, view: unknown, response: ServerResponse, requestId: string, sessionCookie: SessionCookieSettings): void => {
  if (answer === undefined) return writeNothing(response, requestId);
  write(response, status, requestId, successText(answer.present(view), requestId), {
    ...(answer.version !== undefined && { etag: `"${answer.version(view)}"` }),
    ...(cookie !== undefined && { 'set-cookie': [...setCookieTexts(cookie(view), sessionCookie)] }),
  });
};

const bodyOf = ({ body, bodyOptional, bodyUnread, access }: Route, sent: unknown): unknown => {
  if (body === undefined || (bodyOptional === true && sent === undefined)) return undefined;
  const received = bodyUnread === true ? receiveUnread(body, sent) : receive(body, sent);
  return access === 'public' ? received.open() : received;
};

export const createRest = ({ services, authenticate, transport, sessionCookie, metrics, log, ...serverOptions }: RestOptions): FastifyInstance => {
  const measured = (request: FastifyRequest, template: string, status: number): void =>
    metrics.answered(request.method, template, status, (performance.now() - request.arrivedAt) / 1_000);

  const refuse = (error: unknown, request: FastifyRequest, reply: FastifyReply): number => {
    reply.hijack();
    return writeRefusal(reply.raw, publicRefusal(refusalOfFastify(error) ?? error, request.id, log), request.id);
  };

  const app = fastify({
    ...serverOptions,
    logger: false,
    genReqId: () => newId('req'),
    exposeHeadRoutes: false,
    return503OnClosing: false,
    bodyLimit: defaultBodyLimit,
    // Long enough that no parameter is too long to be called malformed by its own check.
    routerOptions: { maxParamLength: 65_536 },
    frameworkErrors: (error, request, reply) => void refuse(error, request, reply),
  });
  app.decorateRequest('caller', null);
  app.decorateRequest('arrivedAt', 0);
  app.removeAllContentTypeParsers();
  app.addContentTypeParser('application/json', { parseAs: 'buffer' }, parseJson);
  app.setErrorHandler((error, request, reply) => measured(request, request.routeOptions.url ?? unmatched, refuse(error, request, reply)));

  // Before fastify reads a body that no route asked for.
  app.addHook('onRequest', (request, reply, done) => {
    request.arrivedAt = performance.now();
    if (!request.is404) return done();
    reply.hijack();
    const allow = allowedMethods(pathOf(request.url));
    const status =
      allow === undefined
        ? writeRefusal(reply.raw, new Refusal('NOT_FOUND', 'There is no such route'), request.id)
        : writeRefusal(reply.raw, new Refusal('METHOD_NOT_ALLOWED', `This route answers ${allow}`), request.id, { allow });
    measured(request, unmatched, status);
  });

  for (const route of routes) {
    const admit = createAdmission(route, { authenticate, transport });
    app.route<{ Params: Record<string, string> }>({
      method: route.method,
      url: route.path,
      ...(route.bodyLimit !== undefined && { bodyLimit: route.bodyLimit }),
      onRequest: async (request) => {
        request.caller = await admit(request.raw, request.params, request.id);
      },
      handler: async (request, reply) => {
        const early = request.caller!;
        const caller = route.body !== undefined && 'actor' in early ? await establishedLately(early, () => authenticate(request.headers, request.id)) : early;
        const view = await route.handle(services, {
          caller,
          params: request.params,
          idempotencyKey: idempotencyKeyOf(route, request),
          ifMatch: ifMatchOf(route, request),
          body: bodyOf(route, request.body),
        });
        reply.hijack();
        writeView(route, view, reply.raw, request.id, sessionCookie);
        measured(request, route.path, route.status);
      },
    });
  }
  return app;
};
