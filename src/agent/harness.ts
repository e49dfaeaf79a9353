/** Which Harness a native document selects, and whether it fits the Agent's execution mode. (agent-lifecycle 7.4) */
import { Refusal } from '../kernel/errors.ts';
import type { ExecutionMode } from './settings.ts';

export interface HarnessDescriptor {
  readonly id: 'openclaw' | 'codex';
  readonly version: string;
  readonly mode: ExecutionMode;
}

/** The approved releases; a revision pinned to another one is refused at dispatch. */
export const approvedHarnesses: Readonly<Record<HarnessDescriptor['id'], string>> = { openclaw: '2026.9.9', codex: '0.142.0' };

type Document = Readonly<Record<string, unknown>>;
const isObject = (value: unknown): value is Document => typeof value === 'object' && value !== null && !Array.isArray(value);
const at = (value: unknown, ...path: readonly string[]): unknown => path.reduce<unknown>((inner, name) => (isObject(inner) && Object.hasOwn(inner, name) ? inner[name] : undefined), value);

const refuse = (message: string): Refusal => new Refusal('INVALID_REQUEST', message);

/** Providers whose models run on the default Harness without an explicit policy. */
const unambiguous = new Set(['anthropic', 'google', 'ollama', 'openrouter', 'mistral', 'groq', 'xai', 'amazon-bedrock']);

const primaryModel = (document: Document): string | undefined => {
  const model = at(document, 'agents', 'defaults', 'model');
  const primary = isObject(model) ? model['primary'] : model;
  return typeof primary === 'string' && primary.trim() !== '' ? primary : undefined;
};

const policies = (document: Document, model: string | undefined, provider: string | undefined): readonly string[] => {
  const found = [
    model === undefined ? undefined : at(document, 'agents', 'defaults', 'models', model, 'agentRuntime', 'id'),
    at(document, 'agents', 'defaults', 'agentRuntime', 'id'),
    provider === undefined ? undefined : at(document, 'models', 'providers', provider, 'agentRuntime', 'id'),
  ];
  return [...new Set(found.filter((policy) => policy !== undefined).map(String))];
};

/**
 * Resolves the Harness of an admitted document.
 * @throws Refusal INVALID_REQUEST with the specific reason
 */
export const resolveHarness = (document: Document, mode: ExecutionMode): HarnessDescriptor => {
  const list = at(document, 'agents', 'list');
  if (Array.isArray(list) && list.length > 0) throw refuse('The Configuration lists several native agents, which is not supported');
  const model = primaryModel(document);
  const provider = model?.includes('/') === true ? model.slice(0, model.indexOf('/')) : undefined;
  const [policy, ...others] = policies(document, model, provider);
  if (others.length > 0) throw refuse('The Configuration selects conflicting agent runtimes');
  if (policy !== undefined && policy !== 'openclaw' && policy !== 'codex') throw refuse('The Configuration selects an unknown agent runtime');
  const configured = provider !== undefined && at(document, 'models', 'providers', provider) !== undefined;
  if (policy === undefined && model !== undefined && (provider === undefined || configured || !unambiguous.has(provider)))
    throw refuse('The Configuration names a model whose provider needs an explicit agent runtime');
  const id = policy ?? 'openclaw';
  if (id === 'codex') {
    if (mode !== 'dedicated') throw refuse('The codex runtime needs the dedicated execution mode');
    const pluginEnabled = at(document, 'plugins', 'entries', 'codex', 'enabled') === true;
    if (provider !== undefined && provider !== 'codex' && !(provider === 'openai' && pluginEnabled))
      throw refuse('The codex runtime does not take this model provider');
  }
  return { id, version: approvedHarnesses[id], mode };
};
