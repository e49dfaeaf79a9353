/** Accounts of people: private rows that hold the email and the password's hash, and count only while the history knows their Principal. (R3, failure scenario 19) */
import type { Policy } from '../iam/policy.ts';

export interface Account {
  readonly userId: string;
  readonly principalId: string;
  /** In lower case. */
  readonly email: string;
  readonly name: string;
  readonly passwordHash: string;
}

export interface AccountRows {
  /** Written before the event that names its Principal. An email has one row; `founding` rows, which race for the one birth of the Installation, are not counted. Answers false when it is taken. */
  insert(account: Account, options?: { readonly founding?: boolean }): Promise<boolean>;
  /** Several while some of them are of accounts that never came to be. */
  byEmail(email: string): Promise<readonly Account[]>;
  /** Those of accounts that never came to be are among them. */
  all(): Promise<readonly Account[]>;
  byPrincipal(principalId: string): Promise<Account | undefined>;
  /** Changes the password and ends every session of the account; answers how many. */
  replacePassword(userId: string, passwordHash: string): Promise<number>;
  erase(userId: string): Promise<void>;
}

/** Who vouches for the Principals of these accounts. */
export const localIssuer = 'local';

export const canonicalEmail = (email: string): string => email.toLowerCase();

/** The account with an email that the policy knows. */
export const accountNamed = async (rows: Pick<AccountRows, 'byEmail'>, { identities }: Policy, email: string): Promise<Account | undefined> =>
  (await rows.byEmail(canonicalEmail(email))).find(({ principalId }) => identities.get(principalId)?.kind === 'principal');
