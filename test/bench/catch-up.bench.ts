/** Events per second that the projector and the sagas catch up with, beside bare pages of the event store. */
import type { Pool } from 'pg';
import { productEvents, projections } from '../../projections/index.ts';
import type { EventStore, StoredEvent } from '../../src/event-store/event-store.ts';
import { canonicalText } from '../../src/kernel/canonical.ts';
import type { Message } from '../../src/kernel/decider.ts';
import { hashOf, type Metadata } from '../../src/kernel/event.ts';
import { newId } from '../../src/kernel/ids.ts';
import { workKey } from '../../src/kernel/work.ts';
import { openPool } from '../../src/postgres/pool.ts';
import { runConsumers } from '../../src/runtime/consumer-runner.ts';
import { projector } from '../../src/runtime/projector.ts';
import { sagaProcessor } from '../../src/runtime/saga-processor.ts';
import { tableOf } from '../../src/runtime/projection.ts';
import { work } from '../../src/sagas/index.ts';
import { v7 as uuid } from 'uuid';
import { interleaved, quick, withStores, type Row, type StoreName } from './measure.ts';

const eventCount = quick ? 1_000 : 50_000;
const rounds = quick ? 1 : 3;
const pageSize = 1_000;
const installationId = newId('ins');
const prefix = `${installationId}-`;
const filter = { streamPrefix: prefix };

/** The life of one Agent: created, changed twice, deployed three times with evidence, stopped; 21 events on 4 streams. */
const agentLife = (namespaceId: string, configurationId: string, index: number): readonly (readonly [string, Message])[] => {
  const agentId = newId('agt');
  const place = { agentId, namespaceId };
  const agent = (type: string, data: object = {}): readonly [string, Message] => [`agent-${agentId}`, { type, data: { ...place, ...data } }];
  const compute = { id: 'cmp_default', implementation: 'process' };
  const settings = { harnessAuth: { method: 'runtime' }, credentialSources: [] };
  const deployment = (number: number): readonly (readonly [string, Message])[] => {
    const revisionId = newId('rev');
    const configuration = { configurationId, configurationGeneration: 1 };
    const document = { model: { primary: 'provider/model-large', fallbacks: ['provider/model-small'] }, instructions: 'Answer briefly and name your sources. '.repeat(20) };
    return [
      [
        `revision-${revisionId}`,
        {
          type: 'AgentRevisionSnapshotted',
          data: {
            ...place,
            ...configuration,
            revisionId,
            number,
            servicePrincipalId: 'spn_bench',
            backendId: null,
            harness: { id: 'openclaw', version: '1.0.0', mode: 'embedded' },
            compute,
            settings: { ...settings, configuration: document },
          },
        },
      ],
      agent('AgentRevisionAdmitted', { ...configuration, revisionId, number, digest: 'a'.repeat(64), compute, exclusive: false }),
      [`agent-${agentId}`, { type: 'WorkDeferred', data: { workKey: workKey.deployment(revisionId), code: 'REVISION_INCOMPLETE' } }],
      agent('AgentRevisionSelected', { revisionId, previousRevisionId: null }),
      agent('DeploymentActivated', { revisionId, code: 'REVISION_ACTIVATED', previousRevisionId: null, warnings: [] }),
    ];
  };
  const operationId = newId('opr');
  return [
    [`namespace-${namespaceId}`, { type: 'ResourceAdmitted', data: { kind: 'agent', id: agentId, name: `agent-${index}`, refersTo: [{ kind: 'configuration', id: configurationId }] } }],
    agent('AgentCreated', { name: `agent-${index}`, servicePrincipalId: 'spn_bench', configurationId, executionMode: 'embedded', backendId: null, settings }),
    agent('AgentConfigurationBound', { configurationId }),
    agent('AgentPluginsReplaced', { settings: { plugins: { github: { enabled: true } } } }),
    ...[1, 2, 3].flatMap(deployment),
    agent('AgentStopRequested', { operationId }),
    agent('AgentStopped', { operationId, code: 'AGENT_STOPPED', revisionId: null }),
  ];
};

type Written = StoredEvent & { readonly number: number };

