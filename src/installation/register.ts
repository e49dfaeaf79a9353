/** The Installation's register: a Namespace's name is taken once and never given again. (rest-contract 3.2) */
import { Map } from 'immutable';
import type { Decider } from '../kernel/decider.ts';
import { Refusal } from '../kernel/errors.ts';
import type { RegisterEvent } from './messages.ts';

export interface RegisterState {
  /** Holder of each Namespace name. */
  readonly names: Map<string, string>;
}

export interface RegisterCommand {
  readonly type: 'TakeNamespaceName' | 'ReleaseNamespaceName';
  readonly namespaceId: string;
  readonly name: string;
}

/** The name has a holder, which may be an intent that never became a Namespace. */
export class NameTaken extends Refusal {
  readonly holderId: string;

  constructor(holderId: string) {
    super('RESOURCE_CONFLICT', 'The name is already used by another Namespace, or was by a deleted one');
    this.holderId = holderId;
  }
}

export const registerDecider: Decider<RegisterState, RegisterCommand, RegisterEvent> = {
  initial: { names: Map() },
  decide: ({ names }, { type, namespaceId, name }) => {
    const holder = names.get(name);
    if (type === 'ReleaseNamespaceName') return holder === namespaceId ? [{ type: 'NamespaceNameReleased', data: { namespaceId, name } }] : [];
    if (holder === namespaceId) return [];
    return holder === undefined ? [{ type: 'NamespaceNameTaken', data: { namespaceId, name } }] : new NameTaken(holder);
  },
  evolve: ({ names }, { type, data: { namespaceId, name } }) => ({
    names: type === 'NamespaceNameTaken' ? names.set(name, namespaceId) : names.delete(name),
  }),
};
