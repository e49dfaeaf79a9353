/** The events of one Agent's stream, folded to what they say of each admission: the read model's twin for a reader who cannot wait. (failure scenario 15) */
import { Map } from 'immutable';
import type { Aggregate } from '../runtime/streams.ts';
import { agentEvents, type AgentEvent } from '../agent/messages.ts';
import type { Json } from '../kernel/canonical.ts';
import type { Envelope } from '../kernel/event.ts';
import { workKey } from '../kernel/work.ts';
import type { DeploymentRecord } from './view.ts';

/** By work key, so that evidence finds its admission. */
export type DeploymentRecords = Map<string, DeploymentRecord>;

const settle = (records: DeploymentRecords, revisionId: string, code: string, more: { data?: Json; warnings?: NonNullable<DeploymentRecord['result']>['warnings'] } = {}): DeploymentRecords => {
  const key = workKey.deployment(revisionId);
  const record = records.get(key);
  return record === undefined ? records : records.set(key, { ...record, result: { code, data: more.data ?? null, warnings: more.warnings ?? [] } });
};

const evolve = (records: DeploymentRecords, event: AgentEvent, { occurredAt }: Envelope): DeploymentRecords => {
  switch (event.type) {
    case 'AgentRevisionAdmitted': {
      const { revisionId, namespaceId, agentId } = event.data;
      return records.set(workKey.deployment(revisionId), { revisionId, namespaceId, agentId, createdAt: occurredAt, result: null, lastAttempt: null });
    }
    case 'WorkDeferred':
    case 'WorkRetryScheduled':
    case 'WorkClaimExpired': {
      const record = records.get(event.data.workKey);
      if (record === undefined) return records;
      const refusal = 'refusal' in event.data ? (event.data.refusal ?? null) : null;
      return records.set(event.data.workKey, { ...record, lastAttempt: { at: occurredAt, code: event.data.code, refusal } });
    }
    case 'DeploymentActivated':
      return settle(records, event.data.revisionId, event.data.code, { warnings: event.data.warnings });
    case 'DeploymentSuperseded':
      return settle(records, event.data.revisionId, 'REVISION_SUPERSEDED');
    case 'DeploymentStopped':
      return settle(records, event.data.revisionId, 'REVISION_STOPPED');
    case 'DeploymentFailed':
      return settle(records, event.data.revisionId, event.data.code, event.data.data === undefined ? {} : { data: event.data.data as Json });
    default:
      return records;
  }
};

/** Reads only: the Agent's own decider decides. */
export const deployments: Aggregate<DeploymentRecords, never, AgentEvent> = {
  streamOf: (agentId) => `agent-${agentId}`,
  codec: agentEvents,
  decider: { initial: Map(), decide: () => [], evolve },
};
