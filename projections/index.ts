/** The read models: the list the projector runs, and the questions they answer. */
import type { Pool } from 'pg';
import { agentProjection, agentReads } from './agent.ts';
import { agentRevisionProjection, agentRevisionReads } from './agent-revision.ts';
import { configurationProjection, configurationReads } from './configuration.ts';
import { deploymentProjection, deploymentReads } from './deployment.ts';
import { historyProjection, historyReads } from './history.ts';
import { installationProjection, installationReads } from './installation.ts';
import { namespaceProjection, namespaceReads } from './namespace.ts';

export { productEvents } from './events.ts';

export const projections = [
  installationProjection,
  namespaceProjection,
  configurationProjection,
  agentProjection,
  agentRevisionProjection,
  deploymentProjection,
  historyProjection,
] as const;

export const createReads = (pool: Pool) => ({
  installation: installationReads(pool),
  namespaces: namespaceReads(pool),
  configurations: configurationReads(pool),
  agents: agentReads(pool),
  revisions: agentRevisionReads(pool),
  deployments: deploymentReads(pool),
  history: historyReads(pool),
});
