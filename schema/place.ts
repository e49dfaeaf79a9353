/**
 * How ids travel. A global id names a type and the whole place of a resource, so that it can be authorized
 * and read without a look-up; arguments take raw ids as well. (architecture section 7)
 */
import { decodeGlobalID } from '@pothos/plugin-relay';
import type { RevisionPlace } from '../src/agent-revision/service.ts';
import type { AgentPlace } from '../src/agent/service.ts';
import type { ConfigurationPlace } from '../src/configuration/service.ts';
import { ref, type Permission } from '../src/iam/authorizer.ts';
import { Refusal } from '../src/kernel/errors.ts';
import type { Caller } from '../src/iam/caller.ts';
import type { AccessBindingPlace, RolePlace } from '../src/iam/service.ts';
import type { ResourceKind } from '../src/kernel/event.ts';
import { isId, opaquePattern, type Prefix } from '../src/kernel/ids.ts';
import { invalidRequest, type Sent } from '../src/kernel/parse.ts';
import type { Context } from './builder.ts';

/** The part of a global id after its type: the ids of a place, outermost first. */
export const keyOf = (...ids: readonly string[]): string => ids.join('/');

export const malformed = (argument: string): Refusal => invalidRequest([{ path: `/${argument}`, code: 'INVALID_FORMAT' }]);

/** The ids of a key, checked one by one. @throws Refusal INVALID_REQUEST */
const idsOf = (key: string, ...prefixes: readonly Prefix[]): readonly string[] => {
  const ids = key.split('/');
  if (ids.length !== prefixes.length || !ids.every((id, index) => isId(prefixes[index]!, id))) throw malformed('id');
  return ids;
};

/** The place a key names. @throws Refusal INVALID_REQUEST */
export const placeOf = {
  namespace: (key: string): { readonly namespaceId: string } => ({ namespaceId: idsOf(key, 'ns')[0]! }),
  configuration: (key: string): ConfigurationPlace => {
    const [namespaceId, configurationId] = idsOf(key, 'ns', 'cfg');
    return { namespaceId: namespaceId!, configurationId: configurationId! };
  },
  agent: (key: string): AgentPlace => {
    const [namespaceId, agentId] = idsOf(key, 'ns', 'agt');
    return { namespaceId: namespaceId!, agentId: agentId! };
  },
  revision: (key: string): RevisionPlace => {
    const [namespaceId, agentId, revisionId] = idsOf(key, 'ns', 'agt', 'rev');
    return { namespaceId: namespaceId!, agentId: agentId!, revisionId: revisionId! };
  },
  role: (key: string): RolePlace => {
    const [namespaceId, roleId] = idsOf(key, 'ns', 'role');
    return { namespaceId: namespaceId!, roleId: roleId! };
  },
  accessBinding: (key: string): AccessBindingPlace => {
    const [namespaceId, bindingId] = idsOf(key, 'ns', 'bnd');
    return { namespaceId: namespaceId!, bindingId: bindingId! };
  },
} as const;

/** The type and the key in a global id; undefined for any other text. */
export const globalId = (text: string): { readonly typename: string; readonly key: string } | undefined => {
  try {
    const { typename, id } = decodeGlobalID(text);
    return { typename, key: id };
  } catch {
    return undefined; // what is no global id, may still be a raw one
  }
};

/** The key inside a global id of this type. */
const keyInside = (text: string, typename: string): string | undefined => {
  const found = globalId(text);
  return found?.typename === typename ? found.key : undefined;
};

/** The raw id in a global id of this type; any other text as it is. */
export const rawOf = (text: string, typename: string): string => keyInside(text, typename)?.split('/').at(-1) ?? text;

/** The raw id in a global id of any type; any other text as it is. */
export const rawOfAny = (text: string): string => globalId(text)?.key.split('/').at(-1) ?? text;

/** The id a raw or a global id stands for. @throws Refusal INVALID_REQUEST */
export const rawId = (text: string, typename: string, prefix: Prefix, argument: string): string => {
  const id = rawOf(text, typename);
  if (!isId(prefix, id)) throw malformed(argument);
  return id;
};

const timestamp = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}\.\d{3}Z$/;

/** A time as every answer writes it. @throws Refusal INVALID_REQUEST */
export const timeOf = (text: string | null | undefined, argument: string): string | undefined => {
  if (text == null) return undefined;
  if (!timestamp.test(text) || Number.isNaN(Date.parse(text))) throw malformed(argument);
  return text;
};

export const namespaceIdOf = (text: string, argument = 'id'): string => rawId(text, 'Namespace', 'ns', argument);

/** How an argument names a resource inside a Namespace. */
export interface Located {
  readonly id: string;
  /** Saves a look-up for a raw id, and places one the read models do not know yet. */
  readonly namespaceId?: string | null | undefined;
  readonly agentId?: string | null | undefined;
}

/** What the caller is about to do: the audit's name for it, and the permission it takes. */
export interface Intent {
  readonly action: string;
  readonly permission: Permission[0];
  /** What it comes with, which is refused before the permission is judged. */
  readonly content?: Sent<unknown>;
}

/** Any Namespace: only a grant that names none covers it. */
const everywhere = '*';

