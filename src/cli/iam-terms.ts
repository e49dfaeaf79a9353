/** How the operator writes permissions, ids and places on the command line; what is wrong is one clear sentence. */
import { InvalidArgumentError } from 'commander';
import Value from 'typebox/value';
import { checkedActions, resourceKinds, type GrantedPermission } from '../iam/permissions.ts';
import type { ResourceKind } from '../kernel/event.ts';
import { isId, type Prefix } from '../kernel/ids.ts';
import { name } from '../kernel/text.ts';

const prefixOf: Partial<Readonly<Record<ResourceKind, Prefix>>> = { installation: 'ins', namespace: 'ns', configuration: 'cfg', agent: 'agt', agent_revision: 'rev' };

const kindNamed = (text: string): ResourceKind => {
  const kind = resourceKinds.find((one) => one === text);
  if (kind === undefined) throw new InvalidArgumentError(`There is no kind ${JSON.stringify(text)}; there are ${resourceKinds.join(', ')}.`);
  return kind;
};

/** Reads `agent:read`. */
export const permissionNamed = (text: string): GrantedPermission => {
  const [kindName = '', actionName, ...more] = text.split(':');
  if (actionName === undefined || more.length > 0) throw new InvalidArgumentError(`A permission is written kind:action, for example agent:read, and not ${JSON.stringify(text)}.`);
  const resourceKind = kindNamed(kindName);
  const action = checkedActions[resourceKind].find((one) => one === actionName);
  if (action === undefined) throw new InvalidArgumentError(`No operation checks ${text}; on ${resourceKind} there are ${checkedActions[resourceKind].join(', ')}.`);
  return { action, resourceKind };
};

export const permissionsNamed = (text: string, before: readonly GrantedPermission[] = []): readonly GrantedPermission[] => {
  const named = permissionNamed(text);
  return before.some(({ action, resourceKind }) => action === named.action && resourceKind === named.resourceKind) ? before : [...before, named];
};

/** An id that begins with one of these prefixes. */
export const idOf =
  (...prefixes: readonly [Prefix, ...Prefix[]]) =>
  (text: string): string => {
    if (!prefixes.some((prefix) => isId(prefix, text))) throw new InvalidArgumentError(`An id here is ${prefixes.join('_ or ')}_ and a lower-case UUID, and not ${JSON.stringify(text)}.`);
    return text;
  };

export interface Target {
  readonly resourceKind: ResourceKind;
  readonly resourceId: string;
}

/** Reads `agent:agt_…`. */
export const targetNamed = (text: string): Target => {
  const [kindName = '', resourceId = '', ...more] = text.split(':');
  if (resourceId === '' || more.length > 0) throw new InvalidArgumentError(`A resource is written kind:id, for example agent:agt_…, and not ${JSON.stringify(text)}.`);
  const resourceKind = kindNamed(kindName);
  const prefix = prefixOf[resourceKind];
  return { resourceKind, resourceId: prefix === undefined ? resourceId : idOf(prefix)(resourceId) };
};

export const daysNamed = (text: string): number => {
  const days = /^\d{1,3}$/.test(text) ? Number(text) : 0;
  if (days < 1 || days > 365) throw new InvalidArgumentError('A key lives from 1 to 365 days.');
  return days;
};

/** A name as the routes take one. */
export const nameNamed = (text: string): string => {
  if (!Value.Check(name, text)) throw new InvalidArgumentError('A name has from 1 to 200 characters, no white space around it and no control characters.');
  return text;
};

export const keyNameNamed = (text: string): string => {
  if (text.trim() === '' || text.length > 32) throw new InvalidArgumentError('The name of a key has from 1 to 32 characters.');
  return text;
};
