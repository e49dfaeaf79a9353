/** The real HTTP server over services that answer what a test says and remember how they were called. */
import { afterEach } from 'vitest';
import { createHttpServer, type Health, type HttpServer, type HttpServerOptions } from '../../src/http/server.ts';
import { Refusal } from '../../src/kernel/errors.ts';
import type { Sent } from '../../src/kernel/parse.ts';
import type { Services } from '../../src/services.ts';
import { hostCookie } from '../../src/sign-in/sessions.ts';
import { createLogger } from '../../src/telemetry/logger.ts';
import { createMetrics } from '../../src/telemetry/metrics.ts';
import { exchange, type RawAnswer } from '../support/raw-http.ts';

export const key = 'exk.a-key-that-is-known';
/** The headers of a person on a page that is trusted. */
export const person = { 'x-api-key': '-', cookie: 'openclaw_occ.session_token=known', origin: 'https://console.example' };

const id = (prefix: string, digit: number) => `${prefix}_0000000${digit}-0000-4000-8000-000000000000`;
export const installationId = id('ins', 1);
export const namespaceId = id('ns', 1);
export const configurationId = id('cfg', 1);
export const agentId = id('agt', 1);
export const revisionId = id('rev', 1);

export interface Call {
  readonly method: string;
  readonly arguments: readonly unknown[];
}

/** A body is opened, as the services do once they know the caller. */
const opened = (given: unknown): unknown => (typeof given === 'object' && given !== null && 'open' in given ? (given as Sent<unknown>).open() : given);

/** Every method gives the answer set for it, throws it when it is an error, and fails the test when none is set. */
const scripted = (answers: Readonly<Record<string, unknown>>, calls: Call[]): Services =>
  new Proxy({} as Services, {
    get: (_, slice: string) =>
      new Proxy(
        {},
        {
          get: (__, verb: string) => async (...given: unknown[]) => {
            const method = `${slice}.${verb}`;
            calls.push({ method, arguments: given.map(opened) });
            if (!(method in answers)) throw new Error(`Unexpected call of ${method}`);
            const answer = answers[method];
            if (answer instanceof Error) throw answer;
            return answer;
          },
        },
      ),
  });

export interface RequestParts {
  readonly method?: string;
  readonly path?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string | Buffer;
}

/** The bytes of a request: a known key and a local Host unless told otherwise; a body brings its length and media type along. */
export const requestBytes = ({ method = 'GET', path = '/installation', headers = {}, body }: RequestParts): Buffer => {
  const implied = {
    host: 'localhost',
    'x-api-key': key,
    ...(body !== undefined && { 'content-type': 'application/json', 'content-length': String(Buffer.byteLength(body)) }),
  };
  const lines = Object.entries<string>({ ...implied, ...headers }).filter(([, value]) => value !== '-').map(([name, value]) => `${name}: ${value}\r\n`);
  return Buffer.concat([Buffer.from(`${method} ${path} HTTP/1.1\r\n${lines.join('')}\r\n`), Buffer.from(body ?? '')]);
};

export interface Edge {
  readonly origin: string;
  readonly server: HttpServer;
  readonly calls: readonly Call[];
  /** Lines of the log, parsed. */
  readonly log: readonly Record<string, unknown>[];
  send(request: RequestParts): Promise<RawAnswer>;
}

const open: HttpServer[] = [];
afterEach(async () => {
  await Promise.all(open.splice(0).map((server) => server.close(0)));
});

const healthy: Health = { stalled: () => [], readiness: async () => ({ ready: true, degraded: [] }) };

/** Starts a server on a free port; it is closed after the test. */
export const startEdge = async ({
  answers = {},
  settings = {},
  ...options
}: {
  readonly answers?: Readonly<Record<string, unknown>>;
  readonly settings?: Partial<HttpServerOptions['settings']>;
} & Partial<Omit<HttpServerOptions, 'services' | 'settings' | 'log'>> = {}): Promise<Edge> => {
  const calls: Call[] = [];
  const log: Record<string, unknown>[] = [];
  const server = createHttpServer({
    services: scripted(answers, calls),
    authenticate: async (headers, requestId) => {
      if (headers['cookie'] === person.cookie && headers['x-api-key'] === undefined) return { actor: { principalId: 'prn_1', kind: 'principal' }, keyNamespaceId: undefined, sessionKey: 'a', arrivedAt: 0, requestId };
      if (headers['authorization'] !== undefined || headers['x-api-key'] !== key) throw new Refusal('UNAUTHENTICATED', 'A valid session or service key is required');
      return { actor: { principalId: 'spn_1', kind: 'service_principal' }, keyNamespaceId: undefined, arrivedAt: 0, requestId };
    },
    health: healthy,
    metrics: createMetrics(),
    log: createLogger({ level: 'debug', to: { write: (line) => void log.push(JSON.parse(line) as Record<string, unknown>) } }),
    graphql: (_, response) => void response.end('graphql'),
    settings: { mode: 'production', trustedOrigins: ['https://console.example'], trustedProxies: [], sessionCookie: hostCookie(true), ...settings },
    ...options,
  });
  open.push(server);
  const origin = await server.listen('127.0.0.1', 0);
  return { origin, server, calls, log, send: (request) => exchange(origin, requestBytes(request)) };
};

/** Code and details of an error answer. */
export const errorOf = ({ body }: RawAnswer): { readonly code: string; readonly message: string; readonly details?: unknown } =>
  (JSON.parse(body) as { error: { code: string; message: string; details?: unknown } }).error;
