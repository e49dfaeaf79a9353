/** Private rows in PostgreSQL: key hashes, accounts, and which Installation this database belongs to. (R3, failure scenario 19) */
import type { Pool } from 'pg';
import type { KeyRows } from '../iam/keys.ts';
import type { AccountRows, InstallationRow } from '../installation/bootstrap.ts';
import { newId } from '../kernel/ids.ts';

export const createKeyRows = (pool: Pool): KeyRows & { eraseOfPrincipal(servicePrincipalId: string): Promise<void> } => ({
  insert: async (keyId, servicePrincipalId, secretHash) => {
    await pool.query('insert into service_key (key_id, service_principal_id, secret_hash) values ($1, $2, $3)', [keyId, servicePrincipalId, secretHash]);
  },
  secretHash: async (keyId) => {
    const { rows } = await pool.query<{ secret_hash: Buffer }>('select secret_hash from service_key where key_id = $1', [keyId]);
    return rows[0]?.secret_hash;
  },
  erase: async (keyId) => {
    await pool.query('delete from service_key where key_id = $1', [keyId]);
  },
  eraseOfPrincipal: async (servicePrincipalId) => {
    await pool.query('delete from service_key where service_principal_id = $1', [servicePrincipalId]);
  },
});

export const createAccountRows = (pool: Pool): AccountRows => ({
  insert: async ({ userId, principalId, email, name, passwordHash }) => {
    await pool.query('insert into account (user_id, principal_id, email, name, password_hash) values ($1, $2, $3, $4, $5)', [userId, principalId, email, name, passwordHash]);
  },
  erase: async (userId) => {
    await pool.query('delete from account where user_id = $1', [userId]);
  },
});

/** The id this database was given first; every process that asks gets the same one. */
export const createInstallationRow = (pool: Pool): InstallationRow => ({
  id: async () => {
    await pool.query('insert into installation (id) values ($1) on conflict do nothing', [newId('ins')]);
    const { rows } = await pool.query<{ id: string }>('select id from installation');
    return rows[0]!.id;
  },
});
