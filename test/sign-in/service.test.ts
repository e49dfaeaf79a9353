/** Signing in, decided: the same answer for every wrong guess, administrators who are never locked out, and nothing handed out that is not recorded. (iam-auth-audit 5.6 and 6) */
import { beforeEach, describe, expect, it } from 'vitest';
import type { AuditEvent } from '../../src/audit/messages.ts';
import { iamDecider } from '../../src/iam/iam.ts';
import type { IamEvent } from '../../src/iam/messages.ts';
import { noPolicy } from '../../src/iam/policy.ts';
import { Refusal, unavailable } from '../../src/kernel/errors.ts';
import type { Envelope } from '../../src/kernel/event.ts';
import type { Account } from '../../src/sign-in/accounts.ts';
import { createSignInLimits } from '../../src/sign-in/limits.ts';
import { createPasswords } from '../../src/sign-in/passwords.ts';
import { createSignInService, type SignInService } from '../../src/sign-in/service.ts';
import type { SessionRows } from '../../src/sign-in/sessions.ts';
import { cheaply } from '../support/sign-in.ts';
import { until } from '../support/until.ts';

const password = 'correct horse battery';
const right = { email: 'Person@Example.test', password };
const wrong = { ...right, password: 'wrong horse battery' };
const unknown = { email: 'nobody@example.test', password };
const administrator = { email: 'admin@example.test', password };
const orphan = { email: 'orphan@example.test', password };

const role = { roleId: 'role_1', permissions: [{ action: 'administer', resourceKind: 'installation' }] };
const history: readonly IamEvent[] = [
  { type: 'PrincipalCreated', data: { principalId: 'prn_person', issuer: 'local', subject: 'usr_person' } },
  { type: 'PrincipalCreated', data: { principalId: 'prn_admin', issuer: 'local', subject: 'usr_admin' } },
  { type: 'RoleCreated', data: role },
  { type: 'AccessBindingCreated', data: { bindingId: 'bnd_1', subjectKind: 'identity', subjectId: 'prn_admin', roleId: 'role_1' } },
];
const policy = history.reduce((state, event) => iamDecider.evolve(state, event, {} as Envelope), noPolicy);

let hashed: number;
let waited: number[];
let sessions: Map<string, string>;
let recorded: { readonly event: AuditEvent; readonly actor: string; readonly outcome: string }[];
let failAudit: boolean;
let failPolicy: boolean;
let replaced: boolean;
let denied: number;
let allowance: number;
/** What a wait ends with; at once unless a test holds it up. */
let waiting: () => Promise<unknown>;
let signIn: SignInService['signIn'];

beforeEach(async () => {
  hashed = 0;
  waited = [];
  sessions = new Map();
  recorded = [];
  failAudit = false;
  failPolicy = false;
  replaced = false;
  denied = 0;
  allowance = Infinity;
  waiting = () => Promise.resolve();
  const passwords = createPasswords((...work) => (hashed++, cheaply(...work)));
  const accounts: Account[] = [];
  for (const [name, { email }] of Object.entries({ person: right, admin: administrator, orphan }))
    accounts.push({ userId: `usr_${name}`, principalId: `prn_${name}`, email: email.toLowerCase(), name, passwordHash: await passwords.hash(password), passwordId: null });
  hashed = 0;
  const sessionRows: Pick<SessionRows, 'insert' | 'erase'> = {
    insert: async ({ sessionKey, userId }) => !replaced && sessions.set(sessionKey, userId).has(sessionKey),
    erase: async (sessionKey) => sessions.delete(sessionKey),
  };
  const service = createSignInService({
    core: {
      authorizer: {
        current: async () => {
          if (failPolicy) throw unavailable('policy');
          return { state: policy, revision: 3 };
        },
      },
      audit: {
        record: async ({ actor }: { actor: { principalId: string } }, event: AuditEvent, { outcome }: { outcome: string }) => {
          if (failAudit) throw unavailable('audit');
          recorded.push({ event, actor: actor.principalId, outcome });
        },
      },
    } as never,
    accountRows: { byEmail: async (email) => accounts.filter((account) => account.email === email) },
    sessionRows: sessionRows as SessionRows,
    passwords,
    limits: createSignInLimits({ now: () => 1_000_000, onLimit: () => {} }),
    denialLimit: {
      take: ({ principalId }) => {
        expect(principalId).toBe('unresolved');
        if (denied === allowance) throw new Refusal('RATE_LIMITED', 'Too many requests were denied', { retryAfterSeconds: 1 });
        denied++;
      },
    },
    wait: (ms) => (waited.push(ms), waiting()),
    installationId: 'ins_1',
  });
  signIn = service.signIn;
});

