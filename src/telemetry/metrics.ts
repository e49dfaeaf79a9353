/** What the product counts and measures, in Prometheus' text form. Labels come from closed lists, never from a request. */
import { Counter, Gauge, Histogram, Registry, collectDefaultMetrics } from 'prom-client';

/** How far the loops behind the edges are, as the database tells at the moment of a scrape. */
export interface Standing {
  /** Seconds since each consumer last stood at the end of the store, by its name. */
  readonly projectionLagSeconds: Readonly<Record<string, number>>;
  /** Streams each consumer has parked, by its name. */
  readonly parkedStreams: Readonly<Record<string, number>>;
  /** Seconds the oldest due work item has waited; 0 when none waits. */
  readonly queueAgeSeconds: number;
  /** What this process may still write to the disk of its data folder, where the embedded database lives. */
  readonly dataFolderFreeBytes: number;
}

export type GraphqlOperation = 'query' | 'mutation' | 'subscription' | 'none';

export interface Metrics {
  /** One answered request, by the template of its route. */
  answered(method: string, route: string, status: number, seconds: number): void;
  /** One GraphQL request whose answer, for subscriptions whose stream, has ended; `status` is the worst among its errors. */
  operated(operation: GraphqlOperation, status: number, seconds: number): void;
  /** Subscriptions that were opened, or with a negative number closed. */
  subscribed(change: 1 | -1): void;
  /** One append to the event store. */
  appended(seconds: number): void;
  /** One append that met a stream which had moved. */
  versionConflict(): void;
  /** One denial that was refused without a record of its own. */
  denialSuppressed(): void;
  /** Asks for the standing at every scrape. */
  watch(read: () => Promise<Standing>): void;
  exposition(): Promise<{ readonly contentType: string; readonly text: string }>;
}

const requestBuckets = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5];
const appendBuckets = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1];

export const createMetrics = (): Metrics => {
  const registry = new Registry();
  const registers = [registry];
  collectDefaultMetrics({ register: registry });
  const requests = new Histogram({ registers, name: 'exuvia_http_request_seconds', help: 'Duration of requests by route template', labelNames: ['method', 'route', 'status'], buckets: requestBuckets });
  const operations = new Histogram({ registers, name: 'exuvia_graphql_operation_seconds', help: 'Duration of GraphQL requests by kind of operation and class of the worst status among their errors', labelNames: ['operation', 'outcome'], buckets: requestBuckets });
  const subscriptions = new Gauge({ registers, name: 'exuvia_graphql_subscriptions', help: 'Open GraphQL subscriptions' });
  const appends = new Histogram({ registers, name: 'exuvia_append_seconds', help: 'Duration of appends to the event store', buckets: appendBuckets });
  const conflicts = new Counter({ registers, name: 'exuvia_version_conflicts_total', help: 'Appends that met a stream which had moved' });
  const lag = new Gauge({ registers, name: 'exuvia_projection_lag_seconds', help: 'Time since a consumer last stood at the end of the store', labelNames: ['consumer'] });
  const parked = new Gauge({ registers, name: 'exuvia_parked_streams', help: 'Streams a consumer cannot read and has set aside', labelNames: ['consumer'] });
  const queueAge = new Gauge({ registers, name: 'exuvia_queue_age_seconds', help: 'How long the oldest due work item has waited' });
  const suppressed = new Counter({ registers, name: 'exuvia_denials_suppressed_total', help: 'Denials beyond the limit of a principal, refused without a record of their own' });
  const free = new Gauge({ registers, name: 'exuvia_data_folder_free_bytes', help: 'Free space on the disk of the data folder' });
  let readStanding: (() => Promise<Standing>) | undefined;

  /** Gauges of a standing that cannot be read are left out; the rest of the scrape still answers. */
  const refresh = async (): Promise<void> => {
    lag.reset();
    parked.reset();
    queueAge.remove();
    free.remove();
    const standing = await readStanding?.().catch(() => undefined);
    if (standing === undefined) return;
    for (const [consumer, seconds] of Object.entries(standing.projectionLagSeconds)) lag.set({ consumer }, seconds);
    for (const [consumer, streams] of Object.entries(standing.parkedStreams)) parked.set({ consumer }, streams);
    queueAge.set(standing.queueAgeSeconds);
    free.set(standing.dataFolderFreeBytes);
  };

  return {
    answered: (method, route, status, seconds) => requests.observe({ method, route, status }, seconds),
    operated: (operation, status, seconds) => operations.observe({ operation, outcome: `${Math.floor(status / 100)}xx` }, seconds),
    subscribed: (change) => subscriptions.inc(change),
    appended: (seconds) => appends.observe(seconds),
    versionConflict: () => conflicts.inc(),
    denialSuppressed: () => suppressed.inc(),
    watch: (read) => {
      readStanding = read;
    },
    exposition: async () => {
      await refresh();
      return { contentType: registry.contentType, text: await registry.metrics() };
    },
  };
};
