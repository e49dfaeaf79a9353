/** An AgentRevision as the Compute port takes it. (compute-drivers section 1) */
import type { RevisionSnapshot } from '../compute/driver.ts';
import { isUnreadable } from '../kernel/codec.ts';
import type { AgentRevisionSnapshotted } from './messages.ts';

/** What the driver may know of a revision; unreadable settings leave it without a document, which stops and retirements never need. (failure scenario 18) */
export const snapshotOf = (data: AgentRevisionSnapshotted['data']): RevisionSnapshot => {
  const { revisionId, namespaceId, agentId, servicePrincipalId, number, harness, compute, settings } = data;
  const readable = isUnreadable(settings) ? { harnessAuth: null, configuration: {} } : settings;
  return {
    revisionId,
    namespaceId,
    agentId,
    servicePrincipalId,
    number,
    executionMode: harness.mode,
    harness,
    compute,
    harnessAuth: readable.harnessAuth,
    configuration: readable.configuration as RevisionSnapshot['configuration'],
  };
};
