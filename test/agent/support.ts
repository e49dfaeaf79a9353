/** Events and commands of one Agent, for its decider's tests. */
import { agentDecider, type AgentCommand } from '../../src/agent/agent.ts';
import type { AgentEvent } from '../../src/agent/messages.ts';
import { workKey } from '../../src/kernel/work.ts';
import { deciderSpec } from '../support/specs.ts';

export const agentId = 'agt_1';
export const owner = { agentId, namespaceId: 'ns_1' } as const;
export const given = deciderSpec(agentDecider);

export const created: AgentEvent = {
  type: 'AgentCreated',
  data: {
    ...owner,
    name: 'triage',
    servicePrincipalId: 'spn_1',
    configurationId: 'cfg_1',
    executionMode: 'embedded',
    backendId: null,
    settings: { harnessAuth: { method: 'runtime' }, credentialSources: [] },
  },
};

const admission = (number: number) => ({
  revisionId: `rev_${number}`,
  number,
  digest: 'digest',
  configurationId: 'cfg_1',
  configurationGeneration: 1,
  compute: { id: 'process', implementation: 'gateway' },
  exclusive: false,
});

export const admit = (number: number): AgentCommand & { type: 'AdmitRevision' } => ({ type: 'AdmitRevision', ...admission(number) });
export const admitted = (number: number): AgentEvent => ({ type: 'AgentRevisionAdmitted', data: { ...owner, ...admission(number) } });
export const selected = (number: number, previous: number | null = null): AgentEvent => ({
  type: 'AgentRevisionSelected',
  data: { ...owner, revisionId: `rev_${number}`, previousRevisionId: previous === null ? null : `rev_${previous}` },
});
export const stopRequested = (operationId: string): AgentEvent => ({ type: 'AgentStopRequested', data: { ...owner, operationId } });
export const stopped = (operationId: string, revisionId: string | null): AgentEvent => ({
  type: 'AgentStopped',
  data: { ...owner, operationId, code: revisionId === null ? 'AGENT_ALREADY_STOPPED' : 'AGENT_STOPPED', revisionId },
});
export const deletionRequested: AgentEvent = { type: 'AgentDeletionRequested', data: { ...owner, accessBindingIds: [], restrictionIds: [] } };
export const teardownFailed: AgentEvent = { type: 'AgentTeardownFailed', data: { ...owner, code: 'AUTHORIZATION_DENIED' } };
export const teardownFinished = (...numbers: readonly number[]): AgentEvent => ({
  type: 'AgentTeardownFinished',
  data: { ...owner, revisionIds: numbers.map((number) => `rev_${number}`) },
});

export const claimOf = {
  deployment: (number: number, claimToken = 'token') => ({ workKey: workKey.deployment(`rev_${number}`), claimToken }),
  stop: (operationId: string, claimToken = 'token') => ({ workKey: workKey.stop(agentId, operationId), claimToken }),
  deletion: (claimToken = 'token') => ({ workKey: workKey.deletion(agentId), claimToken }),
};
export const expired = ({ workKey: key, claimToken }: { workKey: string; claimToken: string }, more: { code?: string; refusal?: string } = {}): AgentEvent => ({
  type: 'WorkClaimExpired',
  data: { workKey: key, claimToken, attempt: 1, code: 'LEASE_EXPIRED', ...more },
});
