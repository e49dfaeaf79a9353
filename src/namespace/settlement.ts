/**
 * Settles intents in the register whose holders show no effect: nothing is taken away before a fence on the
 * holder's stream has made the late act impossible. Waiting is politeness, never safety. (R2, failure scenarios 1 and 2)
 */
import { setTimeout as delay } from 'node:timers/promises';
import { agents, configurations, iam, namespaces } from '../aggregates.ts';
import type { Decision } from '../kernel/decider.ts';
import type { CommandContext, Executed, Streams } from '../runtime/streams.ts';
import type { NamespaceEvent, RegisteredResource } from './messages.ts';
import { RegisterConflict, type NamespaceCommand, type NamespaceState } from './namespace.ts';

/** How long a holder that shows no effect may take before it is fenced off, and how often it is looked at. */
const graceMs = 2_000;
const firstLookMs = 10;

/** Waits until a look succeeds, at most the grace period, looking ever less often. */
export const politely = async (look: () => Promise<boolean>): Promise<boolean> => {
  const until = performance.now() + graceMs;
  for (let pauseMs = firstLookMs; ; pauseMs = Math.min(pauseMs * 2, 250)) {
    if (await look()) return true;
    if (performance.now() >= until) return false;
    await delay(pauseMs);
  }
};

export interface Settlement {
  /** Registers a command; a refusal caused by an intent without effect settles the intent and decides again. */
  register(namespaceId: string, command: NamespaceCommand, context: CommandContext, guard?: () => Promise<Partial<CommandContext>>): Promise<Executed<NamespaceState, NamespaceEvent>>;
  /** Registers what a change newly refers to. The answer drops what it no longer refers to, and is called when the change is made. */
  rebind(
    namespaceId: string,
    resource: RegisteredResource,
    references: { readonly before: readonly RegisteredResource[]; readonly after: readonly RegisteredResource[] },
    context: CommandContext,
    guard: () => Promise<Partial<CommandContext>>,
  ): Promise<() => Promise<void>>;
}

const without = (list: readonly RegisteredResource[], other: readonly RegisteredResource[]) => list.filter(({ id }) => !other.some((known) => known.id === id));

export const createSettlement = (streams: Streams): Settlement => {
  const remove = async (namespaceId: string, resource: RegisteredResource, context: CommandContext): Promise<void> => {
    await streams.execute(namespaces, namespaceId, { type: 'RemoveResource', resource }, context);
  };

  /** An Agent whose creation never came to its own event is fenced off; one that is gone leaves the register. */
  const settleAgent = async (namespaceId: string, holder: RegisteredResource, context: CommandContext): Promise<boolean> => {
    const agentId = holder.id;
    await politely(async () => (await streams.load(agents, agentId)).state.phase !== 'none');
    const { state } = await streams.execute(agents, agentId, { type: 'AbandonAgentCreation', agentId, namespaceId }, context);
    if (state.phase === 'present') return false;
    await streams.execute(iam, '', { type: 'RemoveServicePrincipalOfAgent', agentId }, context);
    await remove(namespaceId, holder, context);
    return true;
  };

  const settleConfiguration = async (namespaceId: string, holder: RegisteredResource, context: CommandContext): Promise<boolean> => {
    const configurationId = holder.id;
    await politely(async () => (await streams.load(configurations, configurationId)).state.phase !== 'none');
    const { state } = await streams.execute(configurations, configurationId, { type: 'AbandonConfigurationCreation', configurationId, namespaceId }, context);
    if (state.phase === 'present') return false;
    await remove(namespaceId, holder, context);
    return true;
  };

  /** A reference the Agent's draft does not show: its late change is made impossible, then the reference is dropped. */
  const settleReference = async (namespaceId: string, holder: RegisteredResource, target: RegisteredResource, context: CommandContext): Promise<boolean> => {
    const refers = async () => {
      const { state } = await streams.load(agents, holder.id);
      return state.phase === 'present' && state.draft.configurationId === target.id;
    };
    if (await politely(refers)) return false;
    let voided = false;
    const { revision: knownAt } = await streams.load(namespaces, namespaceId);
    await streams.execute(
      agents,
      holder.id,
      (state): Decision<never> => {
        voided = !(state.phase === 'present' && state.draft.configurationId === target.id);
        if (!voided) return [];
        return agents.decider.decide(state, { type: 'VoidIntent' }) as Decision<never>;
      },
      context,
    );
    if (!voided) return false;
    await streams.execute(namespaces, namespaceId, { type: 'DropReferences', resource: holder, refersTo: [target], knownAt }, context);
    return true;
  };

  const settle = async (namespaceId: string, command: NamespaceCommand, holder: RegisteredResource, context: CommandContext): Promise<boolean> => {
    if (holder.kind === 'agent' && (await settleAgent(namespaceId, holder, context))) return true;
    if (holder.kind === 'configuration' && (await settleConfiguration(namespaceId, holder, context))) return true;
    return command.type === 'RemoveResource' && holder.kind === 'agent' && settleReference(namespaceId, holder, command.resource, context);
  };

  const register: Settlement['register'] = async (namespaceId, command, context, guard) => {
    try {
      return await streams.execute(namespaces, namespaceId, command, context, guard);
    } catch (conflict) {
      if (!(conflict instanceof RegisterConflict)) throw conflict;
      const { audit: _, ...settling } = context;
      const settled: boolean[] = [];
      for (const holder of conflict.holders) settled.push(await settle(namespaceId, command, holder, settling));
      if (!settled.includes(true)) throw conflict;
      return register(namespaceId, command, context, guard);
    }
  };

  const rebind: Settlement['rebind'] = async (namespaceId, resource, { before, after }, context, guard) => {
    const added = without(after, before);
    const dropped = without(before, after);
    const { revision: knownAt } =
      added.length > 0 ? await register(namespaceId, { type: 'AddReferences', resource, refersTo: added }, context, guard) : await streams.load(namespaces, namespaceId);
    return async () => {
      if (dropped.length > 0) await register(namespaceId, { type: 'DropReferences', resource, refersTo: dropped, knownAt }, context);
    };
  };

  return { register, rebind };
};
