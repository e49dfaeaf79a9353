/**
 * GraphQL at /graphql. The caller is established and a bounded body is read before anything is parsed as a
 * document; graphql-yoga then executes it, and streams subscriptions as server-sent events.
 * (architecture section 7, iam-auth-audit 8.4)
 */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { _createLRUCache as createLruCache, createYoga, type Plugin } from 'graphql-yoga';
import { schema, type Context } from '../../schema/index.ts';
import { deploymentView } from '../agent-revision/service.ts';
import { establishedLately, newRequestId, type Authenticate } from '../iam/authenticate.ts';
import { Refusal } from '../kernel/errors.ts';
import type { Core } from '../core.ts';
import { createHistoryFeed } from '../history/feed.ts';
import { createWatch, type Changes } from '../runtime/watch.ts';
import type { Reads, Services } from '../services.ts';
import type { Log } from '../telemetry/logger.ts';
import type { Metrics } from '../telemetry/metrics.ts';
import { write } from './answer.ts';
import { publicRefusal, statusOf } from './errors.ts';
import { acceptOf } from './graphql-accept.ts';
import { readDocument } from './graphql-body.ts';
import { createDenialAllowance } from './graphql-denials.ts';
import { useLimits } from './graphql-limits.ts';
import { useMasking, type Masking } from './graphql-masking.ts';
import { useOutcome, type Outcome } from './graphql-outcome.ts';
import { createPage, pageHeaders } from './graphql-page.ts';
import { writeGraphqlRefusal } from './graphql-refusal.ts';
import { disconnectLater, useSubscribers, type Subscriber } from './graphql-subscribers.ts';
import { useFreshContexts } from './graphql-subscription.ts';

export interface GraphqlHandler {
  /** Answers every method on /graphql; never rejects. */
  (request: IncomingMessage, response: ServerResponse): Promise<void>;
  /** Completes every subscription, so that the server can drain. */
  close(): void;
}

const path = '/graphql';

/** Documents kept parsed: each takes up to 2 MiB, and a client may send a new one every time. */
const keptDocuments = 32;

/** The same headers as on every other answer, on event streams too. */
const fixedHeaders: Plugin<object, Masking> = {
  onResponse: ({ response, serverContext }) => {
    response.headers.set('x-request-id', serverContext.caller.requestId);
    response.headers.delete('cache-control');
    response.headers.set('cache-control', 'no-store');
    response.headers.set('x-content-type-options', 'nosniff');
  },
};

const repeat: Context['every'] = (ms, listener) => {
  const timer = setInterval(listener, ms);
  return () => clearInterval(timer);
};

export const createGraphqlHandler = ({
  services,
  core,
  reads,
  authenticate,
  metrics,
  log,
  settings,
  changes,
  every = repeat,
}: {
  readonly services: Services;
  readonly core: Pick<Core, 'authorizer'>;
  readonly reads: Reads;
  readonly authenticate: Authenticate;
  readonly metrics: Pick<Metrics, 'operated' | 'subscribed'>;
  readonly log: Log;
  readonly settings: { readonly mode: 'development' | 'production' };
  /** Rings when events were applied or work was written: what subscriptions wait for. */
  readonly changes: Changes;
  /** When subscribers are judged again although nothing changes. */
  readonly every?: Context['every'];
}): GraphqlHandler => {
  const watches = {
    agents: createWatch({ changes, read: async (ids) => new Map((await reads.agents.byIds(ids)).rows.map((agent) => [agent.id, JSON.stringify(agent)])) }),
    deployments: createWatch({ changes, read: async (ids) => new Map((await reads.deployments.byIds(ids)).rows.map(({ record, work }) => [record.revisionId, JSON.stringify(deploymentView(record, work))])) }),
    history: createHistoryFeed({ reads: reads.history, changes }),
  };
  const page = createPage(path);
  const closing = new AbortController();

  const yoga = createYoga<Masking & Subscriber & Pick<Context, 'renewCaller' | 'ended'>, Omit<Context, 'caller' | 'renewCaller' | 'ended'>>({
    schema,
    context: { services, reads, authorizer: core.authorizer, watches, every, closing: closing.signal },
    graphqlEndpoint: path,
    graphiql: false,
    landingPage: false,
    healthCheckEndpoint: '/',
    batching: false,
    multipart: false,
    cors: false,
    logging: false,
    maskedErrors: false,
    parserAndValidationCache: { documentCache: createLruCache({ max: keptDocuments }), errorCache: createLruCache({ max: keptDocuments }) },
    plugins: [useOutcome(), useLimits(), useSubscribers(metrics), useFreshContexts(), useMasking(log), fixedHeaders],
  });

  const refuse = (response: ServerResponse, refusal: Refusal, requestId: string): void => {
    writeGraphqlRefusal(response, refusal, requestId, {
      ...(refusal.code === 'METHOD_NOT_ALLOWED' && { allow: settings.mode === 'development' ? 'GET, POST' : 'POST' }),
      ...(refusal.code === 'PAYLOAD_TOO_LARGE' && { connection: 'close' }),
    });
  };

  const execute = async (request: IncomingMessage, response: ServerResponse, requestId: string, outcome: Outcome): Promise<void> => {
    const denials = createDenialAllowance();
    const renewCaller = async () => ({ ...(await authenticate(request.headers, requestId)), denials });
    const early = await renewCaller();
    const document = await readDocument(request);
    const caller = await establishedLately(early, renewCaller);
    request.headers.accept = acceptOf(request.headers.accept);
    // A body that is parsed already is what yoga takes first; its own path in another case is none to it.
    await yoga.handle(Object.assign(request, { body: document, url: path }), response, {
      caller,
      renewCaller,
      response,
      ended: () => disconnectLater(response, every),
      ending: denials.refusal,
      outcome,
    });
  };

  const handle = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const requestId = newRequestId();
    const outcome: Outcome = { operation: 'none', status: 200 };
    const begun = performance.now();
    try {
      if (request.method === 'GET' && settings.mode === 'development') return write(response, 200, requestId, await page(), pageHeaders);
      response.once('close', () => metrics.operated(outcome.operation, outcome.status, (performance.now() - begun) / 1_000));
      if (request.method !== 'POST') throw new Refusal('METHOD_NOT_ALLOWED', 'GraphQL takes POST');
      await execute(request, response, requestId, outcome);
    } catch (error) {
      const refusal = publicRefusal(error, requestId, log);
      outcome.status = statusOf(refusal);
      if (response.headersSent) response.destroy();
      else refuse(response, refusal, requestId);
    }
  };
  return Object.assign(handle, { close: () => closing.abort() });
};
