/** Events of one Agent's stream: draft, admissions, desired state, selection, stop, deletion, and every result of its work. (architecture section 3, agent-lifecycle section 11) */
import Type from 'typebox';
import { createCodec, defineEvent, type EventOf } from '../kernel/codec.ts';
import { workClaimExpired, workDeferred, workRetryScheduled } from '../kernel/work-evidence.ts';
import { agentSettings, credentialSources, executionMode, harnessAuth, pluginApprovers, plugins } from './settings.ts';

const id = Type.String();
const nullableId = Type.Union([id, Type.Null()]);
const agent = { agentId: id, namespaceId: id };

const agentCreated = defineEvent('AgentCreated', {
  skeleton: Type.Object({
    ...agent,
    name: Type.String(),
    servicePrincipalId: id,
    configurationId: id,
    executionMode,
    backendId: nullableId,
  }),
  settings: agentSettings,
  view: ['agentId', 'namespaceId', 'name', 'servicePrincipalId', 'configurationId', 'executionMode', 'backendId', 'settings'],
});
/** A fence: this id did not become an Agent; an idempotent creation may still follow. */
const agentCreationAbandoned = defineEvent('AgentCreationAbandoned', { skeleton: Type.Object(agent), view: ['agentId', 'namespaceId'] });
/** A fence: a change of references that had been registered will not happen at the revision it was decided at. */
const intentVoided = defineEvent('IntentVoided', { skeleton: Type.Object(agent), view: ['agentId', 'namespaceId'] });

const agentConfigurationBound = defineEvent('AgentConfigurationBound', {
  skeleton: Type.Object({ ...agent, configurationId: id }),
  view: ['agentId', 'namespaceId', 'configurationId'],
});
const agentExecutionModeChanged = defineEvent('AgentExecutionModeChanged', {
  skeleton: Type.Object({ ...agent, executionMode }),
  view: ['agentId', 'namespaceId', 'executionMode'],
});
const agentBackendBound = defineEvent('AgentBackendBound', {
  skeleton: Type.Object({ ...agent, backendId: nullableId }),
  view: ['agentId', 'namespaceId', 'backendId'],
});
const agentHarnessAuthBound = defineEvent('AgentHarnessAuthBound', {
  skeleton: Type.Object(agent),
  settings: Type.Object({ harnessAuth: Type.Union([harnessAuth, Type.Null()]) }),
  view: ['agentId', 'namespaceId', 'settings'],
});
const agentCredentialSourcesReplaced = defineEvent('AgentCredentialSourcesReplaced', {
  skeleton: Type.Object(agent),
  settings: Type.Object({ credentialSources }),
  view: ['agentId', 'namespaceId', 'settings'],
});
const agentPluginsReplaced = defineEvent('AgentPluginsReplaced', {
  skeleton: Type.Object(agent),
  settings: Type.Object({ plugins }),
  view: ['agentId', 'namespaceId', 'settings'],
});
const agentPluginApproversReplaced = defineEvent('AgentPluginApproversReplaced', {
  skeleton: Type.Object(agent),
  settings: Type.Object({ pluginApprovers: Type.Union([pluginApprovers, Type.Null()]) }),
  view: ['agentId', 'namespaceId', 'settings'],
});

/** The deployment is saved and wanted; its snapshot was written to `revision-<id>` before. */
const agentRevisionAdmitted = defineEvent('AgentRevisionAdmitted', {
  skeleton: Type.Object({
    ...agent,
    revisionId: id,
    number: Type.Integer({ minimum: 1 }),
    /** SHA-256 of the snapshot's canonical text. */
    digest: Type.String(),
    configurationId: id,
    configurationGeneration: Type.Integer({ minimum: 1 }),
    compute: Type.Object({ id, implementation: id }),
    /** Whether Compute wants all predecessors stopped before this revision is prepared. */
    exclusive: Type.Boolean(),
  }),
  view: ['agentId', 'namespaceId', 'revisionId', 'number', 'digest', 'configurationId', 'configurationGeneration', 'compute'],
});
const agentRevisionSelected = defineEvent('AgentRevisionSelected', {
  skeleton: Type.Object({ ...agent, revisionId: id, previousRevisionId: nullableId }),
  view: ['agentId', 'namespaceId', 'revisionId', 'previousRevisionId'],
});
const deploymentActivated = defineEvent('DeploymentActivated', {
  skeleton: Type.Object({
    ...agent,
    revisionId: id,
    /** `REVISION_ACTIVATED` or `REVISION_ALREADY_ACTIVE`. */
    code: Type.String(),
    previousRevisionId: nullableId,
    warnings: Type.Array(Type.Object({ code: Type.String(), pluginId: Type.String() })),
  }),
  view: ['agentId', 'namespaceId', 'revisionId', 'code', 'previousRevisionId', 'warnings'],
});
const deploymentSuperseded = defineEvent('DeploymentSuperseded', {
  skeleton: Type.Object({ ...agent, revisionId: id, byRevisionId: id }),
  view: ['agentId', 'namespaceId', 'revisionId', 'byRevisionId'],
});
const deploymentStopped = defineEvent('DeploymentStopped', {
  skeleton: Type.Object({ ...agent, revisionId: id }),
  view: ['agentId', 'namespaceId', 'revisionId'],
});
const deploymentFailed = defineEvent('DeploymentFailed', {
  skeleton: Type.Object({
    ...agent,
    revisionId: id,
    code: Type.String(),
    /** Allow-listed per code. */
    data: Type.Optional(Type.Object({}, { additionalProperties: true })),
  }),
  view: ['agentId', 'namespaceId', 'revisionId', 'code', 'data'],
});

