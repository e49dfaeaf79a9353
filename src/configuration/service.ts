/** The use cases of Configurations, as both edges call them. (rest-contract 3.3) */
import { configurations, iam, namespaces } from '../aggregates.ts';
import { ref, type Operation, type Permission } from '../iam/authorizer.ts';
import type { Caller } from '../iam/caller.ts';
import { bindingsNaming } from '../iam/policy.ts';
import { Refusal } from '../kernel/errors.ts';
import { isUnreadable } from '../kernel/codec.ts';
import type { Sent } from '../kernel/parse.ts';
import type { RegisteredResource } from '../namespace/messages.ts';
import { isRegistered } from '../namespace/namespace.ts';
import { createSettlement } from '../namespace/settlement.ts';
import { contextOf, withoutAudit, type Core } from '../core.ts';
import { createOnce } from '../create-once.ts';
import { WrongExpectedRevision } from '../runtime/streams.ts';
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
  create(caller: Caller, namespaceId: string, sent: Sent<CreateConfigurationInput>, options?: { readonly idempotencyKey?: string | undefined }): Promise<ConfigurationView>;
  get(caller: Caller, place: ConfigurationPlace): Promise<ConfigurationView>;
  /** Replaces the document as a whole; the generation rises by exactly one. */
  update(caller: Caller, place: ConfigurationPlace, sent: Sent<UpdateConfigurationInput>, options?: { readonly ifMatch?: number | undefined }): Promise<ConfigurationView>;
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

  const create: ConfigurationService['create'] = async (caller, namespaceId, sent, options = {}) => {
    const collection = ref.collection('configuration', namespaceId);
    const creating = operation('create', collection);
    const { idempotencyKey: keyInBody, ...content } = await authorizer.receive(caller, creating, ['create', collection], sent);
    assertSecretBindings(namespaceId, content.secretBindings);
    assertDocument(content.values as Record<string, unknown>);
    const grant = await authorizer.require(caller, creating, [['create', collection], ...operateOn(namespaceId, content.secretBindings)]);
    const place = (configurationId: string) => ref.in('configuration', namespaceId, configurationId);
    return createOnce({
      caller,
      operation: 'createConfiguration',
      parent: namespaceId,
      key: options.idempotencyKey ?? keyInBody,
      input: content,
      prefix: 'cfg',
      kind: 'Configuration',
      streams,
      aggregate: configurations,
      found: (state) => (state.phase === 'none' ? undefined : state.phase === 'present' ? { view: configurationView(state), createdFrom: state.createdFrom } : {}),
      assertReadable: (configurationId) => authorizer.require(caller, operation('read', place(configurationId)), [['read', place(configurationId)]]),
      make: async (configurationId, empty, idempotency) => {
        const context = contextOf(caller, operation('create', place(configurationId)), grant, idempotency);
        const admitted = { type: 'AdmitResource', resource: { kind: 'configuration', id: configurationId }, refersTo: referencesOf(content.secretBindings) } as const;
        await settlement.register(namespaceId, admitted, withoutAudit(context), grant.guard);
        const decision = configurations.decider.decide(empty.state, { type: 'CreateConfiguration', configurationId, namespaceId, settings: settingsOf(content) });
        if (decision instanceof Refusal) throw decision;
        const created = await streams.append(configurations, empty, decision, { ...context, ...(await grant.guard()) });
        await waitFor(created.lastPosition);
        return configurationView(created.state as PresentConfiguration);
      },
    });
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

    update: async (caller, place, sent, { ifMatch } = {}) => {
      const { namespaceId, configurationId } = place;
      const resource = ref.in('configuration', namespaceId, configurationId);
      const updating = operation('update', resource);
      const input = await authorizer.receive(caller, updating, ['update', resource], sent);
      assertSecretBindings(namespaceId, input.secretBindings);
      assertDocument(input.values as Record<string, unknown>);
      await authorizer.require(caller, updating, [['update', resource], ...operateOn(namespaceId, input.secretBindings)]);
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
      const { state } = await streams.load(configurations, configurationId);
      if (state.phase !== 'present' || state.namespaceId !== namespaceId) throw configurationNotFound();
      const removedAccessBindings = bindingsNaming((await authorizer.current()).state, [configurationId]);
      const context = contextOf(caller, deleting, grant, { ...(removedAccessBindings.length > 0 && { details: { removedAccessBindings } }) });
      await settlement.register(namespaceId, { type: 'RemoveResource', resource: { kind: 'configuration', id: configurationId } }, context, grant.guard);
      const deleted = await streams.execute(configurations, configurationId, { type: 'DeleteConfiguration' }, withoutAudit(context));
      await streams.execute(iam, '', { type: 'RemoveResourcePolicy', resourceKind: 'configuration', resourceId: configurationId, namespaceId }, withoutAudit(context));
      await waitFor(deleted.lastPosition);
    },
  };
};
