/** The use cases of Agents, as both edges call them: create, list, read, change the draft, stop, delete. Deploying is in deploy.ts. (agent-lifecycle section 1) */
import { agents, iam, namespaces } from '../aggregates.ts';
import { ref, type Grant, type Operation } from '../iam/authorizer.ts';
import type { Caller } from '../iam/caller.ts';
import { evaluate } from '../iam/evaluate.ts';
import { bindingsNaming, restrictionsNaming } from '../iam/policy.ts';
import { visibleBelow } from '../iam/visibility.ts';
import { isUnreadable } from '../kernel/codec.ts';
import { Refusal } from '../kernel/errors.ts';
import { newId } from '../kernel/ids.ts';
import type { Sent } from '../kernel/parse.ts';
import { DeletionOwned } from '../kernel/work.ts';
import type { RegisteredResource } from '../namespace/messages.ts';
import { unregistered, type NamespaceCommand } from '../namespace/namespace.ts';
import { createSettlement } from '../namespace/settlement.ts';
import { contextOf, withoutAudit, type Core } from '../core.ts';
import { createOnce } from '../create-once.ts';
import { judgedEach, only, type ListsBelow, type PageRequest } from '../runtime/reading.ts';
import { WrongExpectedRevision, type Loaded } from '../runtime/streams.ts';
import type { AgentEvent } from './messages.ts';
import { agentNotFound, type PresentAgent } from './agent.ts';
import type { CreateAgentInput, UpdateAgentInput } from './input.ts';
import type { AgentSettings } from './settings.ts';
import { actorPermissions, assertSources, sourceReferences } from './sources.ts';
import { agentView, type AgentReads, type AgentView } from './view.ts';
import { assertInitialWorkspace, assertNoFiles } from './workspace-input.ts';

export interface AgentPlace {
  readonly namespaceId: string;
  readonly agentId: string;
}

export interface AgentService {
  create(caller: Caller, namespaceId: string, sent: Sent<CreateAgentInput>, options?: { readonly idempotencyKey?: string | undefined }): Promise<AgentView>;
  /** Agents the caller may read; needs `namespace:read`. */
  list(caller: Caller, namespaceId: string, page?: PageRequest): Promise<readonly AgentView[]>;
  /** {@link list} of several Namespaces that are there, at the cost of one. */
  listBelow(caller: Caller, namespaceIds: readonly string[], page?: PageRequest): Promise<ListsBelow<AgentView>>;
  get(caller: Caller, place: AgentPlace): Promise<AgentView>;
  /** Changes the draft only: no work is queued, no version changes. */
  update(caller: Caller, place: AgentPlace, sent: Sent<UpdateAgentInput>, options?: { readonly ifMatch?: number | undefined }): Promise<AgentView>;
  stop(caller: Caller, place: AgentPlace): Promise<AgentView>;
  delete(caller: Caller, place: AgentPlace): Promise<AgentView>;
}

export const agentOperation = (verb: string, resource: Operation['resource']): Operation => ({ action: `openclaw.agents.${verb}`, resource });

/** The Agent at its tail under exactly this Namespace. @throws Refusal NOT_FOUND */
export const presentAgent = async (core: Core, { namespaceId, agentId }: AgentPlace): Promise<Loaded<PresentAgent>> => {
  const loaded = await core.streams.load(agents, agentId);
  const { state } = loaded;
  if (state.phase !== 'present' || state.namespaceId !== namespaceId) throw agentNotFound();
  return { ...loaded, state };
};

/** References that can be there without a Credential Gateway. */
const withoutGateway = (references: readonly RegisteredResource[]): readonly RegisteredResource[] => references.filter(({ kind }) => kind !== 'credential_source');

/** The saved settings, or the refusal that they cannot be read. */
export const readableSettings = ({ draft: { settings } }: PresentAgent): AgentSettings => {
  if (isUnreadable(settings)) throw new Refusal('RESOURCE_CONFLICT', `The saved ${settings.unreadable} cannot be read`);
  return settings;
};

