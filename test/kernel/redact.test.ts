/** What audit details may not carry, and what they may although it sounds alike. (iam-auth-audit 5.4) */
import { expect, it } from 'vitest';
import type { AuditRecord } from '../../src/kernel/event.ts';
import { redacted } from '../../src/kernel/redact.ts';

const record: AuditRecord = { kind: 'mutation', action: 'openclaw.agents.create', resource: { kind: 'agent', id: 'agt_1' }, outcome: 'success' };
const detailsOf = (details: Readonly<Record<string, unknown>>) => redacted({ ...record, details }).details;

it.each(['access_token', 'accessToken', 'API-KEY', 'authorization', 'bearer', 'clientSecret', 'cookie', 'credential', 'adminPassword', 'private_key', 'providerToken', 'refresh-token', 'secret', 'sessionCookie', 'token', 'body', 'fileContent', 'message', 'prompt', 'text', 'transcript'])(
  'the member %s is replaced, however deep',
  (key) => {
    expect(detailsOf({ [key]: 'x', inner: [{ [key]: { y: 1 } }] })).toEqual({ [key]: '[REDACTED]', inner: [{ [key]: '[REDACTED]' }] });
  },
);

it.each(['secretId', 'secretIds', 'tokenCount', 'credentialKind', 'messageRef', 'cookieName', 'fileNames', 'contentReference', 'principalId', 'attemptCount', 'final'])('the member %s stays', (key) => {
  expect(detailsOf({ [key]: 'x' })).toEqual({ [key]: 'x' });
});

it.each(['Bearer abc.def', 'sk-12345678', 'ghp-abcdefgh1', 'gho-abcdefgh', 'xoxb-123-456-78', 'occcli_abc', 'exk.key_1.secret'])('the value %s is replaced inside any text', (value) => {
  expect(detailsOf({ reason: `before ${value} after` })).toEqual({ reason: 'before [REDACTED] after' });
});

it('keeps the rest in shape: no control characters, no depth without end, no members of the prototype', () => {
  const cycle: Record<string, unknown> = { reason: 'line\nbreak' };
  cycle['again'] = cycle;
  expect(JSON.stringify(detailsOf(cycle))).toMatch(/^\{"reason":"line break","again":\{.*"\[REDACTED\]"\}+$/);
  expect(detailsOf({ error: new TypeError('secret of the sea'), constructor: 1, prototype: 2, n: 1, yes: true, none: null })).toEqual({ error: 'TypeError', n: 1, yes: true, none: null });
  expect(redacted(record)).toBe(record);
});
