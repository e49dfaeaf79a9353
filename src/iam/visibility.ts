/** Which resources of a list a caller may see, so that pages are filtered before they are cut. (iam-auth-audit 2.5 and 8.4) */
import { nameIn, type Visibility, type VisibilityBelow } from '../runtime/reading.ts';
import type { ResourceKind } from '../kernel/event.ts';
import { isOutOfScope, type Authorizer } from './authorizer.ts';
import type { Caller } from './caller.ts';
import { evaluate, type Action } from './evaluate.ts';
import { bindingsOf, type Policy } from './policy.ts';

const nothing: Visibility = { only: [], except: [] };

/** A resource no one can have: a grant that covers it covers the whole parent. */
const anyId = '';

const visible = (policy: Policy, principalId: string, action: Action, kind: ResourceKind, namespaceId: string | undefined): Visibility => {
  const reference = (id: string) => ({ kind, id, ...(kind === 'namespace' ? { namespaceId: id } : namespaceId !== undefined && { namespaceId }) });
  const named = bindingsOf(policy, principalId).flatMap((binding) => [
    ...(binding.resourceKind === kind ? [binding.resourceId] : []),
    ...(kind === 'namespace' ? [binding.namespaceId] : []),
  ]);
  const exact = [...new Set(named)].filter((id) => id !== undefined);
  const restricted = policy.restrictions
    .valueSeq()
    .filter((restriction) => restriction.action === action && restriction.resourceKind === kind)
    .map(({ resourceId, namespaceId: place }) => resourceId ?? (kind === 'namespace' ? place : undefined))
    .filter((id) => id !== undefined)
    .filter((id) => !evaluate(policy, principalId, action, reference(id)).allowed)
    .toArray();
  if (evaluate(policy, principalId, action, reference(anyId)).allowed) return { only: undefined, except: restricted };
  const only = exact.filter((id) => evaluate(policy, principalId, action, reference(id)).allowed);
  return only.length === 0 ? nothing : { only, except: [] };
};

/** The visible part of a list; a key frozen to a Namespace sees nothing elsewhere. */
export const visibleTo = async (authorizer: Authorizer, caller: Caller, action: Action, kind: ResourceKind, namespaceId: string | undefined): Promise<Visibility> => {
  const { state } = await authorizer.current(caller.arrivedAt);
  if (isOutOfScope(state, caller)) return nothing;
  if (caller.keyNamespaceId !== undefined && caller.keyNamespaceId !== namespaceId) return nothing;
  return visible(state, caller.actor.principalId, action, kind, namespaceId);
};

/** The visible part of the lists below parents in these Namespaces. */
export const visibleBelow = async (
  authorizer: Authorizer,
  caller: Caller,
  action: Action,
  kind: ResourceKind,
  parents: readonly { readonly namespaceId: string; readonly id: string }[],
): Promise<VisibilityBelow> => {
  const namespaceIds = [...new Set(parents.map(({ namespaceId }) => namespaceId))];
  const each = await Promise.all(namespaceIds.map((namespaceId) => visibleTo(authorizer, caller, action, kind, namespaceId)));
  const whole = new Set(namespaceIds.filter((_, index) => each[index]!.only === undefined));
  return {
    parents: parents.map(({ namespaceId, id }) => ({ id, whole: whole.has(namespaceId) })),
    only: namespaceIds.flatMap((namespaceId, index) => (each[index]!.only ?? []).map((id) => nameIn(namespaceId, id))),
    except: namespaceIds.flatMap((namespaceId, index) => each[index]!.except.map((id) => nameIn(namespaceId, id))),
  };
};
