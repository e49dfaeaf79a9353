/** Service keys: their text, the hash that is kept of it, and who a presented key is. (iam-auth-audit 1.6, failure scenario 9) */
import { createHash, randomBytes, timingSafeEqual } from 'node:crypto';
import { newId } from '../kernel/ids.ts';
import type { ServiceKey } from './messages.ts';
import type { Policy } from './policy.ts';

const prefix = 'exk';

/** Private rows of keys. A row counts only while the history names its key. */
export interface KeyRows {
  /** Written before the event that issues the key. */
  insert(keyId: string, servicePrincipalId: string, secretHash: Buffer): Promise<void>;
  /** The hash of a key's secret part; undefined when there is no row. */
  secretHash(keyId: string): Promise<Buffer | undefined>;
  erase(keyId: string): Promise<void>;
  /** Ids of the keys whose row is older than this. */
  olderThan(ageMs: number): Promise<readonly string[]>;
}

const hashOf = (secret: string): Buffer => createHash('sha256').update(secret).digest();

/** A fresh key: its id, its text (shown once) and the hash to keep. */
export const newKey = (): { readonly keyId: string; readonly text: string; readonly secretHash: Buffer } => {
  const keyId = newId('key');
  const secret = randomBytes(32).toString('base64url');
  return { keyId, text: `${prefix}.${keyId}.${secret}`, secretHash: hashOf(secret) };
};

const keyText = /^exk\.(key_[0-9a-f-]{36})\.([A-Za-z0-9_-]{43})$/;

export interface Keys extends Pick<KeyRows, 'insert' | 'erase' | 'olderThan'> {
  /** The key a text is, if its hash matches and the policy has it issued, neither revoked nor expired. */
  verify(text: string, policy: Policy, nowMs: number): Promise<ServiceKey | undefined>;
  /** To be called when a row was erased, by whichever process: one whose revocation could not be recorded is not in the history. */
  forget(): void;
}

const cacheLimit = 10_000;

export const createKeys = (rows: KeyRows): Keys => {
  /** Hashes never change under their id, and only the history says whether a key still counts. */
  let hashes = new Map<string, Buffer>();
  const forget = (): void => {
    hashes = new Map();
  };
  return {
    forget,
    olderThan: (ageMs) => rows.olderThan(ageMs),
    insert: (keyId, servicePrincipalId, secretHash) => rows.insert(keyId, servicePrincipalId, secretHash),
    erase: async (keyId) => {
      await rows.erase(keyId);
      forget();
    },
    verify: async (text, policy, nowMs) => {
      const [, keyId, secret] = keyText.exec(text) ?? [];
      if (keyId === undefined || secret === undefined) return undefined;
      const key = policy.keys.get(keyId);
      if (key === undefined || Date.parse(key.expiresAt) <= nowMs) return undefined;
      const remembered = hashes; // what was read before a row was erased must not be remembered after it
      const known = remembered.get(keyId) ?? (await rows.secretHash(keyId));
      if (known === undefined || !timingSafeEqual(known, hashOf(secret))) return undefined;
      if (remembered.size >= cacheLimit) remembered.clear();
      remembered.set(keyId, known);
      return key;
    },
  };
};
