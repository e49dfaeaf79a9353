/** `exuvia admin reset-password`: on the host, also beside a running server, somebody who has lost his password gets a new one. (iam-auth-audit 4.4) */
import { mkdir, rename } from 'node:fs/promises';
import { join } from 'node:path';
import { iam } from '../aggregates.ts';
import { readConfig } from '../config.ts';
import { ref } from '../iam/authorizer.ts';
import type { Policy } from '../iam/policy.ts';
import { writePrivately } from '../installation/bootstrap.ts';
import { Fault } from '../kernel/errors.ts';
import { newId } from '../kernel/ids.ts';
import { openHostStores } from '../open-stores.ts';
import { createAccountRows } from '../postgres/private-rows.ts';
import { accountNamed, canonicalEmail, type Account, type AccountRows, type NewAccount } from '../sign-in/accounts.ts';
import { createPasswords, randomPassword } from '../sign-in/passwords.ts';
import { createLogger } from '../telemetry/logger.ts';
import { say } from './derive.ts';

export interface ResetPasswordOptions {
  /** Of the account; without it the first administrator's. */
  readonly email?: string;
}

/** The account to reset. The first administrator's row may be lost with its database; then it is written again. @throws Fault when there is none */
const chooseAccount = async (rows: AccountRows, policy: Policy, email: string | undefined, firstEmail: string): Promise<Account> => {
  if (email !== undefined) {
    const account = await accountNamed(rows, policy, email);
    if (account === undefined) throw new Fault(`There is no account with the email ${email}`);
    return account;
  }
  if (policy.installation === null) throw new Fault('There is no Installation yet: start the server first');
  const { principalId, subject: userId } = policy.installation.administrator;
  const known = await rows.byPrincipal(principalId);
  if (known !== undefined) return known;
  const lost: NewAccount = { userId, principalId, email: canonicalEmail(firstEmail), name: 'Administrator', passwordHash: '' };
  await rows.insert(lost, { founding: true });
  return { ...lost, passwordId: null };
};

/**
 * Writes a new password to the data folder, the first administrator's to `admin.json` and another's to a file named
 * after the account, and ends every session of the account.
 * @throws Fault for stores that cannot be reached, and without such an account
 */
export const resetPassword = async ({ email }: ResetPasswordOptions): Promise<void> => {
  const config = readConfig(process.env);
  await using stack = new AsyncDisposableStack();
  const { database, installationId, streams } = await openHostStores(config, createLogger({ level: config.logLevel }), stack);
  const accountRows = createAccountRows(database.pool);
  const { state: policy } = await streams.load(iam, '');
  const account = await chooseAccount(accountRows, policy, email, config.administratorEmail);

  const password = randomPassword();
  const passwordHash = await createPasswords().hash(password);
  const isFirst = account.principalId === policy.installation?.administrator.principalId;
  const file = join(config.dataDir, `${isFirst ? 'admin' : account.userId}.json`);
  await mkdir(config.dataDir, { recursive: true, mode: 0o700 });
  await writePrivately(`${file}.new`, { email: account.email, password });
  const { principalId } = account;
  const passwordId = newId('pwd');
  // The history first: from here on the old password and its sessions open nothing, whatever a database remembers of them.
  await streams.execute(
    iam,
    '',
    { type: 'ReplacePassword', principalId, passwordId },
    {
      actor: { principalId: 'operator', kind: 'system' },
      requestId: null,
      correlationId: passwordId,
      causationId: null,
      policyRevision: null,
      audit: { kind: 'mutation', action: 'openclaw.auth.accounts.reset_password', resource: ref.installation(installationId), outcome: 'success', details: { principalId } },
    },
  );
  const ended = await accountRows.replacePassword(account.userId, { passwordId, passwordHash });
  await rename(`${file}.new`, file);
  say(`The new password is in ${file}; ${ended} ${ended === 1 ? 'session has' : 'sessions have'} ended.`);
};
