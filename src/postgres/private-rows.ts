/** Private rows in PostgreSQL: key hashes, accounts, sessions, and which Installation this database belongs to. (R3, failure scenario 19) */
import type { Pool } from 'pg';
import type { KeyRows } from '../iam/keys.ts';
import type { ReadWaysIn } from '../iam/last-administrator.ts';
import type { InstallationRow } from '../installation/bootstrap.ts';
import { unavailable } from '../kernel/errors.ts';
import { newId } from '../kernel/ids.ts';
import type { Account, AccountRows } from '../sign-in/accounts.ts';
import type { FoundSession, SessionRows } from '../sign-in/sessions.ts';

/** Where every process hears that a key's row is gone. */
export const keyErasedChannel = 'service_key_erased';

const isOlder = `created_at < clock_timestamp() - $1 * interval '1 millisecond'`;

export const createKeyRows = (pool: Pool): KeyRows & { eraseOfPrincipal(servicePrincipalId: string): Promise<void> } => ({
  insert: async (keyId, servicePrincipalId, secretHash) => {
    await pool.query('insert into service_key (key_id, service_principal_id, secret_hash) values ($1, $2, $3)', [keyId, servicePrincipalId, secretHash]);
  },
  secretHash: async (keyId) => {
    const { rows } = await pool.query<{ secret_hash: Buffer }>('select secret_hash from service_key where key_id = $1', [keyId]);
    return rows[0]?.secret_hash;
  },
  erase: async (keyId) => {
    await pool.query(`with erased as (delete from service_key where key_id = $1 returning key_id) select pg_notify('${keyErasedChannel}', '') from erased`, [keyId]);
  },
  olderThan: async (ageMs) => {
    const { rows } = await pool.query<{ key_id: string }>(`select key_id from service_key where ${isOlder}`, [ageMs]);
    return rows.map(({ key_id }) => key_id);
  },
  eraseOfPrincipal: async (servicePrincipalId) => {
    await pool.query('delete from service_key where service_principal_id = $1', [servicePrincipalId]);
  },
});

const accountColumns = 'user_id as "userId", principal_id as "principalId", email, name, password_hash as "passwordHash", password_id as "passwordId"';

export const createAccountRows = (pool: Pool): AccountRows => ({
  insert: async ({ userId, principalId, email, name, passwordHash }, { founding = false } = {}) => {
    const { rowCount } = await pool.query(
      'insert into account (user_id, principal_id, email, name, password_hash, founding) values ($1, $2, $3, $4, $5, $6) on conflict (email) where not founding do nothing',
      [userId, principalId, email, name, passwordHash, founding],
    );
    return rowCount === 1;
  },
  byEmail: async (email) => (await pool.query<Account>(`select ${accountColumns} from account where email = $1`, [email])).rows,
  all: async () => (await pool.query<Account>(`select ${accountColumns} from account`)).rows,
  byPrincipal: async (principalId) => (await pool.query<Account>(`select ${accountColumns} from account where principal_id = $1`, [principalId])).rows[0],
  replacePassword: async (userId, { passwordId, passwordHash }) => {
    // In this order: a sign-in with the old password has its session already, or finds the password changed.
    await pool.query('update account set password_hash = $2, password_id = $3 where user_id = $1', [userId, passwordHash, passwordId]);
    return (await pool.query('delete from session where user_id = $1', [userId])).rowCount ?? 0;
  },
  erase: async (userId) => {
    await pool.query('delete from account where user_id = $1', [userId]);
  },
  olderThan: async (ageMs) => (await pool.query<Pick<Account, 'userId' | 'principalId'>>(`select user_id as "userId", principal_id as "principalId" from account where ${isOlder}`, [ageMs])).rows,
});

export const createSessionRows = (pool: Pool): SessionRows => ({
  insert: async ({ sessionKey, tokenHash, userId, passwordHash }, lifetimeMs) => {
    await pool.query('delete from session where expires_at <= clock_timestamp()');
    const { rowCount } = await pool.query(
      `insert into session (session_key, token_hash, user_id, password_id, expires_at)
       select $1, $2, user_id, password_id, clock_timestamp() + $5 * interval '1 millisecond' from account where user_id = $3 and password_hash = $4 for share`,
      [sessionKey, tokenHash, userId, passwordHash, lifetimeMs],
    );
    return rowCount === 1;
  },
  find: async (tokenHash) => {
    const { rows } = await pool.query<FoundSession & { isCompared: boolean }>(
      `select session_key as "sessionKey", user_id as "userId", principal_id as "principalId", email, name, session.password_id as "passwordId",
              exists (select from store_identity where incarnation = database_incarnation()) as "isCompared"
         from session join account using (user_id) where token_hash = $1 and expires_at > clock_timestamp()`,
      [tokenHash],
    );
    if (rows[0]?.isCompared === false) throw unavailable('sessions were not compared with the history since another server took the place of the database');
    return rows[0];
  },
  erase: async (sessionKey) => (await pool.query('delete from session where session_key = $1', [sessionKey])).rowCount === 1,
  eraseMany: async ({ sessionKeys, principalIds }) =>
    (await pool.query('delete from session where session_key = any($1) or user_id in (select user_id from account where principal_id = any($2))', [sessionKeys, principalIds])).rowCount ?? 0,
  eraseAll: async () => (await pool.query('delete from session')).rowCount ?? 0,
});

export const createWaysIn = (pool: Pool): ReadWaysIn => async () => {
  const [accounts, keys] = await Promise.all([createAccountRows(pool).all(), pool.query<{ key_id: string }>('select key_id from service_key')]);
  return { accounts, keyIds: new Set(keys.rows.map((row) => row.key_id)) };
};

/** The id this database was given first; every process that asks gets the same one. */
export const createInstallationRow = (pool: Pool): InstallationRow => ({
  id: async () => {
    await pool.query('insert into installation (id) values ($1) on conflict do nothing', [newId('ins')]);
    const { rows } = await pool.query<{ id: string }>('select id from installation');
    return rows[0]!.id;
  },
});
