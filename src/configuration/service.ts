/** The use cases of Configurations, as both edges call them. (rest-contract 3.3) */
import { configurations, iam, namespaces } from '../aggregates.ts';
import { ref, type Operation, type Permission } from '../iam/authorizer.ts';
import type { Caller } from '../iam/caller.ts';
import { Refusal } from '../kernel/errors.ts';
import { newId } from '../kernel/ids.ts';
import { isUnreadable } from '../kernel/codec.ts';
import type { RegisteredResource } from '../namespace/messages.ts';
import { isRegistered } from '../namespace/namespace.ts';
import { createSettlement } from '../namespace/settlement.ts';
import { contextOf, idempotencyOf, unfencedId, withoutAudit, type Core } from '../core.ts';
import { WrongExpectedRevision, noStream } from '../runtime/streams.ts';
import { configurationNotFound, type PresentConfiguration } from './configuration.ts';
import { assertDocument } from './document.ts';
import type { CreateConfigurationInput, SecretBindings, UpdateConfigurationInput } from './input.ts';
import type { ConfigurationSettings } from './messages.ts';
import { assertSecretBindings, secretsOf } from './secret-bindings.ts';
import { configurationView, type ConfigurationReads, type ConfigurationView } from './view.ts';

export interface ConfigurationPlace {
  readonly namespaceId: string;
  readonly configurationId: string;
}

export interface ConfigurationService {
  create(caller: Caller, namespaceId: string, input: CreateConfigurationInput, options?: { readonly idempotencyKey?: string | undefined }): Promise<ConfigurationView>;
  get(caller: Caller, place: ConfigurationPlace): Promise<ConfigurationView>;
  /** Replaces the document as a whole; the generation rises by exactly one. */
  update(caller: Caller, place: ConfigurationPlace, input: UpdateConfigurationInput, options?: { readonly ifMatch?: number | undefined }): Promise<ConfigurationView>;
  /** @throws Refusal RESOURCE_CONFLICT while an Agent refers to it */
  delete(caller: Caller, place: ConfigurationPlace): Promise<void>;
}

const operation = (verb: string, resource: Operation['resource']): Operation => ({ action: `openclaw.configurations.${verb}`, resource });

const settingsOf = ({ values, secretBindings }: { values: object; secretBindings?: SecretBindings }): ConfigurationSettings =>
  secretBindings === undefined ? { values } : { values, secretBindings };

const referencesOf = (bindings: SecretBindings | undefined): readonly RegisteredResource[] => secretsOf(bindings).map((id) => ({ kind: 'secret', id }));

