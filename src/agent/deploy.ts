/** The deploy: copies the draft into an immutable revision, admits it, and leaves the rest to the worker. (agent-lifecycle section 2) */
import { agents, configurations, namespaces, revisions } from '../aggregates.ts';
import type { AgentRevisionSnapshotted } from '../agent-revision/messages.ts';
import { revisionView, type RevisionView } from '../agent-revision/view.ts';
import type { ComputeDriver, RevisionSnapshot } from '../compute/driver.ts';
import { secretsOf } from '../configuration/secret-bindings.ts';
import type { SecretBindings } from '../configuration/input.ts';
import { configurationNotFound, type PresentConfiguration } from '../configuration/configuration.ts';
import { ref, type Operation, type Permission } from '../iam/authorizer.ts';
import type { Caller } from '../iam/caller.ts';
import { digestOf, type Json } from '../kernel/canonical.ts';
import { isUnreadable } from '../kernel/codec.ts';
import { Refusal } from '../kernel/errors.ts';
import { newId } from '../kernel/ids.ts';
import { contextOf, idempotencyOf, withoutAudit, type Core } from '../core.ts';
import { WrongExpectedRevision, type Loaded } from '../runtime/streams.ts';
import type { PresentAgent } from './agent.ts';
import { resolveHarness } from './harness.ts';
import { nextNumber } from './lifecycle.ts';
import type { AgentSettings } from './settings.ts';
import { agentOperation, presentAgent, readableSettings, type AgentPlace } from './service.ts';
import { actorPermissions, agentPrincipalPermissions } from './sources.ts';

/** The pure part of the Compute driver that admission needs. */
export type Admitting = Pick<ComputeDriver, 'id' | 'implementation' | 'admit' | 'requiresStoppedPredecessors'>;

export type Deploy = (caller: Caller, place: AgentPlace, options?: { readonly idempotencyKey?: string | undefined }) => Promise<RevisionView>;

