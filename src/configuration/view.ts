/** What readers see of a Configuration, and where they read it. (rest-contract 3.3) */
import type { Unreadable } from '../kernel/codec.ts';
import type { Reading } from '../runtime/reading.ts';
import type { ConfigurationSettings } from './messages.ts';
import type { PresentConfiguration } from './configuration.ts';

export interface ConfigurationView {
  readonly id: string;
  readonly namespaceId: string;
  readonly kind: 'agent';
  readonly generation: number;
  readonly settings: ConfigurationSettings | Unreadable;
  readonly createdAt: string;
}

export const configurationView = (state: PresentConfiguration): ConfigurationView => ({
  id: state.configurationId,
  namespaceId: state.namespaceId,
  kind: state.kind,
  generation: state.generation,
  settings: state.settings,
  createdAt: state.createdAt,
});

export interface ConfigurationReads {
  byIds(ids: readonly string[]): Promise<Reading<ConfigurationView>>;
}
