/** A ready Namespace with a Configuration and Agents, made through the edge. */
import {
  CreateAgentDocument,
  CreateConfigurationDocument,
  CreateNamespaceDocument,
  DeployAgentDocument,
} from './operations.generated.ts';
import type { World } from './world.ts';

/** The success member of a result. @throws naming the refusal */
export const succeeded = <R extends { readonly __typename: string }>(result: R | undefined): Exclude<R, { readonly __typename: 'Refusal' }> => {
  if (result === undefined || result.__typename === 'Refusal') throw new Error(`Refused: ${JSON.stringify(result)}`);
  return result as Exclude<R, { readonly __typename: 'Refusal' }>;
};

/** The refusal in a result. @throws naming what was done instead */
export const refused = <R extends { readonly __typename: string }>(result: R): Extract<R, { readonly __typename: 'Refusal' }> => {
  if (result.__typename !== 'Refusal') throw new Error(`Not refused: ${JSON.stringify(result)}`);
  return result as Extract<R, { readonly __typename: 'Refusal' }>;
};

export const harnessAuth = { method: 'runtime' } as const;
export const values = { agents: { defaults: { workspace: '/workspace' } } };

export const createNamespace = async ({ send, makeReady }: World, name: string) => {
  const { namespace } = succeeded((await send(CreateNamespaceDocument, { input: { name } })).data.createNamespace);
  await makeReady(namespace.namespaceId);
  return namespace;
};

export const createConfiguration = async ({ send }: World, namespaceId: string) =>
  succeeded((await send(CreateConfigurationDocument, { input: { namespaceId, kind: 'agent', values } })).data.createConfiguration).configuration;

export const createAgent = async ({ send }: World, namespaceId: string, configurationId: string, name: string) =>
  succeeded((await send(CreateAgentDocument, { input: { namespaceId, configurationId, name, harnessAuth } })).data.createAgent).agent;

export const deployAgent = async ({ send }: World, id: string) => succeeded((await send(DeployAgentDocument, { input: { id } })).data.deployAgent).revision;
