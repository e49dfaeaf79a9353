/** One request for each route that a key may ask for, with what is judged of it first. */
import { useCases as use, type UseCase } from '../support/use-cases.ts';
import { agentAt, configurationAt, revisionAt, type Names } from './fixture.ts';

/** One request for each route, and the permission that is refused first. The existing and the invented names must look alike. */
export interface Asked {
  readonly useCase: UseCase;
  /** As {@link judged} writes it, for REST; undefined where anyone may ask and sees nothing. */
  readonly refused: string | undefined;
  /** Where GraphQL comes through another resource. */
  readonly refusedInGraphql?: string;
  /** What the request is about, written likewise, where it is not what is judged first. */
  readonly about?: string;
}

export type Targets = Readonly<Record<'n' | 'c' | 'g' | 'r' | 'role' | 'binding' | 'principal' | 'key', string>>;
export const existing: Targets = { n: 'N1', c: 'C1', g: 'G1', r: 'R1', role: 'ROLE', binding: 'BINDING', principal: 'ADMINISTRATOR', key: 'KEY' };
export const invented: Targets = { n: 'XN', c: 'XC', g: 'XG', r: 'XR', role: 'XROLE', binding: 'XBINDING', principal: 'XPRINCIPAL', key: 'XKEY' };
export const sibling: Targets = { ...existing, n: 'N2', c: 'C2', g: 'GX', r: 'R2' };

export const asked = (names: Names, { n, c, g, r, role, binding, principal, key }: Targets): Readonly<Record<string, Asked>> => {
  const [agent, revision, configuration] = [agentAt(names, g), revisionAt(names, r), configurationAt(names, c)];
  const N = names[n]!;
  const draft = { name: 'asked', configurationId: names[c]! };
  const administer = 'installation:administer';
  const ofPolicy = { refused: administer, about: `namespace:read=${n}` };
  return {
    getInstallation: { useCase: use.getInstallation(), refused: 'installation:read' },
    listNamespaces: { useCase: use.listNamespaces(), refused: undefined },
    createNamespace: { useCase: use.createNamespace({ name: 'asked' }), refused: 'namespace:create' },
    getNamespace: { useCase: use.getNamespace(N), refused: `namespace:read=${n}` },
    deleteNamespace: { useCase: use.deleteNamespace(N), refused: `namespace:delete=${n}` },
    createConfiguration: { useCase: use.createConfiguration(N, { kind: 'agent', values: {} }), refused: `configuration:create@${n}` },
    getConfiguration: { useCase: use.getConfiguration(configuration), refused: `configuration:read=${c}` },
    updateConfiguration: { useCase: use.updateConfiguration(configuration, { values: {} }), refused: `configuration:update=${c}` },
    deleteConfiguration: { useCase: use.deleteConfiguration(configuration), refused: `configuration:delete=${c}` },
    listAgents: { useCase: use.listAgents(N), refused: `namespace:read=${n}` },
    createAgent: { useCase: use.createAgent(N, draft), refused: `agent:create@${n}` },
    getAgent: { useCase: use.getAgent(agent), refused: `agent:read=${g}` },
    updateAgent: { useCase: use.updateAgent(agent, { configurationId: names[c]! }), refused: `agent:update=${g}` },
    deleteAgent: { useCase: use.deleteAgent(agent), refused: `agent:delete=${g}` },
    deployAgent: { useCase: use.deployAgent(agent), refused: `agent:deploy=${g}` },
    stopAgent: { useCase: use.stopAgent(agent), refused: `agent:operate=${g}` },
    getAgentNativeAdmin: { useCase: use.getAgentNativeAdmin(agent), refused: `agent:administer=${g}`, refusedInGraphql: `agent:read=${g}` },
    listAgentRevisions: { useCase: use.listAgentRevisions(agent), refused: `agent:read=${g}` },
    getAgentRevision: { useCase: use.getAgentRevision(revision), refused: `agent_revision:read=${r}` },
    getAgentDeployment: { useCase: use.getAgentDeployment(revision), refused: `agent_revision:read=${r}` },
    diagnoseAgentDeployment: { useCase: use.diagnoseAgentDeployment(revision), refused: 'agent:read=G1', about: `agent_revision:read=${r}` },
    listRoles: { useCase: use.listRoles(N), ...ofPolicy, refusedInGraphql: `namespace:read=${n}` },
    createRole: { useCase: use.createRole(N, { permissions: [{ action: 'read', resourceKind: 'agent' }] }), ...ofPolicy },
    getRole: { useCase: use.getRole(N, names[role]!), ...ofPolicy },
    deleteRole: { useCase: use.deleteRole(N, names[role]!), ...ofPolicy },
    listAccessBindings: { useCase: use.listAccessBindings(N), ...ofPolicy, refusedInGraphql: `namespace:read=${n}` },
    createAccessBinding: { useCase: use.createAccessBinding(N, { subjectId: names[principal]!, roleId: names[role]!, resourceKind: 'agent', resourceId: names[g]! }), ...ofPolicy },
    getAccessBinding: { useCase: use.getAccessBinding(N, names[binding]!), ...ofPolicy },
    deleteAccessBinding: { useCase: use.deleteAccessBinding(N, names[binding]!), ...ofPolicy },
    createServicePrincipal: { useCase: use.createServicePrincipal(N), ...ofPolicy },
    issueServiceKey: { useCase: use.issueServiceKey({ servicePrincipalId: names[principal]!, name: 'asked' }), refused: administer },
    revokeServiceKey: { useCase: use.revokeServiceKey(names[key]!), refused: administer },
  };
};
