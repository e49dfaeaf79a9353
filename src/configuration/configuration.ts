/** One Configuration's decider: its document and the generation every change raises by exactly one. (rest-contract 3.3) */
import type { Unreadable } from '../kernel/codec.ts';
import type { Decider, Decision } from '../kernel/decider.ts';
import { Refusal } from '../kernel/errors.ts';
import type { Envelope } from '../kernel/event.ts';
import type { ConfigurationEvent, ConfigurationSettings } from './messages.ts';

export interface PresentConfiguration {
  readonly phase: 'present';
  readonly configurationId: string;
  readonly namespaceId: string;
  readonly kind: 'agent';
  readonly generation: number;
  readonly settings: ConfigurationSettings | Unreadable;
  readonly createdAt: string;
  /** Digest of the input it was created from under an idempotency key; null without one. */
  readonly createdFrom: string | null;
}

export type ConfigurationState = { readonly phase: 'none' | 'deleted' } | PresentConfiguration;

export type ConfigurationCommand =
  | { readonly type: 'CreateConfiguration'; readonly configurationId: string; readonly namespaceId: string; readonly settings: ConfigurationSettings }
  | { readonly type: 'ReplaceConfiguration'; readonly settings: ConfigurationSettings; readonly ifMatch?: number | undefined }
  | { readonly type: 'AbandonConfigurationCreation'; readonly configurationId: string; readonly namespaceId: string }
  | { readonly type: 'DeleteConfiguration' };

export const configurationNotFound = (): Refusal => new Refusal('NOT_FOUND', 'The Configuration was not found');

const decide = (state: ConfigurationState, command: ConfigurationCommand): Decision<ConfigurationEvent> => {
  switch (command.type) {
    case 'CreateConfiguration': {
      if (state.phase !== 'none') return new Refusal('RESOURCE_CONFLICT', 'A Configuration with this identity already exists');
      const { configurationId, namespaceId, settings } = command;
      return [{ type: 'ConfigurationCreated', data: { configurationId, namespaceId, generation: 1, kind: 'agent', settings } }];
    }
    case 'AbandonConfigurationCreation': {
      const { configurationId, namespaceId } = command;
      return state.phase === 'none' ? [{ type: 'ConfigurationCreationAbandoned', data: { configurationId, namespaceId } }] : [];
    }
    case 'ReplaceConfiguration': {
      if (state.phase !== 'present') return configurationNotFound();
      const { configurationId, namespaceId, generation } = state;
      if (command.ifMatch !== undefined && command.ifMatch !== generation)
        return new Refusal('RESOURCE_CONFLICT', 'The Configuration was changed since it was read');
      return [{ type: 'ConfigurationReplaced', data: { configurationId, namespaceId, generation: generation + 1, settings: command.settings } }];
    }
    case 'DeleteConfiguration': {
      if (state.phase !== 'present') return [];
      const { configurationId, namespaceId } = state;
      return [{ type: 'ConfigurationDeleted', data: { configurationId, namespaceId } }];
    }
  }
};

const evolve = (state: ConfigurationState, { type, data }: ConfigurationEvent, { occurredAt, idempotency }: Envelope): ConfigurationState => {
  switch (type) {
    case 'ConfigurationCreated':
      return { phase: 'present', ...data, createdAt: occurredAt, createdFrom: idempotency?.input ?? null };
    case 'ConfigurationReplaced':
      return state.phase === 'present' ? { ...state, generation: data.generation, settings: data.settings } : state;
    case 'ConfigurationCreationAbandoned':
      return state;
    case 'ConfigurationDeleted':
      return { phase: 'deleted' };
  }
};

export const configurationDecider: Decider<ConfigurationState, ConfigurationCommand, ConfigurationEvent> = {
  initial: { phase: 'none' },
  decide,
  evolve,
};
