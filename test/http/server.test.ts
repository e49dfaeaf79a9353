/** The server itself: its address, its drain, what operators ask of it, and what becomes of errors. (architecture section 7, rest-contract 1.3) */
import { createServer } from 'node:net';
import type { AddressInfo } from 'node:net';
import { describe, expect, it } from 'vitest';
import { createGraphqlHandler } from '../../src/http/graphql.ts';
import { routes } from '../../src/http/rest/routes.ts';
import type { Authenticate } from '../../src/iam/authenticate.ts';
import { unauthenticated } from '../../src/iam/caller.ts';
import { Undecodable } from '../../src/kernel/codec.ts';
import { Refusal, unavailable } from '../../src/kernel/errors.ts';
import { createLogger } from '../../src/telemetry/logger.ts';
import { createMetrics } from '../../src/telemetry/metrics.ts';
import { until } from '../support/until.ts';
import { errorOf, startEdge } from './edge.ts';
import { installationView, namespaceView } from './views.ts';

const anonymous = { 'x-api-key': '-' };

describe('the address', () => {
  it('that is taken is named', async () => {
    const other = createServer();
    await new Promise<void>((resolve) => void other.listen(0, '127.0.0.1', resolve));
    const { port } = other.address() as AddressInfo;
    const { server } = await startEdge();
    await server.close();
    await expect(server.listen('127.0.0.1', port)).rejects.toThrow(`Cannot listen on 127.0.0.1 port ${port}: the port is already in use`);
    other.close();
  });
});

describe('the drain', () => {
  it('lets a request in progress end, and takes no other', async () => {
    const { promise: held, resolve: release } = Promise.withResolvers<void>();
    let entered = false;
    const edge = await startEdge({
      graphql: async (_, response) => {
        entered = true;
        await held;
        response.end('done');
      },
    });
    const answer = fetch(`${edge.origin}/graphql`);
    await until('the request to be in progress', () => entered, Boolean);
    const closed = edge.server.close();
    await expect(fetch(`${edge.origin}/healthz`)).rejects.toThrow();
    release();
    expect(await (await answer).text()).toBe('done');
    await closed;
  });

  it('cuts what does not end in time', async () => {
    let entered = false;
    const edge = await startEdge({ graphql: () => void (entered = true) });
    const answer = fetch(`${edge.origin}/graphql`);
    await until('the request to be in progress', () => entered, Boolean);
    await Promise.all([expect(answer).rejects.toThrow(), edge.server.close(1)]);
  });
});

