/** What the history says of ended sessions, where this build can read it and where not. (failure scenarios 7 and 9) */
import { expect, it } from 'vitest';
import { endSessionsSince } from '../../src/sign-in/ended-sessions.ts';
import { createInMemoryEventStore } from '../support/in-memory-event-store.ts';
import { prefix, writeHistory } from '../support/write-history.ts';

it('ends those that were named, those of a person where none was, and all where it cannot tell', async () => {
  const store = createInMemoryEventStore();
  const history = writeHistory(store);
  const asked: unknown[] = [];
  const sessionRows = {
    eraseMany: async (ended: object) => (asked.push(ended), 1),
    eraseAll: async () => (asked.push('all'), 2),
  };
  const endSince = endSessionsSince({ store, prefix, sessionRows });

  const before = await history.appendRaw('audit-one', 'SignedOut', { principalId: 'prn_0', sessionKey: 'passed already' });
  await history.appendRaw('audit-one', 'SignedOut', { principalId: 'prn_1', sessionKey: 'key' });
  const last = await history.appendRaw('audit-two', 'SignedOut', { principalId: 'prn_2' });
  expect(await endSince(before)).toBe(1);
  expect(asked.splice(0)).toEqual([{ sessionKeys: ['key'], principalIds: ['prn_2'] }]);

  await history.appendRaw('audit-two', 'SignedOut', { principalId: 'prn_2', sessionKey: 'key' }, { schema: 2 });
  expect(await endSince(last)).toBe(2);
  expect(asked).toEqual(['all']);
});