const notFound = (): Refusal => new Refusal('NOT_FOUND', 'The resource was not found');

/**
 * Judges an id that came without its place, before anything else of the request is: to who may not touch it,
 * one that exists is like one that does not. Answers the Namespace it was found in. @throws Refusal FORBIDDEN, NOT_FOUND
 */
const admitted = async ({ authorizer, caller }: Context, kind: ResourceKind, id: string, namespaceId: string | undefined, { action, permission, content }: Intent): Promise<string> => {
  const resource = namespaceId === undefined ? { kind, id } : ref.in(kind, namespaceId, id);
  if (content !== undefined) await authorizer.receive(caller, { action, resource }, [permission, resource], content);
  if (namespaceId === undefined && (await authorizer.permits(caller, permission, ref.in(kind, everywhere, id)))) throw notFound();
  await authorizer.require(caller, { action, resource }, [[permission, resource]]);
  if (namespaceId === undefined) throw notFound();
  return namespaceId;
};

/** A raw id's Namespace: the one it came with, else the one the caller's key is frozen to. */
const namespaceOf = ({ caller }: Context, { namespaceId }: Located): string | undefined =>
  namespaceId == null ? caller.keyNamespaceId : namespaceIdOf(namespaceId, 'namespaceId');

/** Where an Agent is. @throws Refusal INVALID_REQUEST, FORBIDDEN, NOT_FOUND */
export const agentPlace = async (context: Context, located: Located, intent: Intent): Promise<AgentPlace> => {
  const key = keyInside(located.id, 'Agent');
  if (key !== undefined) return placeOf.agent(key);
  const agentId = rawId(located.id, 'Agent', 'agt', 'id');
  const namespaceId = namespaceOf(context, located);
  if (namespaceId !== undefined) return { namespaceId, agentId };
  const [row] = (await context.reads.agents.byIds([agentId])).rows;
  return { namespaceId: await admitted(context, 'agent', agentId, row?.namespaceId, intent), agentId };
};

/** Where a Configuration is. @throws Refusal INVALID_REQUEST, FORBIDDEN, NOT_FOUND */
export const configurationPlace = async (context: Context, located: Located, intent: Intent): Promise<ConfigurationPlace> => {
  const key = keyInside(located.id, 'Configuration');
  if (key !== undefined) return placeOf.configuration(key);
  const configurationId = rawId(located.id, 'Configuration', 'cfg', 'id');
  const namespaceId = namespaceOf(context, located);
  if (namespaceId !== undefined) return { namespaceId, configurationId };
  const [row] = (await context.reads.configurations.byIds([configurationId])).rows;
  return { namespaceId: await admitted(context, 'configuration', configurationId, row?.namespaceId, intent), configurationId };
};

/** Where an AgentRevision, and the Deployment that shares its id, is. @throws Refusal INVALID_REQUEST, FORBIDDEN, NOT_FOUND */
export const revisionPlace = async (context: Context, typename: 'AgentRevision' | 'Deployment', located: Located, intent: Intent): Promise<RevisionPlace> => {
  const key = keyInside(located.id, typename);
  if (key !== undefined) return placeOf.revision(key);
  const revisionId = rawId(located.id, typename, 'rev', 'id');
  const namespaceId = namespaceOf(context, located);
  if (namespaceId !== undefined && located.agentId != null) return { namespaceId, agentId: rawId(located.agentId, 'Agent', 'agt', 'agentId'), revisionId };
  const [row] = (await context.reads.revisions.byIds([revisionId])).rows;
  const found = await admitted(context, 'agent_revision', revisionId, namespaceId ?? row?.namespaceId, intent);
  if (row === undefined) throw notFound();
  return { namespaceId: found, agentId: row.agentId, revisionId };
};

const isOpaque = new RegExp(opaquePattern);

/** An id that clients do not take apart. @throws Refusal INVALID_REQUEST */
export const opaque = (text: string, argument = 'id'): string => {
  if (!isOpaque.test(text)) throw malformed(argument);
  return text;
};

type PolicyLocated = Pick<Located, 'id' | 'namespaceId'>;

const namespaceNamed = ({ namespaceId }: PolicyLocated, caller: Caller): string => {
  const named = namespaceId ?? caller.keyNamespaceId;
  if (named === undefined) throw invalidRequest([{ path: '/namespaceId', code: 'REQUIRED' }]);
  return namespaceIdOf(named, 'namespaceId');
};

/** Where a Role is: its global id says so, else its Namespace has to be named. @throws Refusal INVALID_REQUEST */
export const rolePlace = (located: PolicyLocated, caller: Caller): RolePlace => {
  const key = keyInside(located.id, 'Role');
  return key === undefined ? { namespaceId: namespaceNamed(located, caller), roleId: opaque(located.id) } : placeOf.role(key);
};

/** Where a binding is, likewise. @throws Refusal INVALID_REQUEST */
export const accessBindingPlace = (located: PolicyLocated, caller: Caller): AccessBindingPlace => {
  const key = keyInside(located.id, 'AccessBinding');
  return key === undefined ? { namespaceId: namespaceNamed(located, caller), bindingId: opaque(located.id) } : placeOf.accessBinding(key);
};
