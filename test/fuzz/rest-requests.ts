/** Random REST requests, made from the table of routes: each is a valid one with a few things wrong. (rest-contract 1.1) */
import { routes } from '../../src/http/rest/routes.ts';
import { parametersOf, type Route } from '../../src/http/rest/route.ts';
import type { Random } from './random.ts';
import { junkTexts, spoiled, valueOf } from './values.ts';
import type { Credential, World } from './world.ts';

export interface FuzzRequest {
  readonly credential: Credential;
  readonly method: string;
  /** The target of the request line. */
  readonly target: string;
  /** In order; names may repeat. */
  readonly headers: readonly (readonly [name: string, value: string])[];
  readonly body: Buffer | undefined;
  /** The route it was made from; undefined for a GraphQL request. */
  readonly route?: Route;
}

const methods = ['GET', 'POST', 'PATCH', 'DELETE', 'PUT', 'HEAD', 'OPTIONS', 'TRACE', 'PROPFIND', 'SEARCH', 'QUERY', 'LOCK', 'M-SEARCH'];
const otherPaths = ['/', '//', '/healthz', '/readyz', '/metrics', '/openapi.json', '/graphql', '/graphqlx', '/api/auth/sign-up/email', '/namespaces/', '/namespaces//agents', '/NAMESPACES', '/installation/..', '/%2e%2e/installation', '/%', '/%ff', '/%00', '/favicon.ico', '/.git/config', `/${'a'.repeat(5_000)}`, '/namespaces;a=b', '*', 'http://127.0.0.1/installation', 'https://elsewhere.example/namespaces?x'];

export const credentialOf = (random: Random, { credentials }: World): Credential =>
  random.pick(
    credentials[
      random.weighted([
        [2, 'none'],
        [2, 'junk'],
        [3, 'stranger'],
        [4, 'partial'],
        [5, 'administrator'],
      ] as const)
    ],
  );

const parameter = (random: Random, prefix: string | undefined, world: World): string => {
  if (prefix === undefined) return encodeURIComponent(random.pick(junkTexts).toWellFormed()) || 'a';
  if (!random.chance(0.08)) return random.early(world.ids(prefix));
  const id = random.early(world.ids(prefix));
  return random.pick([id.toUpperCase(), id.slice(0, -1), `${id}a`, id.replace('-4', '-1'), id.replace('_', '-'), random.early(world.ids('ns')), encodeURIComponent(random.pick(junkTexts).toWellFormed()), '%', '%ff', '%2f', '.', '..', 'ns_1%00']);
};

const pathOf = (random: Random, { path }: Route, world: World): string => {
  const prefixes = new Map(parametersOf(path).map(({ name, prefix }) => [name, prefix]));
  return path.replaceAll(/:(\w+)/g, (_, name: string) => parameter(random, prefixes.get(name), world));
};

const queryOf = (random: Random): string => (random.chance(0.04) ? random.pick(['?', '?a=1', '?namespaceId=ns_1&namespaceId=ns_2', '?%', '?a[]=1&a[]=2', `?${'a=1&'.repeat(300)}`, '#part', '?__proto__[a]=1']) : '');

