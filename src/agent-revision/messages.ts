/** The one event of a `revision-<id>` stream: the immutable snapshot a deploy fixes. (agent-lifecycle section 2, failure scenario 14) */
import Type, { type Static } from 'typebox';
import { executionMode, harnessAuth, pluginApprovers, plugins, credentialSources } from '../agent/settings.ts';
import { createCodec, defineEvent, type EventOf } from '../kernel/codec.ts';

const id = Type.String();

const revisionSettings = Type.Object({
  harnessAuth,
  configuration: Type.Object({}, { additionalProperties: true }),
  secretBindings: Type.Optional(Type.Object({}, { additionalProperties: true })),
  credentialSources,
  plugins: Type.Optional(plugins),
  pluginApprovers: Type.Optional(pluginApprovers),
});
export type RevisionSettings = Static<typeof revisionSettings>;

const agentRevisionSnapshotted = defineEvent('AgentRevisionSnapshotted', {
  skeleton: Type.Object({
    revisionId: id,
    namespaceId: id,
    agentId: id,
    servicePrincipalId: id,
    number: Type.Integer({ minimum: 1 }),
    backendId: Type.Union([id, Type.Null()]),
    configurationId: id,
    configurationGeneration: Type.Integer({ minimum: 1 }),
    harness: Type.Object({ id, version: id, mode: executionMode }),
    compute: Type.Object({ id, implementation: id }),
  }),
  settings: revisionSettings,
  view: ['revisionId', 'namespaceId', 'agentId', 'number', 'backendId', 'configurationId', 'configurationGeneration', 'harness', 'compute'],
});

export const agentRevisionEvents = createCodec(agentRevisionSnapshotted);
export type AgentRevisionSnapshotted = EventOf<typeof agentRevisionSnapshotted>;
