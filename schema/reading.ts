/** The reads a field may stand for, named as the REST routes name them, so that both edges leave the same audit. */
import type { RevisionPlace } from '../src/agent-revision/service.ts';
import type { AgentPlace } from '../src/agent/service.ts';
import type { ConfigurationPlace } from '../src/configuration/service.ts';
import { ref, type Operation } from '../src/iam/authorizer.ts';

const revision = (area: string, { namespaceId, revisionId }: RevisionPlace): Operation => ({
  action: `openclaw.${area}.read`,
  resource: ref.in('agent_revision', namespaceId, revisionId),
});

export const reading = {
  namespace: (namespaceId: string): Operation => ({ action: 'openclaw.namespaces.read', resource: ref.namespace(namespaceId) }),
  configuration: ({ namespaceId, configurationId }: ConfigurationPlace): Operation => ({
    action: 'openclaw.configurations.read',
    resource: ref.in('configuration', namespaceId, configurationId),
  }),
  agent: ({ namespaceId, agentId }: AgentPlace): Operation => ({ action: 'openclaw.agents.read', resource: ref.in('agent', namespaceId, agentId) }),
  revision: (place: RevisionPlace): Operation => revision('agent_revisions', place),
  deployment: (place: RevisionPlace): Operation => revision('agent_deployments', place),
} as const;
