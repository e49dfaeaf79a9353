/**
 * The rule of the last administrator: a change is refused that leaves nobody who holds `installation:administer` and can
 * come in. Who holds it and has neither a password nor a usable key could not mend anything. The operator of the host is
 * always the way back. (iam-auth-audit 4.4)
 */
import { isRefusal, type Decision } from '../kernel/decider.ts';
import { Refusal } from '../kernel/errors.ts';
import { isCurrentPassword, type Account } from '../sign-in/accounts.ts';
import { ref } from './authorizer.ts';
import { evaluate } from './evaluate.ts';
import type { IamEvent } from './messages.ts';
import { evolvePolicy, type Identity, type Policy } from './policy.ts';

/** What there is to come in with: private rows, which count only while the history names them. */
export interface WaysIn {
  readonly accounts: readonly Pick<Account, 'principalId' | 'passwordId'>[];
  /** Keys whose hash is kept. */
  readonly keyIds: ReadonlySet<string>;
}

export type ReadWaysIn = () => Promise<WaysIn>;

/** A key that expires is no change, and nobody is asked: it counts until then. */
const canComeIn = (policy: Policy, { id, kind, agentId }: Identity, { accounts, keyIds }: WaysIn, nowMs: number): boolean => {
  if (kind === 'principal') return accounts.some((account) => account.principalId === id && isCurrentPassword(policy, account));
  return agentId === undefined && policy.keys.some((key) => key.servicePrincipalId === id && keyIds.has(key.keyId) && Date.parse(key.expiresAt) > nowMs);
};

/** What was decided, or the refusal of what takes the last administrator away; where there is none already, nothing is. */
export const keepingAdministrator = (
  before: Policy,
  decision: Decision<IamEvent>,
  { installationId, waysIn, nowMs }: { readonly installationId: string; readonly waysIn: WaysIn; readonly nowMs: number },
): Decision<IamEvent> => {
  const hasOne = (policy: Policy): boolean =>
    policy.identities.some((identity) => evaluate(policy, identity.id, 'administer', ref.installation(installationId)).allowed && canComeIn(policy, identity, waysIn, nowMs));
  if (isRefusal(decision) || !hasOne(before)) return decision;
  const after = decision.reduce((policy, event) => evolvePolicy(policy, event, { occurredAt: '' }), before);
  return hasOne(after) ? decision : new Refusal('RESOURCE_CONFLICT', 'The last administrator stays: nobody with a password or a usable key would hold installation:administer any more');
};