/** Every admitted document logs the way the platform collects it. */
const stampLogging = (values: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> => ({
  ...values,
  logging: { level: 'info', consoleLevel: 'info', consoleStyle: 'json' },
});

type Document = Readonly<Record<string, unknown>>;

/** The Secrets a Configuration binds, as far as it can be read. */
const secretsIn = ({ settings }: PresentConfiguration): readonly string[] => (isUnreadable(settings) ? [] : secretsOf(settings.secretBindings as SecretBindings | undefined));

export const createDeploy = ({ core, compute }: { readonly core: Core; readonly compute: Admitting }): Deploy => {
  const { streams, authorizer, audit, waitFor } = core;

  const namespaceNotReady = async (caller: Caller, deploying: Operation, policyRevision: number): Promise<Refusal> => {
    const refusal = new Refusal('NAMESPACE_NOT_READY', 'The Namespace is not ready for deployments');
    const namespaceId = deploying.resource.namespaceId!;
    await audit.record(
      caller,
      { type: 'CommandFailed', data: { namespaceId, code: refusal.code } },
      { kind: 'mutation', action: deploying.action, resource: deploying.resource, outcome: 'failure', reasonCode: refusal.code },
      policyRevision,
    );
    return refusal;
  };

  /** The draft's Configuration at its tail. */
  const presentConfiguration = async (namespaceId: string, configurationId: string): Promise<PresentConfiguration> => {
    const { state } = await streams.load(configurations, configurationId);
    if (state.phase !== 'present' || state.namespaceId !== namespaceId) throw configurationNotFound();
    return state;
  };

  const documentOf = ({ generation, settings }: PresentConfiguration) => {
    if (isUnreadable(settings)) throw new Refusal('RESOURCE_CONFLICT', `The saved ${settings.unreadable} of the Configuration cannot be read`);
    return { generation, values: settings.values as Document, secretBindings: settings.secretBindings as SecretBindings | undefined };
  };

  const assertAgentPrincipal = async (caller: Caller, deploying: Operation, agent: PresentAgent, needed: readonly Permission[]): Promise<void> => {
    for (const [action, resource] of needed) {
      const verdict = await authorizer.may(agent.servicePrincipalId, action, resource);
      if (verdict.allowed) continue;
      const message = `The Agent's service principal ${agent.servicePrincipalId} lacks ${action} on ${resource.kind} ${resource.id}`;
      throw await authorizer.denied(
        caller,
        deploying,
        ['deploy', deploying.resource],
        new Refusal('FORBIDDEN', message),
        { servicePrincipalId: agent.servicePrincipalId, action, resource, servicePrincipalEvidence: verdict.evidence },
        'AGENT_PRINCIPAL_NOT_AUTHORIZED',
      );
    }
  };

  const snapshotOf = (agent: PresentAgent, settings: AgentSettings & { harnessAuth: NonNullable<AgentSettings['harnessAuth']> }, saved: ReturnType<typeof documentOf>): AgentRevisionSnapshotted['data'] => {
    const { executionMode, backendId, configurationId } = agent.draft;
    const plugins = settings.plugins !== undefined && Object.keys(settings.plugins).length > 0 ? settings.plugins : undefined;
    return {
      revisionId: newId('rev'),
      namespaceId: agent.namespaceId,
      agentId: agent.agentId,
      servicePrincipalId: agent.servicePrincipalId,
      number: nextNumber(agent),
      backendId,
      configurationId,
      configurationGeneration: saved.generation,
      harness: resolveHarness(saved.values, executionMode),
      compute: { id: compute.id, implementation: compute.implementation },
      settings: {
        harnessAuth: settings.harnessAuth,
        configuration: stampLogging(saved.values),
        ...(saved.secretBindings !== undefined && { secretBindings: saved.secretBindings }),
        credentialSources: settings.credentialSources,
        ...(plugins !== undefined && { plugins }),
        ...(settings.pluginApprovers !== undefined && { pluginApprovers: settings.pluginApprovers }),
      },
    };
  };

  /** What the driver will be handed, for its pure questions at admission. */
  const forCompute = (agent: PresentAgent, data: AgentRevisionSnapshotted['data'], harnessAuth: Json, configuration: Json): RevisionSnapshot => ({
    ...data,
    executionMode: agent.draft.executionMode,
    harnessAuth,
    configuration,
  });

  /** One try of an admission; undefined when the Agent moved meanwhile. */
  const admit = async (caller: Caller, loaded: Loaded<PresentAgent>, deploying: Operation, key: string | undefined): Promise<RevisionView | undefined> => {
    const agent = loaded.state;
    const { namespaceId, agentId } = agent;
    const own = [['deploy', deploying.resource], ['read', ref.in('configuration', namespaceId, agent.draft.configurationId)]] as const;
    await authorizer.require(caller, deploying, own);
    const present = await presentConfiguration(namespaceId, agent.draft.configurationId);
    const secrets = secretsIn(present).map((id): Permission => ['operate', ref.in('secret', namespaceId, id)]);
    const sources = isUnreadable(agent.draft.settings) ? [] : actorPermissions(namespaceId, agent.draft.settings);
    const grant = await authorizer.require(caller, deploying, [...own, ...sources, ...secrets]);
    if (agent.deletion !== null) throw new Refusal('AGENT_DELETING', 'The Agent is being deleted');
    const settings = readableSettings(agent);
    const saved = documentOf(present);
    const { state: namespace } = await streams.load(namespaces, namespaceId);
    if (namespace.status !== 'ready') throw await namespaceNotReady(caller, deploying, grant.policyRevision);
    const { harnessAuth } = settings;
    if (harnessAuth === null) throw new Refusal('RESOURCE_CONFLICT', 'The Agent has no harness authentication');
    const data = snapshotOf(agent, { ...settings, harnessAuth }, saved);
    const { configuration } = data.settings as { configuration: Json };
    const verdict = compute.admit({ executionMode: agent.draft.executionMode, harnessAuth, configuration });
    if (!verdict.admitted) throw new Refusal('RESOURCE_CONFLICT', verdict.reason);
    await assertAgentPrincipal(caller, deploying, agent, [...agentPrincipalPermissions(namespaceId, settings), ...secrets]);

    const resource = ref.in('agent_revision', namespaceId, data.revisionId);
    const idempotency = key === undefined ? {} : { idempotency: idempotencyOf(caller, 'deployAgent', agentId, key, null) };
    const context = contextOf(caller, { action: deploying.action, resource }, grant, idempotency);
    const snapshot = await streams.execute(revisions, data.revisionId, { type: 'SnapshotRevision', data }, withoutAudit(context), grant.guard);
    const decision = agents.decider.decide(agent, {
      type: 'AdmitRevision',
      revisionId: data.revisionId,
      number: data.number,
      digest: digestOf(data),
      configurationId: data.configurationId,
      configurationGeneration: data.configurationGeneration,
      compute: data.compute,
      exclusive: compute.requiresStoppedPredecessors(forCompute(agent, data, harnessAuth, configuration)),
    });
    if (decision instanceof Refusal) throw decision;
    try {
      const admitted = await streams.append(agents, loaded, decision, { ...context, ...(await grant.guard()), causationId: snapshot.eventIds[0] ?? null });
      await waitFor(admitted.lastPosition, { work: true });
      return revisionView({ type: 'AgentRevisionSnapshotted', data }, (admitted.state as PresentAgent).revisions.at(-1)!.admittedAt);
    } catch (error) {
      if (error instanceof WrongExpectedRevision) return undefined;
      throw error;
    }
  };

  /** The revision an earlier request admitted under the same key, authorized afresh. */
  const replay = async (caller: Caller, agent: PresentAgent, key: string): Promise<RevisionView | undefined> => {
    const revisionId = agent.deployKeys[idempotencyOf(caller, 'deployAgent', agent.agentId, key, null).key];
    if (revisionId === undefined) return undefined;
    const resource = ref.in('agent_revision', agent.namespaceId, revisionId);
    await authorizer.require(caller, { action: 'openclaw.agent_revisions.read', resource }, [['read', resource]]);
    const { state } = await streams.load(revisions, revisionId);
    const { admittedAt } = agent.revisions.find((admitted) => admitted.revisionId === revisionId)!;
    return revisionView({ type: 'AgentRevisionSnapshotted', data: state! }, admittedAt);
  };

  return async (caller, place, { idempotencyKey } = {}) => {
    const resource = ref.in('agent', place.namespaceId, place.agentId);
    const deploying = agentOperation('deploy', resource);
    await authorizer.require(caller, deploying, [['deploy', resource]]);
    for (;;) {
      const loaded = await presentAgent(core, place);
      const known = idempotencyKey === undefined ? undefined : await replay(caller, loaded.state, idempotencyKey);
      const revision = known ?? (await admit(caller, loaded, deploying, idempotencyKey));
      if (revision !== undefined) return revision;
    }
  };
};
