/** The accounts of an Installation without external sign-in. (iam-auth-audit 1.7 and 1.8, rest-contract 3.10) */
import { setTimeout as delay } from 'node:timers/promises';
import { iam } from '../aggregates.ts';
import { contextOf, withoutAudit, type Core } from '../core.ts';
import { forbidden, ref, type Operation } from '../iam/authorizer.ts';
import type { Caller } from '../iam/caller.ts';
import { createChangePolicy } from '../iam/change.ts';
import { coversRole } from '../iam/coverage.ts';
import { iamDecider, type IamCommand } from '../iam/iam.ts';
import type { Policy } from '../iam/policy.ts';
import { isRefusal } from '../kernel/decider.ts';
import { Refusal } from '../kernel/errors.ts';
import { newId } from '../kernel/ids.ts';
import type { Sent } from '../kernel/parse.ts';
import type { CommandContext } from '../runtime/streams.ts';
import { accountNamed, canonicalEmail, localIssuer, type AccountRows, type NewAccount } from './accounts.ts';
import type { CreateAccountInput } from './input.ts';
import type { Passwords } from './passwords.ts';

export interface AccountView {
  readonly id: string;
  readonly email: string;
  readonly name: string;
  readonly principalId: string;
}

/** @throws Refusal FORBIDDEN without `installation:administer`, and for a Role that may do more than the caller */
export interface AccountService {
  /**
   * An account, its Principal and, with a `roleId`, the binding to that Role of the Installation.
   * @throws Refusal RESOURCE_CONFLICT for a taken email, INVALID_REQUEST for an unknown Role
   */
  create(caller: Caller, sent: Sent<CreateAccountInput>): Promise<AccountView>;
  /**
   * What only an Installation with external sign-in can do to an account. `verb` is what the audit calls it.
   * @throws Refusal RESOURCE_CONFLICT always, once the caller may ask
   */
  control(caller: Caller, verb: string, sent?: Sent<unknown>): Promise<never>;
}

/** How long another creation with the same email may take before it is taken for dead. */
const graceMs = 2_000;

class GrantsNotCovered extends Refusal {}
const notCovered = (): Refusal => new GrantsNotCovered('FORBIDDEN', forbidden().message);

const taken = (): Refusal => new Refusal('RESOURCE_CONFLICT', 'Another account has this email');

export const createAccountService = ({
  core,
  accountRows,
  passwords,
  installationId,
}: {
  readonly core: Core;
  readonly accountRows: AccountRows;
  readonly passwords: Pick<Passwords, 'hash'>;
  readonly installationId: string;
}): AccountService => {
  const { streams, authorizer } = core;
  const changePolicy = createChangePolicy(core);
  const resource = ref.installation(installationId);
  const permissions = [['administer', resource]] as const;
  const operationOf = (verb: string): Operation => ({ action: `openclaw.auth.accounts.${verb}`, resource });
  const authorize = (caller: Caller, operation: Operation) => authorizer.require(caller, operation, permissions);

  /** Writes the row. One in its way whose Principal does not come to be is fenced off, so that its late event cannot follow. (failure scenarios 1 and 19) */
  const reserve = async (account: NewAccount, context: CommandContext): Promise<void> => {
    for (const giveUpAt = performance.now() + graceMs; ; await delay(50)) {
      const { state } = await authorizer.current();
      if ((await accountNamed(accountRows, state, account.email)) !== undefined) throw taken();
      if (await accountRows.insert(account)) return;
      if (performance.now() < giveUpAt) continue;
      for (const { principalId, userId } of await accountRows.byEmail(account.email)) {
        const fenced = await streams.execute(iam, '', { type: 'AbandonPrincipalCreation', principalId }, context);
        if (fenced.state.removed.has(principalId)) await accountRows.erase(userId);
      }
    }
  };

  return {
    create: async (caller, sent) => {
      const creating = operationOf('create');
      const { email, password, name, roleId, github } = await authorizer.receive(caller, creating, permissions[0], sent);
      const grant = await authorize(caller, creating);
      const [userId, principalId] = [newId('usr'), newId('prn')];
      const role = roleId === undefined ? undefined : { roleId, bindingId: newId('bnd') };
      const command: IamCommand = { type: 'CreatePrincipal', principalId, issuer: localIssuer, subject: userId, ...(role !== undefined && { role }) };
      const decide = (policy: Policy) => {
        const decision = iamDecider.decide(policy, command);
        return isRefusal(decision) || roleId === undefined || coversRole(policy, caller.actor.principalId, roleId) ? decision : notCovered();
      };
      const recorded = async (refusal: unknown): Promise<unknown> =>
        refusal instanceof GrantsNotCovered ? authorizer.denied(caller, creating, permissions[0], refusal, { roleId }, 'ACCOUNT_PRINCIPAL_GRANTS_NOT_COVERED') : refusal;
      const decision = decide((await authorizer.current(caller.arrivedAt)).state);
      if (decision instanceof Refusal) throw await recorded(decision);
      if (github !== undefined) throw new Refusal('RESOURCE_CONFLICT', 'This Installation signs in by password only');

      const address = canonicalEmail(email);
      const account: NewAccount = { userId, principalId, email: address, name: name ?? address, passwordHash: await passwords.hash(password) };
      await reserve(account, withoutAudit(contextOf(caller, creating, grant)));
      try {
        await changePolicy({ caller, operation: creating, permissions, grant, decide, about: { resource, details: { principalId, userId, ...role } } });
      } catch (refusal) {
        if (refusal instanceof Refusal && refusal.kind !== 'unavailable') await accountRows.erase(userId);
        throw await recorded(refusal);
      }
      return { id: userId, email: address, name: account.name, principalId };
    },

    control: async (caller, verb, sent) => {
      const controlling = operationOf(verb);
      if (sent !== undefined) await authorizer.receive(caller, controlling, permissions[0], sent);
      await authorize(caller, controlling);
      throw new Refusal('RESOURCE_CONFLICT', 'Accounts are controlled where external sign-in is configured');
    },
  };
};
