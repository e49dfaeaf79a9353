/** Branded identifiers: a prefix and a lower-case UUIDv4, so that an AgentId cannot pass for a RevisionId. (rest-contract 1.4) */
import { createHash, randomUUID } from 'node:crypto';

declare const brand: unique symbol;
type Branded<Name extends string> = string & { readonly [brand]: Name };

export type InstallationId = Branded<'InstallationId'>;
export type NamespaceId = Branded<'NamespaceId'>;
export type AgentId = Branded<'AgentId'>;
export type RevisionId = Branded<'RevisionId'>;
export type ConfigurationId = Branded<'ConfigurationId'>;
export type PrincipalId = Branded<'PrincipalId'>;

interface IdByPrefix {
  ins: InstallationId;
  ns: NamespaceId;
  agt: AgentId;
  rev: RevisionId;
  cfg: ConfigurationId;
  /** A human principal. */
  prn: PrincipalId;
  /** A service principal; opaque, never derived from an Agent's id. */
  spn: PrincipalId;
  /** An account of a person. */
  usr: string;
  /** A password of an account. */
  pwd: string;
  req: string;
  aud: string;
  role: string;
  bnd: string;
  grp: string;
  rst: string;
  key: string;
  opr: string;
}

export type Prefix = keyof IdByPrefix;

const uuid4 = '[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}';

/** The JSON Schema pattern of an id with this prefix. */
export const idPattern = (prefix: Prefix): string => `^${prefix}_${uuid4}$`;

/** The JSON Schema pattern of an id that clients do not take apart: ids of policy and of accounts are what others made them. (rest-contract 1.4) */
export const opaquePattern = '^[^\\u0000-\\u001f\\u007f]{1,200}$';

/** A fresh random id. */
export const newId = <P extends Prefix>(prefix: P): IdByPrefix[P] => `${prefix}_${randomUUID()}` as IdByPrefix[P];

const patterns = new Map<Prefix, RegExp>();

/** Whether a text is an id with this prefix, exactly as a path parameter has to be written. */
export const isId = <P extends Prefix>(prefix: P, text: string): text is IdByPrefix[P] & string => {
  let pattern = patterns.get(prefix);
  if (pattern === undefined) patterns.set(prefix, (pattern = new RegExp(idPattern(prefix))));
  return pattern.test(text);
};

/** An id that the same parts always give, shaped as a UUIDv4: the lock of an idempotent creation. (architecture 10) */
export const derivedId = <P extends Prefix>(prefix: P, ...parts: readonly string[]): IdByPrefix[P] => {
  const bytes = createHash('sha256').update(JSON.stringify(parts)).digest().subarray(0, 16);
  bytes[6] = (bytes[6]! & 0x0f) | 0x40;
  bytes[8] = (bytes[8]! & 0x3f) | 0x80;
  const hex = bytes.toString('hex');
  return `${prefix}_${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20)}` as IdByPrefix[P];
};
