/** How guesses of passwords are slowed, by a clock that tests turn. (iam-auth-audit 6) */
import { beforeEach, describe, expect, it } from 'vitest';
import { createSignInLimits, type SignInLimits } from '../../src/sign-in/limits.ts';

let now: number;
let limited: { readonly by: string; readonly digest: string }[];
let limits: SignInLimits;
beforeEach(() => {
  now = 1_000_000;
  limited = [];
  limits = createSignInLimits({ now: () => now, onLimit: (facts) => limited.push(facts) });
});

const waits = (count: number, email: string | ((index: number) => string) = 'a@b', address?: string): readonly number[] =>
  Array.from({ length: count }, (_, index) => limits.begin(typeof email === 'string' ? email : email(index), address).waitMs);

describe('the limits of sign-in', () => {
  it('let ten guesses of an email pass in a minute, then each waits longer, up to eight seconds', () => {
    expect(waits(10)).toEqual(Array<number>(10).fill(0));
    expect(waits(6)).toEqual([1_000, 2_000, 4_000, 8_000, 8_000, 8_000]);
    expect(waits(1, 'another@b')).toEqual([0]);
  });

  it('forget a guess after a minute', () => {
    waits(10);
    now += 59_999;
    expect(waits(1)).toEqual([1_000]);
    now += 1;
    expect(waits(9)).toEqual(Array<number>(9).fill(0));
    now += 60_000;
    expect(waits(10)).toEqual(Array<number>(10).fill(0));
  });

  it('count twenty guesses of one address behind a proxy, whatever the email', () => {
    expect(waits(21, (index) => `${index}@b`, '192.0.2.1').filter((wait) => wait > 0)).toEqual([1_000]);
    expect(waits(1, 'fresh@b', '192.0.2.2')).toEqual([0]);
    expect(waits(1, 'fresh@b')).toEqual([0]);
  });

  it('count what one client can choose from as one address', () => {
    const guesses = (addresses: readonly string[]) => addresses.map((address, index) => limits.begin(`${index}@b`, address).waitMs);
    expect(guesses(Array.from({ length: 21 }, (_, index) => `2001:db8:0:1::${index}`)).at(-1)).toBe(1_000);
    expect(guesses(['2001:db8:0:2::1'])).toEqual([0]);
    expect(guesses([...Array<string>(20).fill('192.0.2.1'), '::ffff:192.0.2.1']).at(-1)).toBe(1_000);
  });

  it('give back what a right password spent', () => {
    for (let index = 0; index < 100; index++) limits.begin('a@b', '192.0.2.1').refund();
    expect(waits(1, 'a@b', '192.0.2.1')).toEqual([0]);
  });

  it('keep 4,096 keys, and let go of the least guessed at, of these of the longest untouched', () => {
    waits(10, 'first@b');
    waits(1, 'once@b');
    waits(4_096, (index) => `${index}@b`);
    expect(waits(1, 'first@b')).toEqual([1_000]);
    expect(waits(10, 'once@b')).toEqual(Array<number>(10).fill(0));
  });

  it('let go of what is a minute old before anything else', () => {
    waits(10, 'old@b');
    now += 60_000;
    waits(9, 'new@b');
    waits(4_095, (index) => `${index}@b`);
    expect(waits(2, 'new@b')).toEqual([0, 1_000]);
  });

  it('tell the log once, by a digest that is no email', () => {
    waits(15);
    expect(limited).toEqual([{ by: 'email', digest: expect.stringMatching(/^[A-Za-z0-9_-]{12}$/) as string }]);
  });
});
