/** Canonical JSON text (RFC 8785): the one byte form in which events are stored, digested and hashed. */
import { createHash } from 'node:crypto';
import canonicalize from 'canonicalize';

export type Json = string | number | boolean | null | readonly Json[] | { readonly [key: string]: Json };

/** Canonical text of a JSON value; members with `undefined` values are left out. */
export const canonicalText = (value: unknown): string => canonicalize(value) ?? 'null';

/** SHA-256 of a text, in lower-case hex. */
export const sha256 = (text: string): string => createHash('sha256').update(text).digest('hex');

/** Digest of a JSON value, member order aside. */
export const digestOf = (value: unknown): string => sha256(canonicalText(value));
