/** Password hashes: what is kept, what a check costs, and how many run at once. (iam-auth-audit 6) */
import { describe, expect, it } from 'vitest';
import { createPasswords, type Derive } from '../../src/sign-in/passwords.ts';
import { cheaply } from '../support/sign-in.ts';

describe('a password', () => {
  it('is kept as a salted hash that tells its cost, and is recognised by it', async () => {
    const passwords = createPasswords();
    const kept = await passwords.hash('correct horse battery');
    expect(kept).toMatch(/^\$scrypt\$ln=14,r=8,p=5\$[A-Za-z0-9+/]{22}\$[A-Za-z0-9+/]{86}$/);
    expect(await passwords.verify('correct horse battery', kept)).toBe(true);
    expect(await passwords.verify('correct horse batterz', kept)).toBe(false);
  });

  it('of an earlier build is checked at the cost it was hashed with', async () => {
    const costs: unknown[] = [];
    const passwords = createPasswords((password, salt, length, cost) => (costs.push(cost), cheaply(password, salt, length, cost)));
    await passwords.verify('any', `$scrypt$ln=14,r=8,p=1$${'A'.repeat(22)}$${'A'.repeat(86)}`);
    expect(costs).toEqual([{ ln: 14, r: 8, p: 1 }]);
  });

  it('of nobody costs the same work, and is never right', async () => {
    const work: unknown[] = [];
    const counting: Derive = (password, salt, length, cost) => (work.push({ salt: salt.length, length, cost }), cheaply(password, salt, length, cost));
    const passwords = createPasswords(counting);
    const kept = await passwords.hash('correct horse battery');
    work.length = 0;
    expect([await passwords.verify('wrong horse battery', kept), await passwords.verify('wrong horse battery', undefined)]).toEqual([false, false]);
    expect(work).toHaveLength(2);
    expect(work[1]).toEqual(work[0]);
  });

  it('is never right when what is kept is no hash of this build', async () => {
    const passwords = createPasswords(cheaply);
    expect(await Promise.all(['', 'none', '$scrypt$ln=14,r=8,p=5$$'].map((kept) => passwords.verify('any', kept)))).toEqual([false, false, false]);
  });

  it('is hashed beside one other, the rest in turn; a flood is refused', async () => {
    let running = 0;
    let most = 0;
    const gate = Promise.withResolvers<void>();
    const passwords = createPasswords(async (...work) => {
      most = Math.max(most, ++running);
      await gate.promise;
      running -= 1;
      return cheaply(...work);
    });
    const checks = Array.from({ length: 66 }, () => passwords.verify('any', undefined));
    await expect(passwords.verify('any', undefined)).rejects.toMatchObject({ code: 'DEPENDENCY_UNAVAILABLE' });
    gate.resolve();
    expect(await Promise.all(checks)).toEqual(Array<boolean>(66).fill(false));
    expect(most).toBe(2);
    expect(await passwords.verify('any', undefined)).toBe(false);
  });
});
