/** Keeps what looks like a secret out of audit details, when the record is made. (iam-auth-audit 5.4) */
import type { AuditRecord } from './event.ts';

const replacement = '[REDACTED]';
const depthLimit = 16;

const sensitiveKey =
  /access[_-]?token|api[_-]?key|authorization|bearer|client[_-]?secret|cookie|credential|password|private[_-]?key|refresh[_-]?token|secret|session[_-]?cookie|token|body|content|message|prompt|text|transcript/i;
/** Such members name or count a thing, and are not the thing. */
const naming = /(?:ids?|ref|reference|names?|kind|count)$/i;
/** Credentials by their own form, ours included. */
const sensitiveValue = /\bBearer\s+\S+|\b(?:sk|ghp|gho|xox[abprs])-[\w-]{8,}|\bocccli_\S+|\bexk[._]\S+/gi;
const controlCharacters = /[\u0000-\u001f\u007f]/g;
const dropped = new Set(['__proto__', 'constructor', 'prototype']);

const redactedValue = (value: unknown, depth: number): unknown => {
  if (typeof value === 'string') return value.replace(controlCharacters, ' ').replace(sensitiveValue, replacement);
  if (typeof value !== 'object' || value === null) return value;
  if (depth > depthLimit) return replacement;
  if (value instanceof Error) return value.name;
  if (Array.isArray(value)) return value.map((item) => redactedValue(item, depth + 1));
  return redactedMembers(value, depth);
};

const redactedMembers = (object: object, depth: number): Readonly<Record<string, unknown>> =>
  Object.fromEntries(
    Object.entries(object)
      .filter(([key]) => !dropped.has(key))
      .map(([key, value]: [string, unknown]) => [key, sensitiveKey.test(key) && !naming.test(key) ? replacement : redactedValue(value, depth + 1)]),
  );

/** The record with details as it may carry them: sensitive members and values replaced, control characters made spaces, nothing deeper than 16. */
export const redacted = (audit: AuditRecord): AuditRecord => (audit.details === undefined ? audit : { ...audit, details: redactedMembers(audit.details, 1) });
