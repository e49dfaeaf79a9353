/** The steps of an Agent's life over REST, each failing with the answer it got instead of the one it wanted. */
import { expect } from 'vitest';
import { eventually, type Client } from '../support/client.ts';

export interface AgentAnswer {
  readonly id: string;
  readonly namespaceId: string;
  readonly name: string;
  readonly configurationId: string;
  readonly harnessAuth: unknown;
  readonly desiredRuntimeState: 'running' | 'stopped';
  readonly activeRevisionId?: string;
  readonly status: 'active' | 'deleting';
}

export interface RevisionAnswer {
  readonly id: string;
  readonly revision: number;
  readonly configurationGeneration: number;
}

export interface DeploymentAnswer {
  readonly deploymentId: string;
  readonly status: 'queued' | 'running' | 'succeeded' | 'failed';
  readonly error: { readonly code: string } | null;
  readonly progress: object | null;
}

export interface ConfigurationAnswer {
  readonly id: string;
  readonly generation: number;
  readonly values: Record<string, unknown>;
}

interface NamespaceAnswer {
  readonly id: string;
  readonly name: string;
  readonly status: string;
}

/** Sends a request and demands this status. */
export const demand = async <T>(client: Client, status: number, method: string, path: string, body?: unknown, headers?: Record<string, string>): Promise<T> => {
  const answer = await client.rest<T>(method, path, body, headers);
  expect({ status: answer.status, error: answer.error }, `${method} ${path}`).toMatchObject({ status });
  return answer.data;
};

/** The Namespace every Installation is born with, once it is ready. */
export const defaultNamespace = async (client: Client): Promise<string> => {
  const ready = await eventually(
    'the Namespace default ready',
    () => demand<NamespaceAnswer[]>(client, 200, 'GET', '/namespaces'),
    (all) => all.some(({ name, status }) => name === 'default' && status === 'ready'),
  );
  return ready.find(({ name }) => name === 'default')!.id;
};

/** Walks Agents of one Namespace through their lives. */
export const stepsIn = (client: Client, namespaceId: string) => {
  const at = `/namespaces/${namespaceId}`;
  const agentPath = (agentId: string) => `${at}/agents/${agentId}`;
  const configure = (values: object = {}) => demand<ConfigurationAnswer>(client, 201, 'POST', `${at}/configurations`, { kind: 'agent', values });
  const agent = (agentId: string) => demand<AgentAnswer>(client, 200, 'GET', agentPath(agentId));
  const deployment = (agentId: string, revisionId: string) => demand<DeploymentAnswer>(client, 200, 'GET', `${agentPath(agentId)}/deployments/${revisionId}`);
  const deploy = (agentId: string) => demand<RevisionAnswer>(client, 202, 'POST', `${agentPath(agentId)}/deploy`);

  /** The answer that first shows the deployment at an end. */
  const deployed = (agentId: string, revisionId: string) =>
    eventually(
      `the deployment ${revisionId} at an end`,
      () => deployment(agentId, revisionId),
      ({ status }) => status === 'succeeded' || status === 'failed',
    );

  return {
    at,
    agentPath,
    configure,
    agent,
    deploy,
    deployment,
    deployed,
    createAgent: (name: string, configurationId: string) =>
      demand<AgentAnswer>(client, 201, 'POST', `${at}/agents`, { name, configurationId, harnessAuth: { method: 'runtime' } }),
    /** Deploys and waits until the revision serves. */
    run: async (agentId: string) => {
      const revision = await deploy(agentId);
      expect(await deployed(agentId, revision.id)).toMatchObject({ status: 'succeeded', error: null });
      return revision;
    },
    stop: (agentId: string) => demand<AgentAnswer>(client, 202, 'POST', `${agentPath(agentId)}/stop`),
    stopped: (agentId: string) =>
      eventually(`no version of ${agentId} selected`, () => agent(agentId), ({ activeRevisionId }) => activeRevisionId === undefined),
    remove: (agentId: string) => demand<AgentAnswer>(client, 202, 'DELETE', agentPath(agentId)),
    gone: (agentId: string) => eventually(`${agentId} to be gone`, async () => (await client.rest('GET', agentPath(agentId))).status, (status) => status === 404),
  };
};

export type Steps = ReturnType<typeof stepsIn>;
