/** Every aggregate: where its streams are, how its events are read, and how it decides. (architecture section 3) */
import { agentDecider, type AgentCommand, type AgentState } from './agent/agent.ts';
import { agentEvents, type AgentEvent } from './agent/messages.ts';
import { agentRevisionDecider, type AgentRevisionCommand, type AgentRevisionState } from './agent-revision/agent-revision.ts';
import { agentRevisionEvents, type AgentRevisionSnapshotted } from './agent-revision/messages.ts';
import { configurationDecider, type ConfigurationCommand, type ConfigurationState } from './configuration/configuration.ts';
import { configurationEvents, type ConfigurationEvent } from './configuration/messages.ts';
import { iamDecider, type IamCommand } from './iam/iam.ts';
import { iamEvents, type IamEvent } from './iam/messages.ts';
import type { Policy } from './iam/policy.ts';
import { registerEvents, type RegisterEvent } from './installation/messages.ts';
import { registerDecider, type RegisterCommand, type RegisterState } from './installation/register.ts';
import { namespaceEvents, type NamespaceEvent } from './namespace/messages.ts';
import { namespaceDecider, type NamespaceCommand, type NamespaceState } from './namespace/namespace.ts';
import { storeEvents, type StoreEvent } from './store-identity/messages.ts';
import { storeDecider, type StoreCommand, type StoreState } from './store-identity/store-identity.ts';
import type { Aggregate } from './runtime/streams.ts';

export const agents: Aggregate<AgentState, AgentCommand, AgentEvent> = {
  streamOf: (agentId) => `agent-${agentId}`,
  codec: agentEvents,
  decider: agentDecider,
};

export const revisions: Aggregate<AgentRevisionState, AgentRevisionCommand, AgentRevisionSnapshotted> = {
  streamOf: (revisionId) => `revision-${revisionId}`,
  codec: agentRevisionEvents,
  decider: agentRevisionDecider,
};

export const configurations: Aggregate<ConfigurationState, ConfigurationCommand, ConfigurationEvent> = {
  streamOf: (configurationId) => `configuration-${configurationId}`,
  codec: configurationEvents,
  decider: configurationDecider,
};

export const namespaces: Aggregate<NamespaceState, NamespaceCommand, NamespaceEvent> = {
  streamOf: (namespaceId) => `namespace-${namespaceId}`,
  codec: namespaceEvents,
  decider: namespaceDecider,
};

/** The one policy stream; its aggregate id is ignored. */
export const iam: Aggregate<Policy, IamCommand, IamEvent> = { streamOf: () => 'iam', codec: iamEvents, decider: iamDecider };

/** The one register of Namespace names; its aggregate id is ignored. */
export const register: Aggregate<RegisterState, RegisterCommand, RegisterEvent> = {
  streamOf: () => 'register',
  codec: registerEvents,
  decider: registerDecider,
};

/** The one stream about the event store itself; its aggregate id is ignored. */
export const eventStore: Aggregate<StoreState, StoreCommand, StoreEvent> = { streamOf: () => 'store', codec: storeEvents, decider: storeDecider };
