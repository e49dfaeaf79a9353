/** Whether what a binding names is there: asked of the stream that decides it, under exactly this Namespace. (iam-auth-audit 4.2) */
import { agents, configurations, namespaces, revisions } from '../aggregates.ts';
import { isId } from '../kernel/ids.ts';
import { isRegistered } from '../namespace/namespace.ts';
import type { Streams } from '../runtime/streams.ts';
import type { BindableKind } from './input.ts';

export interface Targets {
  /** An Agent that is neither gone nor being deleted. */
  isLiveAgent(namespaceId: string, agentId: string): Promise<boolean>;
  /** A resource that a binding may target; one that goes away with its Agent is none. */
  exists(namespaceId: string, kind: BindableKind, id: string): Promise<boolean>;
}

export const createTargets = (streams: Streams): Targets => {
  const isLiveAgent: Targets['isLiveAgent'] = async (namespaceId, agentId) => {
    const { state } = await streams.load(agents, agentId);
    return state.phase === 'present' && state.namespaceId === namespaceId && state.deletion === null;
  };

  const isLiveRevision = async (namespaceId: string, revisionId: string): Promise<boolean> => {
    const { state: snapshot } = await streams.load(revisions, revisionId);
    if (snapshot === null || snapshot.namespaceId !== namespaceId) return false;
    const { state } = await streams.load(agents, snapshot.agentId);
    return state.phase === 'present' && state.deletion === null && state.revisions.some((admitted) => admitted.revisionId === revisionId);
  };

  const isInRegister = async (namespaceId: string, kind: BindableKind, id: string): Promise<boolean> => isRegistered((await streams.load(namespaces, namespaceId)).state, { kind, id });

  const isConfiguration = async (namespaceId: string, configurationId: string): Promise<boolean> =>
    (await streams.load(configurations, configurationId)).state.phase === 'present' && isInRegister(namespaceId, 'configuration', configurationId);

  return {
    isLiveAgent,
    exists: async (namespaceId, kind, id) => {
      switch (kind) {
        case 'namespace':
          return id === namespaceId;
        case 'agent':
          return isId('agt', id) && isLiveAgent(namespaceId, id);
        case 'agent_revision':
          return isId('rev', id) && isLiveRevision(namespaceId, id);
        case 'configuration':
          return isId('cfg', id) && isConfiguration(namespaceId, id);
        case 'secret':
        case 'service_account':
        case 'credential_source':
          return isInRegister(namespaceId, kind, id);
      }
    },
  };
};
