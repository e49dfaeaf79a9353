/** Accounts of people: private rows that hold the email and the password's hash, and count only while the history knows their Principal. (R3, failure scenario 19) */
import type { Policy } from '../iam/policy.ts';

export interface Account {
  readonly userId: string;
  readonly principalId: string;
  /** In lower case. */
  readonly email: string;
  readonly name: string;
  readonly passwordHash: string;
  /** Public; which password it is. Null for the first one. */
  readonly passwordId: string | null;
}

/** An account with its first password. */
export type NewAccount = Omit<Account, 'passwordId'>;

export interface AccountRows {
  /** Written before the event that names its Principal. An email has one row; `founding` rows, which race for the one birth of the Installation, are not counted. Answers false when it is taken. */
  insert(account: NewAccount, options?: { readonly founding?: boolean }): Promise<boolean>;
  /** Several while some of them are of accounts that never came to be. */
  byEmail(email: string): Promise<readonly Account[]>;
  /** Those of accounts that never came to be are among them. */
  all(): Promise<readonly Account[]>;
  byPrincipal(principalId: string): Promise<Account | undefined>;
  /** Changes the password to the one the history names already, and ends every session of the account; answers how many. */
  replacePassword(userId: string, password: Pick<Account, 'passwordHash'> & { readonly passwordId: string }): Promise<number>;
  erase(userId: string): Promise<void>;
  /** Accounts whose row is older than this. */
  olderThan(ageMs: number): Promise<readonly Pick<Account, 'userId' | 'principalId'>[]>;
}

/** Who vouches for the Principals of these accounts. */
export const localIssuer = 'local';

export const canonicalEmail = (email: string): string => email.toLowerCase();

/** The account with an email that the policy knows. */
export const accountNamed = async (rows: Pick<AccountRows, 'byEmail'>, { identities }: Policy, email: string): Promise<Account | undefined> =>
  (await rows.byEmail(canonicalEmail(email))).find(({ principalId }) => identities.get(principalId)?.kind === 'principal');

/** Whether a password is the one the history names last for a Principal: what a database that went back remembers of an older one opens nothing. (failure scenario 9) */
export const isCurrentPassword = ({ passwords }: Policy, { principalId, passwordId }: Pick<Account, 'principalId' | 'passwordId'>): boolean =>
  (passwords.get(principalId) ?? null) === passwordId;