const operation = { ...agent, operationId: id };
const agentStopRequested = defineEvent('AgentStopRequested', {
  skeleton: Type.Object(operation),
  view: ['agentId', 'namespaceId', 'operationId'],
});
/** `AGENT_STOPPED` or `AGENT_ALREADY_STOPPED`; clears the pointer where it still names the stopped revision. */
const agentStopped = defineEvent('AgentStopped', {
  skeleton: Type.Object({ ...operation, code: Type.String(), revisionId: nullableId }),
  view: ['agentId', 'namespaceId', 'operationId', 'code', 'revisionId'],
});
const agentStopSuperseded = defineEvent('AgentStopSuperseded', {
  skeleton: Type.Object(operation),
  view: ['agentId', 'namespaceId', 'operationId'],
});
const agentStopFailed = defineEvent('AgentStopFailed', {
  skeleton: Type.Object({ ...operation, code: Type.String() }),
  view: ['agentId', 'namespaceId', 'operationId', 'code'],
});

const agentDeletionRequested = defineEvent('AgentDeletionRequested', {
  skeleton: Type.Object({
    ...agent,
    /** As of the policy revision in the metadata; the exact lists follow at removal. */
    accessBindingIds: Type.Array(id),
    restrictionIds: Type.Array(id),
  }),
  view: ['agentId', 'namespaceId', 'accessBindingIds', 'restrictionIds'],
});
/** Asked again while the teardown was under way: nothing changed. */
const agentDeletionRepeated = defineEvent('AgentDeletionRepeated', { skeleton: Type.Object(agent), view: ['agentId', 'namespaceId'] });
const agentDeletionRetried = defineEvent('AgentDeletionRetried', { skeleton: Type.Object(agent), view: ['agentId', 'namespaceId'] });
const agentDeletionTakenOver = defineEvent('AgentDeletionTakenOver', {
  skeleton: Type.Object({ ...agent, previousActorId: id }),
  view: ['agentId', 'namespaceId', 'previousActorId'],
});
const agentTeardownFailed = defineEvent('AgentTeardownFailed', {
  skeleton: Type.Object({ ...agent, code: Type.String() }),
  view: ['agentId', 'namespaceId', 'code'],
});
/** The last effect is done; from here no pass re-authorizes and only reads are accepted. */
const agentTeardownFinished = defineEvent('AgentTeardownFinished', {
  skeleton: Type.Object({ ...agent, revisionIds: Type.Array(id) }),
  view: ['agentId', 'namespaceId', 'revisionIds'],
});
const agentRemoved = defineEvent('AgentRemoved', { skeleton: Type.Object(agent), view: ['agentId', 'namespaceId'] });

export const agentEvents = createCodec(
  agentCreated,
  agentCreationAbandoned,
  intentVoided,
  agentConfigurationBound,
  agentExecutionModeChanged,
  agentBackendBound,
  agentHarnessAuthBound,
  agentCredentialSourcesReplaced,
  agentPluginsReplaced,
  agentPluginApproversReplaced,
  agentRevisionAdmitted,
  agentRevisionSelected,
  deploymentActivated,
  deploymentSuperseded,
  deploymentStopped,
  deploymentFailed,
  agentStopRequested,
  agentStopped,
  agentStopSuperseded,
  agentStopFailed,
  agentDeletionRequested,
  agentDeletionRepeated,
  agentDeletionRetried,
  agentDeletionTakenOver,
  agentTeardownFailed,
  agentTeardownFinished,
  agentRemoved,
  workDeferred,
  workRetryScheduled,
  workClaimExpired,
);

export type AgentCreated = EventOf<typeof agentCreated>;
export type AgentEvent =
  | AgentCreated
  | EventOf<
      | typeof agentCreationAbandoned
      | typeof intentVoided
      | typeof agentConfigurationBound
      | typeof agentExecutionModeChanged
      | typeof agentBackendBound
      | typeof agentHarnessAuthBound
      | typeof agentCredentialSourcesReplaced
      | typeof agentPluginsReplaced
      | typeof agentPluginApproversReplaced
      | typeof agentRevisionAdmitted
      | typeof agentRevisionSelected
      | typeof deploymentActivated
      | typeof deploymentSuperseded
      | typeof deploymentStopped
      | typeof deploymentFailed
      | typeof agentStopRequested
      | typeof agentStopped
      | typeof agentStopSuperseded
      | typeof agentStopFailed
      | typeof agentDeletionRequested
      | typeof agentDeletionRepeated
      | typeof agentDeletionRetried
      | typeof agentDeletionTakenOver
      | typeof agentTeardownFailed
      | typeof agentTeardownFinished
      | typeof agentRemoved
      | typeof workDeferred
      | typeof workRetryScheduled
      | typeof workClaimExpired
    >;