const oddHeaders: readonly (readonly [name: string, value: string])[] = [
  ['origin', 'https://console.example'],
  ['origin', 'https://evil.example'],
  ['origin', 'null'],
  ['sec-fetch-site', 'cross-site'],
  ['sec-fetch-site', 'same-origin'],
  ['x-forwarded-for', '10.0.0.1'],
  ['x-forwarded-host', 'evil.example'],
  ['forwarded', 'for=10.0.0.1'],
  ['x-real-ip', '10.0.0.1'],
  ['cookie', 'openclaw_occ.session_token=a; openclaw_occ.session_token=b'],
  ['cookie', '='],
  ['x-api-key', 'another'],
  ['authorization', 'Basic Og=='],
  ['x-occ-session-key', 'lobster'],
  ['x-occ-cli-session', 'occcli_lobster'],
  ['x-request-id', 'req_00000000-0000-4000-8000-000000000000'],
  ['x-principal-id', 'spn_1'],
  ['idempotency-key', 'short'],
  ['idempotency-key', 'k'.repeat(129)],
  ['idempotency-key', 'an idempotency key'],
  ['if-match', '"1"'],
  ['if-match', '1'],
  ['if-match', 'W/"1"'],
  ['if-match', '*'],
  ['accept', 'text/html'],
  ['accept', 'application/graphql-response+json'],
  ['accept', 'text/event-stream'],
  ['accept', 'multipart/mixed'],
  ['accept', 'application/json;charset=latin1, */*;q=0'],
  ['accept', ','],
  ['accept-encoding', 'gzip, br'],
  ['content-encoding', 'gzip'],
  ['content-type', 'application/json; charset=latin1'],
  ['content-type', 'text/plain'],
  ['content-type', 'multipart/form-data; boundary=x'],
  ['content-type', 'application/x-www-form-urlencoded'],
  ['content-type', ';;'],
  ['host', 'evil.example'],
  ['host', '127.0.0.1:1'],
  ['connection', 'close'],
  ['upgrade', 'h2c'],
  ['expect', '100-continue'],
  ['expect', 'a miracle'],
  ['range', 'bytes=0-1'],
  ['x-http-method-override', 'DELETE'],
  ['accept-version', '9'],
  ['x-long', 'x'.repeat(2_000)],
];

export const headersOf = (random: Random): readonly (readonly [name: string, value: string])[] => {
  const headers: (readonly [string, string])[] = [];
  while (random.chance(headers.length === 0 ? 0.15 : 0.4)) headers.push(random.pick(oddHeaders));
  return headers;
};

const brokenBodies: readonly (string | Buffer)[] = ['', ' ', '{', '{"name":"a"', '[]', 'null', '{}', '"', '{"name":"a","name":"b"}', '\ufeff{}', '{"a":1e999}', '{"a":"\\ud800"}', "{'a':1}", '{}{}', Buffer.from([0x7b, 0x22, 0xff, 0xfe, 0x7d]), Buffer.from([0x1f, 0x8b, 0x08, 0x00]), '['.repeat(5_000)];

export const brokenBody = (random: Random): Buffer => Buffer.from(random.chance(0.02) ? 'x'.repeat(470_000) : random.pick(brokenBodies));

const bodyOf = (random: Random, { body, method }: Route, world: World): Buffer | undefined => {
  if (body === undefined) return method !== 'GET' && random.chance(0.05) ? brokenBody(random) : undefined;
  if (random.chance(0.1)) return random.chance(0.2) ? undefined : brokenBody(random);
  const value = valueOf(random, body, world);
  return Buffer.from(JSON.stringify(random.chance(0.35) ? spoiled(random, value) : value) ?? '');
};

/** A guessed password costs as much work as a right one, so guesses are few. */
const [guesses, others] = [routes.filter(({ origin }) => origin === 'sign-in'), routes.filter(({ origin }) => origin !== 'sign-in')];

export const restRequest = (random: Random, world: World): FuzzRequest => {
  const route = random.pick(random.chance(0.004) ? guesses : others);
  const body = bodyOf(random, route, world);
  const target = (random.chance(0.05) ? random.pick(otherPaths) : pathOf(random, route, world) + (random.chance(0.02) ? '/' : '')) + queryOf(random);
  const method = random.chance(0.06) ? random.pick(methods) : route.method;
  return {
    credential: credentialOf(random, world),
    // What is too long to be parsed has no method, so that nobody knows that its answer must have no body.
    method: method === 'HEAD' && target.length > 8_000 ? 'GET' : method,
    target,
    headers: [...(body === undefined || random.chance(0.05) ? [] : [['content-type', 'application/json'] as const]), ...headersOf(random)],
    body,
    route,
  };
};
