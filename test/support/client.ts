/** A client of a running server over real HTTP: REST and GraphQL with one key, and waiting for a state. */
import { setTimeout as delay } from 'node:timers/promises';

export interface RestAnswer<T = Record<string, unknown>> {
  readonly status: number;
  readonly headers: Headers;
  readonly data: T;
  readonly error: { readonly code: string; readonly message: string; readonly details?: readonly { path: string; code: string }[] };
  readonly requestId: string;
}

export interface GraphqlAnswer<T> {
  readonly status: number;
  readonly data: T;
  readonly errors?: readonly { readonly message: string; readonly extensions: { readonly code: string; readonly status: number; readonly requestId: string } }[];
}

export interface Client {
  readonly origin: string;
  rest<T = Record<string, unknown>>(method: string, path: string, body?: unknown, headers?: Record<string, string>): Promise<RestAnswer<T>>;
  graphql<T>(query: string, variables?: object): Promise<GraphqlAnswer<T>>;
}

export const createClient = (origin: string, key: string): Client => ({
  origin,
  rest: async (method, path, body, headers = {}) => {
    const response = await fetch(origin + path, {
      method,
      headers: { 'x-api-key': key, ...(body !== undefined && { 'content-type': 'application/json' }), ...headers },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    });
    const text = await response.text();
    const { data, error, meta } = (text === '' ? { meta: {} } : JSON.parse(text)) as { data: never; error: never; meta: { requestId: string } };
    return { status: response.status, headers: response.headers, data, error, requestId: meta.requestId };
  },
  graphql: async (query, variables = {}) => {
    const response = await fetch(`${origin}/graphql`, {
      method: 'POST',
      headers: { 'x-api-key': key, 'content-type': 'application/json' },
      body: JSON.stringify({ query, variables }),
    });
    return { status: response.status, ...((await response.json()) as { data: never }) };
  },
});

/** Looks until it is as expected; fails naming what was expected and what was seen last. */
export const eventually = async <T>(expected: string, look: () => Promise<T>, isSo: (seen: T) => boolean, deadlineMs = 30_000): Promise<T> => {
  const until = performance.now() + deadlineMs;
  for (;;) {
    const seen = await look();
    if (isSo(seen)) return seen;
    if (performance.now() > until) throw new Error(`Expected ${expected}, last saw ${JSON.stringify(seen)}`);
    await delay(20);
  }
};