export const createAgentService = ({ core, reads }: { readonly core: Core; readonly reads: AgentReads }): AgentService => {
  const { streams, authorizer, waitFor } = core;
  const settlement = createSettlement(streams);
  const place = ({ namespaceId, agentId }: AgentPlace) => ref.in('agent', namespaceId, agentId);

  const assertBackend = (backendId: string | null | undefined): void => {
    if (backendId !== null && backendId !== undefined) throw new Refusal('NOT_FOUND', 'The Backend is not configured');
  };

  const assertGateway = (sources: { readonly harnessAuth?: AgentSettings['harnessAuth'] | undefined; readonly credentialSources?: AgentSettings['credentialSources'] | undefined }): void => {
    if (sources.harnessAuth?.method === 'credential_source' || (sources.credentialSources?.length ?? 0) > 0)
      throw new Refusal('CREDENTIAL_GATEWAY_NOT_CONFIGURED', 'The Installation has no Credential Gateway');
  };

  /** What Compute and the Installation cannot do for a new Agent comes after all that its Namespace has against it. */
  const assertCapable = async (namespaceId: string, content: CreateAgentInput, admission: Extract<NamespaceCommand, { type: 'AdmitResource' }>): Promise<void> => {
    try {
      assertNoFiles(content);
      assertGateway(content);
    } catch (incapable) {
      const decision = namespaces.decider.decide((await streams.load(namespaces, namespaceId)).state, { ...admission, refersTo: withoutGateway(admission.refersTo) });
      throw decision instanceof Refusal ? decision : incapable;
    }
  };

  const create: AgentService['create'] = async (caller, namespaceId, sent, options = {}) => {
    const collection = ref.collection('agent', namespaceId);
    const creating = agentOperation('create', collection);
    const { idempotencyKey: keyInBody, ...content } = await authorizer.receive(caller, creating, ['create', collection], sent);
    const { name, configurationId, executionMode = 'embedded', backendId = null } = content;
    assertSources(namespaceId, content);
    assertInitialWorkspace(content);
    const grant = await authorizer.require(caller, creating, [
      ['create', collection],
      ['read', ref.in('configuration', namespaceId, configurationId)],
      ...actorPermissions(namespaceId, content),
    ]);
    const settings: AgentSettings = {
      harnessAuth: content.harnessAuth ?? null,
      credentialSources: content.credentialSources ?? [],
      ...(content.plugins !== undefined && Object.keys(content.plugins).length > 0 && { plugins: content.plugins }),
      ...(content.pluginApprovers !== undefined && { pluginApprovers: content.pluginApprovers }),
    };
    return createOnce({
      caller,
      operation: 'createAgent',
      parent: namespaceId,
      key: options.idempotencyKey ?? keyInBody,
      input: content,
      prefix: 'agt',
      kind: 'Agent',
      streams,
      aggregate: agents,
      found: (state) => (state.phase === 'none' ? undefined : state.phase === 'present' ? { view: agentView(state), createdFrom: state.createdFrom } : {}),
      assertReadable: (agentId) => authorizer.require(caller, agentOperation('read', place({ namespaceId, agentId })), [['read', place({ namespaceId, agentId })]]),
      make: async (agentId, empty, idempotency) => {
        assertBackend(backendId);
        const refersTo = [{ kind: 'configuration', id: configurationId }, ...sourceReferences(content)];
        const admission = { type: 'AdmitResource', resource: { kind: 'agent', id: agentId }, name, refersTo } as const;
        await assertCapable(namespaceId, content, admission);
        const context = contextOf(caller, agentOperation('create', place({ namespaceId, agentId })), grant, idempotency);
        const decide = (servicePrincipalId: string): readonly AgentEvent[] => {
          const data = { agentId, namespaceId, name, servicePrincipalId, configurationId, executionMode, backendId, settings };
          const decision = agents.decider.decide(empty.state, { type: 'CreateAgent', data });
          if (decision instanceof Refusal) throw decision;
          return decision;
        };
        const servicePrincipalId = newId('spn');
        streams.assertStorable(agents.codec, decide(servicePrincipalId));
        await settlement.register(namespaceId, admission, withoutAudit(context), grant.guard);
        const principal = await streams.execute(iam, '', { type: 'CreateServicePrincipal', servicePrincipalId, namespaceId, agentId }, withoutAudit(context));
        const decided = decide(principal.state.principalOfAgent.get(agentId)!);
        const created = await streams.append(agents, empty, decided, { ...context, ...(await grant.guard()) });
        await waitFor(created.lastPosition);
        return agentView(created.state as PresentAgent);
      },
    });
  };

  /** One try of a change of the draft; undefined when the Agent moved meanwhile. */
  const change = async (caller: Caller, at: AgentPlace, input: UpdateAgentInput, ifMatch: number | undefined, updating: Operation): Promise<AgentView | undefined> => {
    const { namespaceId, agentId } = at;
    const loaded = await presentAgent(core, at);
    const saved = loaded.state.draft.settings;
    const current = isUnreadable(saved) ? {} : saved;
    const grant: Grant = await authorizer.require(caller, updating, [
      ['update', place(at)],
      ['read', ref.in('configuration', namespaceId, input.configurationId)],
      ...actorPermissions(namespaceId, current),
      ...actorPermissions(namespaceId, input),
    ]);
    const context = contextOf(caller, updating, grant);
    assertSources(namespaceId, { harnessAuth: input.harnessAuth, credentialSources: input.credentialSources ?? (isUnreadable(saved) ? [] : saved.credentialSources) });
    assertBackend(input.backendId);
    const harnessAuth = input.harnessAuth === undefined && !isUnreadable(saved) ? saved.harnessAuth : input.harnessAuth;
    const references = {
      before: [{ kind: 'configuration', id: loaded.state.draft.configurationId }, ...sourceReferences(current)],
      after: [{ kind: 'configuration', id: input.configurationId }, ...sourceReferences({ harnessAuth })],
    };
    const missing = unregistered((await streams.load(namespaces, namespaceId)).state, withoutGateway(references.after));
    if (missing !== undefined) throw missing;
    const decision = agents.decider.decide(loaded.state, { type: 'ChangeDraft', change: input, ifMatch });
    if (decision instanceof Refusal) throw decision;
    assertGateway(input);
    const dropOthers = await settlement.rebind(namespaceId, { kind: 'agent', id: agentId }, references, withoutAudit(context), grant.guard);
    try {
      const changed = await streams.append(agents, loaded, decision, { ...context, ...(await grant.guard()) });
      await dropOthers();
      await waitFor(changed.lastPosition);
      return agentView(changed.state as PresentAgent);
    } catch (error) {
      if (error instanceof WrongExpectedRevision) return undefined;
      throw error;
    }
  };

  /** One try of a deletion, judged and audited by what it comes to; undefined when the Agent moved meanwhile. */
  const requestDeletion = async (caller: Caller, at: AgentPlace, grant: Grant): Promise<AgentView | undefined> => {
    const deleting = agentOperation('delete', place(at));
    const loaded = await presentAgent(core, at);
    const { deletion, revisions, servicePrincipalId } = loaded.state;
    const policy = (await authorizer.current()).state;
    const initiator = deletion?.actor.principalId;
    const named = [at.agentId, ...revisions.map(({ revisionId }) => revisionId)];
    const accessBindingIds = bindingsNaming(policy, named, servicePrincipalId);
    const restrictionIds = restrictionsNaming(policy, named);
    const decision = agents.decider.decide(loaded.state, {
      type: 'RequestDeletion',
      actorId: caller.actor.principalId,
      initiatorPermitted: initiator !== undefined && evaluate(policy, initiator, 'delete', place(at)).allowed,
      accessBindingIds,
      restrictionIds,
    });
    if (decision instanceof DeletionOwned) throw await authorizer.denied(caller, deleting, ['delete', place(at)], decision, { initiatingActorId: decision.initiatingActorId });
    if (decision instanceof Refusal) throw decision;
    const isTakeover = decision.some(({ type }) => type === 'AgentDeletionTakenOver');
    const details = {
      ...(accessBindingIds.length > 0 && { accessBindingsRemovedOnCompletion: accessBindingIds }),
      ...(restrictionIds.length > 0 && { restrictionsRemovedOnCompletion: restrictionIds }),
    };
    const context = contextOf(caller, isTakeover ? { ...deleting, action: 'takeover' } : deleting, grant, { details });
    try {
      const deleted = await streams.append(agents, loaded, decision, { ...context, ...(await grant.guard()) });
      await waitFor(deleted.lastPosition, { work: true });
      return agentView(deleted.state as PresentAgent);
    } catch (error) {
      if (error instanceof WrongExpectedRevision) return undefined;
      throw error;
    }
  };

  const listAll: AgentService['listBelow'] = (caller, namespaceIds, page) =>
    judgedEach(
      namespaceIds,
      (namespaceId) => authorizer.require(caller, agentOperation('list', ref.namespace(namespaceId)), [['read', ref.namespace(namespaceId)]]),
      async (admitted) => {
        const visible = await visibleBelow(authorizer, caller, 'read', 'agent', admitted.map((id) => ({ namespaceId: id, id })));
        const found = Map.groupBy((await reads.listBelow(visible, page)).rows, ({ namespaceId }) => namespaceId);
        return admitted.map((namespaceId) => found.get(namespaceId) ?? []);
      },
    );

  return {
    create,

    list: async (caller, namespaceId, page) => {
      const rows = only(await listAll(caller, [namespaceId], page));
      if (rows.length === 0) {
        const { state } = await streams.load(namespaces, namespaceId);
        if (state.status === 'absent' || state.status === 'removed') throw new Refusal('NOT_FOUND', 'The Namespace was not found');
      }
      return rows;
    },
    listBelow: listAll,

    get: async (caller, at) => {
      await authorizer.require(caller, agentOperation('read', place(at)), [['read', place(at)]]);
      const { rows, fresh } = await reads.byIds([at.agentId]);
      const row = rows[0];
      if (!fresh || row === undefined) return agentView((await presentAgent(core, at)).state);
      if (row.namespaceId !== at.namespaceId) throw agentNotFound();
      return row;
    },

    update: async (caller, at, sent, { ifMatch } = {}) => {
      const updating = agentOperation('update', place(at));
      const input = await authorizer.receive(caller, updating, ['update', place(at)], sent);
      assertSources(at.namespaceId, { harnessAuth: input.harnessAuth?.method === 'credential_source' ? undefined : input.harnessAuth });
      await authorizer.require(caller, updating, [
        ['update', place(at)],
        ['read', ref.in('configuration', at.namespaceId, input.configurationId)],
        ...actorPermissions(at.namespaceId, input),
      ]);
      for (;;) {
        const changed = await change(caller, at, input, ifMatch, updating);
        if (changed !== undefined) return changed;
      }
    },

    stop: async (caller, at) => {
      const stopping = agentOperation('stop', place(at));
      const grant = await authorizer.require(caller, stopping, [['operate', place(at)]]);
      await presentAgent(core, at);
      const stopped = await streams.execute(agents, at.agentId, { type: 'RequestStop', operationId: newId('opr') }, contextOf(caller, stopping, grant), grant.guard);
      await waitFor(stopped.lastPosition, { work: true });
      return agentView(stopped.state as PresentAgent);
    },

    delete: async (caller, at) => {
      const grant = await authorizer.require(caller, agentOperation('delete', place(at)), [['delete', place(at)]]);
      for (;;) {
        const deleted = await requestDeletion(caller, at, grant);
        if (deleted !== undefined) return deleted;
      }
    },
  };
};