const makeEvents = (): readonly Written[] => {
  const heads = new Map<string, { revision: number; hash: string | null }>();
  const namespaceId = newId('ns');
  const configurationId = newId('cfg');
  const rows: Written[] = [];
  const actor = { principalId: newId('prn'), kind: 'principal' } as const;
  for (let agent = 0; rows.length < eventCount; agent += 1)
    for (const [name, event] of agentLife(namespaceId, configurationId, agent)) {
      const stream = prefix + name;
      const head = heads.get(stream) ?? { revision: -1, hash: null };
      const { type, schema, data } = productEvents.encode(event);
      const requestId = newId('req');
      const resource = { kind: 'agent', id: newId('agt'), namespaceId } as const;
      const metadata: Metadata = {
        schema,
        actor,
        requestId,
        correlationId: requestId,
        causationId: null,
        occurredAt: new Date().toISOString(),
        policyRevision: 7,
        audit: { kind: 'mutation', action: 'openclaw.agents.update', resource, outcome: 'success' },
        previousHash: head.hash,
      };
      const revision = head.revision + 1;
      const bytes = { id: uuid(), type, data, metadata: canonicalText(metadata) };
      heads.set(stream, { revision, hash: hashOf(stream, revision, bytes) });
      rows.push({ ...bytes, stream, revision, position: '' as StoredEvent['position'], number: rows.length + 1 });
    }
  return rows.slice(0, eventCount);
};

/** Fills the event table as the store would have, many rows at a time. */
const writeRows = async (pool: Pool, rows: readonly Written[]): Promise<void> => {
  for (let from = 0; from < eventCount; from += pageSize)
    await pool.query(
      `insert into event (position, stream, revision, id, type, data, metadata)
       select number, stream, revision, id, type, data, metadata from json_to_recordset($1::json)
           as new (number bigint, stream text, revision integer, id uuid, type text, data text, metadata text)`,
      [JSON.stringify(rows.slice(from, from + pageSize))],
    );
  await pool.query('vacuum analyze event');
};

/** Fills another store, with neighbours of one stream in one append. */
const appendAll = async (store: EventStore, rows: readonly Written[]): Promise<void> => {
  for (let from = 0, to = 1; from < rows.length; from = to) {
    const { stream, revision } = rows[from]!;
    for (to = from + 1; rows[to]?.stream === stream; ) to += 1;
    await store.append(stream, revision - 1, rows.slice(from, to));
  }
};

const barePages = async (store: EventStore): Promise<number> => {
  const begin = performance.now();
  let events = 0;
  for (let page = await store.readAll(null, filter, pageSize); ; page = await store.readAll(page.position, filter, pageSize)) {
    events += page.events.length;
    if (page.end) return (events * 1_000) / (performance.now() - begin);
  }
};

const catchUp = async (url: string, pool: Pool, store: EventStore): Promise<number> => {
  const tables = projections.map(tableOf);
  await pool.query(`drop table if exists ${tables.join(', ')}; truncate consumer_checkpoint, work_item`);
  const stopping = new AbortController();
  const consumers = [...projections.map(projector), sagaProcessor(work)];
  const begin = performance.now();
  let events = 0;
  await new Promise<void>((resolve, reject) => {
    const { done } = runConsumers({
      url,
      store,
      prefix,
      codec: productEvents,
      consumers,
      signal: stopping.signal,
      onFault: reject,
      onBatch: (batch) => {
        events += batch.events;
        if (events >= eventCount) stopping.abort();
      },
    });
    done.then(resolve, reject);
  });
  return (eventCount * 1_000) / (performance.now() - begin);
};

export const measure = (storeName: StoreName): Promise<Row[]> =>
  withStores(storeName, async ({ url, openEventStore }) => {
    const pool = openPool({ url });
    const store = openEventStore(pool);
    try {
      const events = makeEvents();
      await (storeName === 'PostgreSQL' ? writeRows(pool, events) : appendAll(store, events));
      const [value, yardstickValue] = await interleaved(rounds, [() => catchUp(url, pool, store), () => barePages(store)]);
      return [
        {
          name: `catch-up over ${eventCount} events`,
          unit: 'events/s',
          value: value!,
          yardstick: 'bare pages of the event store',
          yardstickValue: yardstickValue!,
          ratio: value! / yardstickValue!,
          aim: 0.5,
        },
      ];
    } finally {
      await store.close();
      await pool.end();
    }
  });
