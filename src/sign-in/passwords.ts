/** Passwords: how they are hashed, and how one is checked with the same work whoever it belongs to. (iam-auth-audit 6) */
import { randomBytes, scrypt, timingSafeEqual } from 'node:crypto';
import { promisify } from 'node:util';
import { unavailable } from '../kernel/errors.ts';

interface Cost {
  /** Logarithm of the cost. */
  readonly ln: number;
  readonly r: number;
  readonly p: number;
}

/** Derives the hash of a password; replaced by tests that count. */
export type Derive = (password: string, salt: Buffer, length: number, cost: Cost) => Promise<Buffer>;

const current: Cost = { ln: 14, r: 8, p: 5 };
const hashBytes = 64;
/** Half of the threads Node has for such work, so that files and names are still looked up during a flood. */
const atOnce = 2;
const waitingLimit = 64;

const scryptAsync = promisify<string, Buffer, number, { N: number; r: number; p: number }, Buffer>(scrypt);
const byScrypt: Derive = (password, salt, length, { ln, r, p }) => scryptAsync(password, salt, length, { N: 2 ** ln, r, p });

const base64 = (bytes: Buffer): string => bytes.toString('base64').replaceAll('=', '');
const encode = ({ ln, r, p }: Cost, salt: Buffer, hash: Buffer): string => `$scrypt$ln=${ln},r=${r},p=${p}$${base64(salt)}$${base64(hash)}`;
const stored = /^\$scrypt\$ln=(\d+),r=(\d+),p=(\d+)\$([A-Za-z0-9+/]+)\$([A-Za-z0-9+/]+)$/;

/** What an unknown email is checked against. */
const nobody = encode(current, randomBytes(16), randomBytes(hashBytes));

export interface Passwords {
  /** The text to keep of a password, in the PHC string format: algorithm, cost, salt and hash. */
  hash(password: string): Promise<string>;
  /**
   * Whether it is the password of a kept text. Without one it is not, after the same work.
   * @throws Refusal DEPENDENCY_UNAVAILABLE when too many wait already
   */
  verify(password: string, kept: string | undefined): Promise<boolean>;
}

/** A password no one can guess. */
export const randomPassword = (): string => randomBytes(18).toString('base64url');

export const createPasswords = (derive: Derive = byScrypt): Passwords => {
  let running = 0;
  const waiting: (() => void)[] = [];

  const inTurn: Derive = async (...work) => {
    if (running >= atOnce) {
      if (waiting.length >= waitingLimit) throw unavailable('password hashing');
      await new Promise<void>((resolve) => waiting.push(resolve));
    } else running += 1;
    try {
      return await derive(...work);
    } finally {
      const next = waiting.shift();
      if (next === undefined) running -= 1;
      else next();
    }
  };

  return {
    hash: async (password) => {
      const salt = randomBytes(16);
      return encode(current, salt, await inTurn(password, salt, hashBytes, current));
    },
    verify: async (password, kept) => {
      const known = kept === undefined ? null : stored.exec(kept);
      const [, ln, r, p, salt = '', hash = ''] = known ?? stored.exec(nobody)!;
      const expected = Buffer.from(hash, 'base64');
      const found = await inTurn(password, Buffer.from(salt, 'base64'), expected.length, { ln: Number(ln), r: Number(r), p: Number(p) });
      return timingSafeEqual(found, expected) && known !== null;
    },
  };
};