const attempt = async (input: typeof right, clientAddress?: string, peerAddress = '192.0.2.200') => {
  try {
    await signIn({ headers: {}, clientAddress, peerAddress, arrivedAt: 0, requestId: 'req_1' }, input);
    return 'signed in';
  } catch (error) {
    const { code, message, retryAfterSeconds } = error as Refusal;
    return { code, message, retryAfterSeconds };
  }
};
const times = async (count: number, input: typeof right): Promise<void> => {
  for (let index = 0; index < count; index++) await attempt(input);
};

describe('a sign-in', () => {
  it('with the right password begins a session and is recorded before it is answered', async () => {
    expect(await attempt(right)).toBe('signed in');
    expect([...sessions.values()]).toEqual(['usr_person']);
    expect(recorded).toEqual([{ event: { type: 'SignedIn', data: { principalId: 'prn_person' } }, actor: 'prn_person', outcome: 'success' }]);
  });

  it('that cannot be recorded hands nothing out and leaves no session', async () => {
    failAudit = true;
    expect(await attempt(right)).toMatchObject({ code: 'DEPENDENCY_UNAVAILABLE' });
    expect(sessions.size).toBe(0);
    expect(await attempt(wrong)).toMatchObject({ code: 'DEPENDENCY_UNAVAILABLE' });
  });

  it('with a wrong password, an unknown email or an account that never came to be is one answer after one hash', async () => {
    const answers = [];
    for (const input of [wrong, unknown, orphan]) {
      hashed = 0;
      answers.push(await attempt(input));
      expect(hashed).toBe(1);
    }
    expect(new Set(answers.map((answer) => JSON.stringify(answer))).size).toBe(1);
    expect(answers[0]).toMatchObject({ code: 'UNAUTHENTICATED' });
    expect(recorded.map(({ event, actor, outcome }) => [event.type, event.data, actor, outcome])).toEqual([
      ['SignInDenied', { principalId: 'prn_person' }, 'unresolved', 'denied'],
      ['SignInDenied', {}, 'unresolved', 'denied'],
      ['SignInDenied', {}, 'unresolved', 'denied'],
    ]);
    expect(sessions.size).toBe(0);
  });

  it('whose password is replaced while it is checked begins no session', async () => {
    replaced = true;
    expect(await attempt(right)).toMatchObject({ code: 'UNAUTHENTICATED' });
  });

  it('beyond the limit waits, is refused with the time to come back, and is no event', async () => {
    const known = [];
    const strange = [];
    await times(10, wrong);
    await times(10, unknown);
    expect({ waited, recorded: recorded.length }).toEqual({ waited: [], recorded: 20 });
    for (let index = 0; index < 5; index++) known.push(await attempt(index === 4 ? right : wrong));
    const knownWaits = waited.splice(0);
    for (let index = 0; index < 5; index++) strange.push(await attempt(unknown));
    expect(known.map((answer) => (answer as { retryAfterSeconds: number }).retryAfterSeconds)).toEqual([1, 2, 4, 8, 8]);
    expect(known.map((answer) => (answer as { code: string }).code)).toEqual(Array<string>(5).fill('RATE_LIMITED'));
    expect(knownWaits).toEqual([1_000, 2_000, 4_000, 8_000, 8_000]);
    expect({ strange, waited }).toEqual({ strange: known, waited: knownWaits });
    expect({ recorded: recorded.length, sessions: sessions.size, hashed }).toEqual({ recorded: 20, sessions: 0, hashed: 30 });
  });

  it('of an administrator beyond the limit waits too, and is let in with the right password alone', async () => {
    await times(10, { ...administrator, password: 'wrong horse battery' });
    expect(await attempt({ ...administrator, password: 'wrong horse battery' })).toMatchObject({ code: 'RATE_LIMITED', retryAfterSeconds: 1 });
    expect(await attempt(administrator)).toBe('signed in');
    expect(waited).toEqual([1_000, 2_000]);
  });

  it('counts from its beginning, so that many at once are many', async () => {
    const answers = await Promise.all(Array.from({ length: 12 }, () => attempt(wrong)));
    expect(answers.map((answer) => (answer as { code: string }).code).toSorted()).toEqual([...Array<string>(2).fill('RATE_LIMITED'), ...Array<string>(10).fill('UNAUTHENTICATED')]);
  });

  it('that succeeds spends nothing', async () => {
    await times(30, right);
    expect({ waited, sessions: sessions.size }).toEqual({ waited: [], sessions: 30 });
  });

  it('that nobody could judge spends nothing', async () => {
    failPolicy = true;
    expect(await attempt(right)).toMatchObject({ code: 'DEPENDENCY_UNAVAILABLE' });
    await times(10, right);
    failPolicy = false;
    expect({ answer: await attempt(right), waited }).toEqual({ answer: 'signed in', waited: [] });
  });

  it('that nobody could judge beyond the limit wins no further guess', async () => {
    await times(10, wrong);
    failPolicy = true;
    await Promise.all(Array.from({ length: 20 }, () => attempt(wrong)));
    failPolicy = false;
    expect(await attempt(wrong)).toMatchObject({ code: 'RATE_LIMITED' });
  });

  it('is counted by the address that a trusted proxy tells, too', async () => {
    for (let index = 0; index < 20; index++) await attempt({ email: `${index}@example.test`, password }, '192.0.2.1');
    expect(await attempt({ email: 'fresh@example.test', password }, '192.0.2.1')).toMatchObject({ code: 'RATE_LIMITED' });
    expect(await attempt({ email: 'other@example.test', password }, '192.0.2.2')).toMatchObject({ code: 'UNAUTHENTICATED' });
  });

  it('that is denied counts among the denials of nobody, known or not; one too many is 429 and no event, and the right password passes', async () => {
    allowance = 3;
    const answers = [];
    for (const input of [wrong, unknown, orphan, wrong, unknown]) answers.push(await attempt(input));
    expect(answers.map((answer) => (answer as { code: string }).code)).toEqual(['UNAUTHENTICATED', 'UNAUTHENTICATED', 'UNAUTHENTICATED', 'RATE_LIMITED', 'RATE_LIMITED']);
    expect(answers[3]).toEqual(answers[4]);
    expect({ recorded: recorded.length, denied }).toEqual({ recorded: 3, denied: 3 });
    expect(await attempt(right)).toBe('signed in');
  });

  describe('beyond the limit, at the same time as others', () => {
    const guess = { ...administrator, password: 'wrong horse battery' };
    let endings: (() => void)[];
    beforeEach(async () => {
      await times(10, guess);
      endings = [];
      waiting = () => new Promise<void>((resolve) => void endings.push(resolve));
      hashed = 0;
    });
    /** Lets all that can go on do so. */
    const settled = () => new Promise((resolve) => setImmediate(resolve));
    const codes = (answers: readonly unknown[]) => answers.map((answer) => (answer as { code?: string }).code ?? answer);

    it('is looked at after them: many guesses at once are no more than one after the other', async () => {
      const answers = Array.from({ length: 20 }, () => attempt(guess));
      await settled();
      expect({ waiting: endings.length, hashed }).toEqual({ waiting: 1, hashed: 0 });
      for (let turn = 1; turn <= 3; turn++) {
        endings[turn - 1]!();
        await until(`guess ${turn} looked at`, () => hashed, (count) => count === turn);
        await settled();
        expect({ waiting: endings.length, hashed }).toEqual({ waiting: Math.min(turn + 1, 3), hashed: turn });
      }
      expect(codes(await Promise.all(answers))).toEqual(Array<string>(20).fill('RATE_LIMITED'));
      expect(hashed, 'guesses looked at').toBe(3);
      const next = attempt(guess);
      await settled();
      endings[3]!();
      await next;
      expect(hashed, 'the line is as short as before').toBe(4);
    });

    it.each([
      ['of another client behind the proxy', '192.0.2.9', undefined],
      ['of another end of the connection', undefined, '192.0.2.9'],
      ['of another /64', '2001:db8:0:2::1', undefined],
    ])('the administrator %s waits for himself alone', async (_, clientAddress, peerAddress) => {
      const place = clientAddress?.includes(':') ? '2001:db8:0:1::1' : '192.0.2.1';
      const guesses = Array.from({ length: 20 }, () => (clientAddress === undefined ? attempt(guess) : attempt(guess, place)));
      const own = attempt(administrator, clientAddress, peerAddress);
      await settled();
      expect(endings).toHaveLength(2);
      endings[1]!();
      expect(await own).toBe('signed in');
      waiting = () => Promise.resolve();
      endings[0]!();
      await Promise.all(guesses);
    });

    it.each([
      ['an address of the same /64', '2001:db8:0:1::1', '2001:DB8:0:1:ffff:0:0:2'],
      ['the same address, written otherwise', '::ffff:192.0.2.1', '192.0.2.1'],
      ['a /64 with zeros left out', '2001:db8::1:0:0:0:1', '2001:db8:0:1::9'],
    ])('%s is in the same line', async (_, one, same) => {
      const guesses = [attempt(guess, one), attempt(guess, same)];
      await settled();
      expect(endings).toHaveLength(1);
      waiting = () => Promise.resolve();
      endings[0]!();
      expect(codes(await Promise.all(guesses))).toEqual(['RATE_LIMITED', 'RATE_LIMITED']);
    });

    it('the guesses at one account hold up no other', async () => {
      const guesses = [attempt(guess), attempt(guess)];
      expect(await attempt(right)).toBe('signed in');
      waiting = () => Promise.resolve();
      await settled();
      endings[0]!();
      await Promise.all(guesses);
    });
  });
});