describe('operators see', () => {
  it('/healthz as long as the loops turn', async () => {
    const edge = await startEdge();
    const alive = await edge.send({ path: '/healthz', headers: anonymous });
    expect([alive.status, alive.body]).toEqual([200, '{"status":"ok"}']);
    const stuck = await startEdge({ health: { stalled: () => ['projector'], readiness: () => Promise.reject(new Error('not asked')) } });
    const dead = await stuck.send({ path: '/healthz', headers: anonymous });
    expect([dead.status, dead.body]).toEqual([503, '{"status":"stalled","stalled":["projector"]}']);
  });

  it.each([
    ['that answers', async () => ({ ready: true, degraded: ['agent lags'] }), 200, '{"status":"ready","degraded":["agent lags"]}'],
    ['that does not answer yet', async () => ({ ready: false, degraded: [] }), 503, '{"status":"unready","degraded":[]}'],
    ['that is gone', () => Promise.reject(new Error('gone')), 503, '{"status":"unready","degraded":[]}'],
  ])('/readyz of a store %s', async (_, readiness, status, body) => {
    const edge = await startEdge({ health: { stalled: () => [], readiness } });
    const answer = await edge.send({ path: '/readyz', headers: anonymous });
    expect([answer.status, answer.body]).toEqual([status, body]);
  });

  it('/metrics by route template, never by path', async () => {
    const metrics = createMetrics();
    metrics.appended(0.002);
    metrics.versionConflict();
    metrics.watch(async () => ({ projectionLagSeconds: { agent: 0.5 }, parkedStreams: { agent: 1 }, queueAgeSeconds: 3, dataFolderFreeBytes: 4_096 }));
    const edge = await startEdge({ metrics, answers: { 'installation.get': installationView } });
    await edge.send({});
    await edge.send({ path: '/namespaces/ns_1' });
    await edge.send({ path: '/nothing/at/all' });
    const { body, headers } = await edge.send({ path: '/metrics', headers: anonymous });
    expect(headers.get('content-type')).toContain('text/plain');
    expect(body).toContain('exuvia_http_request_seconds_count{method="GET",route="/installation",status="200"} 1');
    expect(body).toContain('exuvia_http_request_seconds_count{method="GET",route="/namespaces/:namespaceId",status="400"} 1');
    expect(body).toContain('exuvia_http_request_seconds_count{method="GET",route="unmatched",status="404"} 1');
    expect(body).not.toContain('ns_1');
    expect(body).toContain('exuvia_append_seconds_count 1');
    expect(body).toContain('exuvia_version_conflicts_total 1');
    expect(body).toContain('exuvia_projection_lag_seconds{consumer="agent"} 0.5');
    expect(body).toContain('exuvia_parked_streams{consumer="agent"} 1');
    expect(body).toContain('exuvia_queue_age_seconds 3');
    expect(body).toContain('exuvia_data_folder_free_bytes 4096');
  });

  it('/metrics without the standing that cannot be read', async () => {
    const metrics = createMetrics();
    metrics.watch(() => Promise.reject(new Error('gone')));
    const { text } = await metrics.exposition();
    expect(text).not.toMatch(/^exuvia_(projection_lag_seconds|parked_streams)\{/m);
    expect(text).toContain('process_cpu_seconds_total');
  });

  it('/openapi.json of exactly the routes there are', async () => {
    const edge = await startEdge();
    const { body } = await edge.send({ path: '/openapi.json', headers: anonymous });
    interface Operation {
      readonly operationId: string;
      readonly tags: readonly string[];
      readonly security: readonly object[];
      readonly responses: Record<string, object>;
      readonly 'x-openclaw-permissions': readonly { readonly action: string; readonly resourceKind: string; readonly scope: string }[];
    }
    const document = JSON.parse(body) as { openapi: string; paths: Record<string, Record<string, Operation>>; components: { schemas: object; securitySchemes: object } };
    expect(document.openapi).toBe('3.1.0');
    const operations = Object.entries(document.paths).flatMap(([path, methods]) => Object.entries(methods).map(([method, operation]) => ({ path, method, ...operation })));
    const known = routes.map(({ method, path, operationId }) => ({ operationId, method: method.toLowerCase(), path: path.replaceAll(/:(\w+)/g, '{$1}') }));
    expect(operations.map(({ operationId, method, path }) => ({ operationId, method, path })).toSorted((a, b) => a.operationId.localeCompare(b.operationId))).toEqual(
      known.toSorted((a, b) => a.operationId.localeCompare(b.operationId)),
    );
    expect(new Set(operations.map(({ operationId }) => operationId)).size).toBe(operations.length);
    for (const operation of operations) {
      expect(operation.tags).toHaveLength(1);
      const { access = 'caller' } = routes.find(({ operationId }) => operationId === operation.operationId)!;
      expect(operation.security).toEqual({ public: [], human: [{ sessionCookie: [] }], caller: [{ sessionCookie: [] }, { serviceApiKey: [] }] }[access]);
      if (operation.tags[0] !== 'Authentication') expect(operation['x-openclaw-permissions'].length).toBeGreaterThan(0);
    }
    expect(Object.keys(document.components.securitySchemes)).toEqual(['sessionCookie', 'serviceApiKey']);
    for (const [, name] of body.matchAll(/"#\/components\/schemas\/(\w+)"/g)) expect(document.components.schemas).toHaveProperty(name!);
  });

  it('nothing under another method or a longer path', async () => {
    const edge = await startEdge();
    for (const path of ['/healthz', '/readyz', '/metrics', '/openapi.json']) expect((await edge.send({ method: 'POST', path })).status).toBe(404);
    expect((await edge.send({ path: '/graphql/x' })).status).toBe(404);
  });
});

describe('errors', () => {
  const failing = async (error: Error) => {
    const edge = await startEdge({ answers: { 'installation.get': error } });
    return { edge, answer: await edge.send({}) };
  };
  const coded = (code: string, message = 'no') => Object.assign(new Error(message), { code });

  it('that the caller can act on are shown in full and not logged', async () => {
    const { edge, answer } = await failing(new Refusal('RESOURCE_CONFLICT', 'The name is taken', { details: [{ path: '/name', code: 'INVALID_VALUE' }] }));
    expect(answer.status).toBe(409);
    expect(errorOf(answer)).toEqual({ code: 'RESOURCE_CONFLICT', message: 'The name is taken', details: [{ path: '/name', code: 'INVALID_VALUE' }] });
    expect(edge.log).toEqual([]);
  });

  it.each([
    [new Refusal('RATE_LIMITED', 'Slower', { retryAfterSeconds: 7 }), '7'],
    [new Refusal('RATE_LIMITED', 'Slower'), '1'],
  ])('of too many requests say when to come back', async (refusal, seconds) => {
    const { answer } = await failing(refusal);
    expect([answer.status, answer.headers.get('retry-after')]).toEqual([429, seconds]);
  });

  it.each([
    ['an event this build cannot read', new Undecodable('Unknown event type Later')],
    ['a store that does not answer', Object.assign(new Error('no'), { name: 'StoreUnavailable' })],
    ['a connection that is refused', coded('ECONNREFUSED')],
    ['a server that is shutting down', coded('57P01')],
    ['a server that is full', coded('53300')],
    ['a standby that only reads', coded('25006')],
    ['a standby that cannot say yet which server it is', coded('55000')],
    ['a standby that has cancelled a read', coded('40001')],
    ['a connection that broke', new Error('Connection terminated unexpectedly')],
    ['a server that fell silent', new Error('Query read timeout')],
    ['a pool that found no connection', new Error('timeout exceeded when trying to connect')],
    ['a dependency that says so', unavailable('policy', new Error('down'))],
  ])('of %s are 503, with the cause in the log only', async (_, error) => {
    const { edge, answer } = await failing(error);
    expect(answer.status).toBe(503);
    expect(errorOf(answer)).toEqual({ code: 'DEPENDENCY_UNAVAILABLE', message: 'A required dependency is unavailable' });
    expect(edge.log).toEqual([expect.objectContaining({ level: 'warn', msg: 'Dependency unavailable', requestId: answer.headers.get('x-request-id') })]);
  });

  it.each([
    ['a mistake of ours', new TypeError('secret detail')],
    ['a statement that is wrong', coded('42601', 'secret detail')],
  ])('of %s are masked, and logged once with their cause', async (_, error) => {
    const { edge, answer } = await failing(error);
    expect(answer.status).toBe(500);
    expect(answer.body).not.toContain('secret detail');
    expect(errorOf(answer).code).toBe('INTERNAL_ERROR');
    expect(edge.log).toHaveLength(1);
    expect(edge.log[0]).toMatchObject({ level: 'error', requestId: answer.headers.get('x-request-id'), error: { message: 'secret detail' } });
  });

  it('of GraphQL are answered too', async () => {
    const edge = await startEdge({ graphql: () => Promise.reject(new Error('no')) });
    expect((await edge.send({ method: 'POST', path: '/graphql' })).status).toBe(500);
  });
});

describe('the log', () => {
  it('holds no credential and no value of a statement', () => {
    const lines: string[] = [];
    const log = createLogger({ level: 'info', to: { write: (line) => void lines.push(line) } });
    log.info({ headers: { 'x-api-key': 'hush', cookie: 'hush', authorization: 'hush', accept: 'json' }, password: 'hush', key: 'hush' }, 'Seen');
    log.error({ error: Object.assign(new Error('outer', { cause: new Error('inner') }), { code: '23505', detail: 'Key (name)=(hush)' }) }, 'Failed');
    expect(lines.join('')).not.toContain('hush');
    expect(JSON.parse(lines[0]!)).toMatchObject({ level: 'info', msg: 'Seen', headers: { accept: 'json' } });
    expect(JSON.parse(lines[1]!)).toMatchObject({ error: { type: 'Error', message: 'outer', code: '23505', cause: { message: 'inner' } } });
  });
});

describe('a caller whose body was long in coming', () => {
  const named = JSON.stringify({ name: 'late' });
  const queried = JSON.stringify({ query: '{ __typename }' });

  it.each([
    ['REST', '/namespaces', named],
    ['GraphQL', '/graphql', queried],
  ])('is established again when it is there, over %s: what ended meanwhile counts no more', async (_, path, body) => {
    const statusOf = async (arrivedAt: number): Promise<readonly [status: number, established: number]> => {
      let established = 0;
      const authenticate: Authenticate = async (_headers, requestId) => {
        if (++established > 1) throw unauthenticated();
        return { actor: { principalId: 'spn_1', kind: 'service_principal' }, keyNamespaceId: undefined, arrivedAt, requestId };
      };
      const log = createLogger({ level: 'silent' });
      const graphql = createGraphqlHandler({ services: {} as never, core: {} as never, reads: {} as never, authenticate, metrics: createMetrics(), log, settings: { mode: 'production' }, changes: { subscribe: () => () => {} } });
      const { send } = await startEdge({ answers: { 'namespaces.create': namespaceView }, authenticate, graphql });
      return [(await send({ method: 'POST', path, body })).status, established];
    };
    expect(await statusOf(performance.now() - 251)).toEqual([401, 2]);
    expect(await statusOf(Infinity)).toEqual([path === '/graphql' ? 200 : 201, 1]);
  });
});
