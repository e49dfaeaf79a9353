/** The draft: what a deploy would copy, and how a PATCH changes it. (rest-contract 2.3, failure scenario 18) */
import { isUnreadable, type Unreadable } from '../kernel/codec.ts';
import type { AgentEvent } from './messages.ts';
import type { AgentSettings, ExecutionMode } from './settings.ts';

export interface Draft {
  readonly configurationId: string;
  readonly executionMode: ExecutionMode;
  readonly backendId: string | null;
  readonly settings: AgentSettings | Unreadable;
}

/** Omitted members keep, null clears; `configurationId` is bound every time. */
export interface DraftChange {
  readonly configurationId: string;
  readonly executionMode?: ExecutionMode | undefined;
  readonly backendId?: string | null | undefined;
  readonly harnessAuth?: AgentSettings['harnessAuth'] | undefined;
  readonly credentialSources?: AgentSettings['credentialSources'] | undefined;
  readonly plugins?: AgentSettings['plugins'] | undefined;
  readonly pluginApprovers?: AgentSettings['pluginApprovers'] | null | undefined;
}

type Owner = { readonly agentId: string; readonly namespaceId: string };

/** One event for each changed part; binding the Configuration is recorded even where it stays the same. */
export const draftEvents = ({ agentId, namespaceId }: Owner, change: DraftChange): readonly AgentEvent[] => {
  const agent = { agentId, namespaceId };
  const events: AgentEvent[] = [{ type: 'AgentConfigurationBound', data: { ...agent, configurationId: change.configurationId } }];
  if (change.executionMode !== undefined)
    events.push({ type: 'AgentExecutionModeChanged', data: { ...agent, executionMode: change.executionMode } });
  if (change.backendId !== undefined) events.push({ type: 'AgentBackendBound', data: { ...agent, backendId: change.backendId } });
  if (change.harnessAuth !== undefined)
    events.push({ type: 'AgentHarnessAuthBound', data: { ...agent, settings: { harnessAuth: change.harnessAuth } } });
  if (change.credentialSources !== undefined)
    events.push({ type: 'AgentCredentialSourcesReplaced', data: { ...agent, settings: { credentialSources: change.credentialSources } } });
  if (change.plugins !== undefined)
    events.push({ type: 'AgentPluginsReplaced', data: { ...agent, settings: { plugins: change.plugins } } });
  if (change.pluginApprovers !== undefined)
    events.push({ type: 'AgentPluginApproversReplaced', data: { ...agent, settings: { pluginApprovers: change.pluginApprovers } } });
  return events;
};

const withSettings = (draft: Draft, change: Partial<{ [K in keyof AgentSettings]: AgentSettings[K] | null }> | Unreadable): Draft => {
  if (isUnreadable(draft.settings)) return draft;
  if (isUnreadable(change)) return { ...draft, settings: change };
  const settings = { ...draft.settings, ...change };
  if (settings.pluginApprovers === null) delete settings.pluginApprovers;
  return { ...draft, settings: settings as AgentSettings };
};

/** The draft after an event; the same draft where the event does not touch it. */
export const evolveDraft = (draft: Draft, event: AgentEvent): Draft => {
  switch (event.type) {
    case 'AgentConfigurationBound':
      return { ...draft, configurationId: event.data.configurationId };
    case 'AgentExecutionModeChanged':
      return { ...draft, executionMode: event.data.executionMode };
    case 'AgentBackendBound':
      return { ...draft, backendId: event.data.backendId };
    case 'AgentHarnessAuthBound':
    case 'AgentCredentialSourcesReplaced':
    case 'AgentPluginsReplaced':
    case 'AgentPluginApproversReplaced':
      return withSettings(draft, event.data.settings);
    default:
      return draft;
  }
};