export const createConfigurationService = ({ core, reads }: { readonly core: Core; readonly reads: ConfigurationReads }): ConfigurationService => {
  const { streams, authorizer, waitFor } = core;
  const settlement = createSettlement(streams);

  const operateOn = (namespaceId: string, bindings: SecretBindings | undefined): readonly Permission[] =>
    secretsOf(bindings).map((id) => ['operate', ref.in('secret', namespaceId, id)]);

  /** The Configuration at its tail, and registered in its Namespace. @throws Refusal NOT_FOUND */
  const present = async ({ namespaceId, configurationId }: ConfigurationPlace) => {
    const [loaded, register] = await Promise.all([streams.load(configurations, configurationId), streams.load(namespaces, namespaceId)]);
    const { state } = loaded;
    if (state.phase !== 'present' || state.namespaceId !== namespaceId) throw configurationNotFound();
    if (!isRegistered(register.state, { kind: 'configuration', id: configurationId })) throw configurationNotFound();
    return { ...loaded, state };
  };

  /** Its stream begins with a fence instead of a creation. */
  const isFenced = async (configurationId: string): Promise<boolean> => {
    const { state, revision } = await streams.load(configurations, configurationId);
    return state.phase === 'none' && revision !== noStream;
  };

  const replay = async (caller: Caller, place: ConfigurationPlace, input: string): Promise<ConfigurationView | undefined> => {
    const { state } = await streams.load(configurations, place.configurationId);
    if (state.phase === 'none') return undefined;
    const resource = ref.in('configuration', place.namespaceId, place.configurationId);
    if (state.phase === 'present' && state.createdFrom !== input) throw new Refusal('RESOURCE_CONFLICT', 'The idempotency key was used for a different request');
    await authorizer.require(caller, operation('read', resource), [['read', resource]]);
    if (state.phase !== 'present') throw new Refusal('RESOURCE_CONFLICT', 'The Configuration made under this idempotency key was deleted since');
    return configurationView(state);
  };

  const create: ConfigurationService['create'] = async (caller, namespaceId, input, options = {}) => {
    const { idempotencyKey: keyInBody, ...content } = input;
    const key = options.idempotencyKey ?? keyInBody;
    const collection = ref.collection('configuration', namespaceId);
    assertSecretBindings(namespaceId, content.secretBindings);
    assertDocument(content.values as Record<string, unknown>);
    const grant = await authorizer.require(caller, operation('create', collection), [['create', collection], ...operateOn(namespaceId, content.secretBindings)]);
    const idempotency = key === undefined ? undefined : idempotencyOf(caller, 'createConfiguration', namespaceId, key, content);
    const configurationId = idempotency === undefined ? newId('cfg') : await unfencedId('cfg', idempotency.key, isFenced);
    if (idempotency !== undefined) {
      const known = await replay(caller, { namespaceId, configurationId }, idempotency.input);
      if (known !== undefined) return known;
    }
    const resource = ref.in('configuration', namespaceId, configurationId);
    const context = contextOf(caller, operation('create', resource), grant, idempotency === undefined ? {} : { idempotency });
    const refersTo = referencesOf(content.secretBindings);
    const loaded = await streams.load(configurations, configurationId);
    // Made meanwhile by a request with the same idempotency key.
    if (loaded.state.phase !== 'none') return create(caller, namespaceId, input, options);
    await settlement.register(namespaceId, { type: 'AdmitResource', resource: { kind: 'configuration', id: configurationId }, refersTo }, withoutAudit(context), grant.guard);
    const decision = configurations.decider.decide(loaded.state, { type: 'CreateConfiguration', configurationId, namespaceId, settings: settingsOf(content) });
    try {
      if (decision instanceof Refusal) throw decision;
      const created = await streams.append(configurations, loaded, decision, { ...context, ...(await grant.guard()) });
      await waitFor(created.lastPosition);
      return configurationView(created.state as PresentConfiguration);
    } catch (error) {
      if (error instanceof WrongExpectedRevision) return create(caller, namespaceId, input, options);
      throw error;
    }
  };

  return {
    create,

    get: async (caller, place) => {
      const resource = ref.in('configuration', place.namespaceId, place.configurationId);
      await authorizer.require(caller, operation('read', resource), [['read', resource]]);
      const { rows, fresh } = await reads.byIds([place.configurationId]);
      const row = rows[0];
      if (fresh && row !== undefined) {
        if (row.namespaceId !== place.namespaceId) throw configurationNotFound();
        return row;
      }
      return configurationView((await present(place)).state);
    },

    update: async (caller, place, input, { ifMatch } = {}) => {
      const { namespaceId, configurationId } = place;
      const resource = ref.in('configuration', namespaceId, configurationId);
      const updating = operation('update', resource);
      assertSecretBindings(namespaceId, input.secretBindings);
      assertDocument(input.values as Record<string, unknown>);
      await authorizer.require(caller, updating, [['update', resource]]);
      for (;;) {
        const loaded = await present(place);
        const saved = loaded.state.settings;
        if (input.secretBindings === undefined && isUnreadable(saved)) throw new Refusal('RESOURCE_CONFLICT', `The saved ${saved.unreadable} cannot be read`);
        const kept = isUnreadable(saved) ? undefined : (saved.secretBindings as SecretBindings | undefined);
        const settings = settingsOf({ values: input.values, ...((input.secretBindings ?? kept) !== undefined && { secretBindings: (input.secretBindings ?? kept)! }) });
        const bound = settings.secretBindings as SecretBindings | undefined;
        const grant = await authorizer.require(caller, updating, [['update', resource], ...operateOn(namespaceId, bound)]);
        const context = contextOf(caller, updating, grant);
        const registered = { kind: 'configuration', id: configurationId };
        const dropOthers = await settlement.rebind(namespaceId, registered, { before: referencesOf(kept), after: referencesOf(bound) }, withoutAudit(context), grant.guard);
        const decision = configurations.decider.decide(loaded.state, { type: 'ReplaceConfiguration', settings, ifMatch });
        if (decision instanceof Refusal) throw decision;
        try {
          const updated = await streams.append(configurations, loaded, decision, { ...context, ...(await grant.guard()) });
          await dropOthers();
          await waitFor(updated.lastPosition);
          return configurationView(updated.state as PresentConfiguration);
        } catch (error) {
          if (!(error instanceof WrongExpectedRevision)) throw error;
        }
      }
    },

    delete: async (caller, place) => {
      const { namespaceId, configurationId } = place;
      const resource = ref.in('configuration', namespaceId, configurationId);
      const deleting = operation('delete', resource);
      const grant = await authorizer.require(caller, deleting, [['delete', resource]]);
      const context = contextOf(caller, deleting, grant);
      const { state } = await streams.load(configurations, configurationId);
      if (state.phase !== 'present' || state.namespaceId !== namespaceId) throw configurationNotFound();
      await settlement.register(namespaceId, { type: 'RemoveResource', resource: { kind: 'configuration', id: configurationId } }, context, grant.guard);
      const deleted = await streams.execute(configurations, configurationId, { type: 'DeleteConfiguration' }, withoutAudit(context));
      await streams.execute(iam, '', { type: 'RemoveResourcePolicy', resourceKind: 'configuration', resourceId: configurationId, namespaceId }, withoutAudit(context));
      await waitFor(deleted.lastPosition);
    },
  };
};
