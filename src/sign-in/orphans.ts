/**
 * Erases private rows whose event never came: the hash of a key, or somebody's email and password, that a process wrote
 * and died before the history could name them. (R3, failure scenario 19)
 *
 * An hour is politeness, never safety: a row goes only behind a fence in the history, after which its late event is
 * refused. Whichever of the two comes first is what both agree on, however many processes sweep and however slow an
 * append is. Sessions need none of this: they end by themselves, and the token of one whose sign-in was not recorded was
 * never handed out.
 */
import { iam } from '../aggregates.ts';
import type { KeyRows } from '../iam/keys.ts';
import { systemContext } from '../installation/bootstrap.ts';
import type { Streams } from '../runtime/streams.ts';
import type { AccountRows } from './accounts.ts';

/** How old a row is before its event counts as missing. */
const orphanAgeMs = 3_600_000;

/** How many rows went. */
interface Erased {
  readonly accounts: number;
  readonly keys: number;
}

/**
 * One sweep over all rows; may run at any time, and twice.
 * @throws Refusal DEPENDENCY_UNAVAILABLE
 */
export const sweepOrphans = async ({
  streams,
  accountRows,
  keyRows,
  installationId,
}: {
  readonly streams: Streams;
  readonly accountRows: Pick<AccountRows, 'olderThan' | 'erase'>;
  readonly keyRows: Pick<KeyRows, 'olderThan' | 'erase'>;
  readonly installationId: string;
}): Promise<Erased> => {
  const context = systemContext(installationId);
  const [accounts, keyIds] = await Promise.all([accountRows.olderThan(orphanAgeMs), keyRows.olderThan(orphanAgeMs)]);
  const { state: policy } = await streams.load(iam, '');
  const erased = { accounts: 0, keys: 0 };
  // The birth of an Installation begins the stream: until then every row may be the one it will name.
  if (policy.installation === null) return erased;
  for (const { userId, principalId } of accounts) {
    if (policy.identities.has(principalId)) continue;
    const { state } = await streams.execute(iam, '', { type: 'AbandonPrincipalCreation', principalId }, context);
    if (!state.removed.has(principalId)) continue;
    await accountRows.erase(userId);
    erased.accounts += 1;
  }
  for (const keyId of keyIds) {
    if (policy.keys.has(keyId)) continue;
    const { state } = await streams.execute(iam, '', { type: 'AbandonServiceKey', keyId }, context);
    if (!state.removed.has(keyId)) continue;
    await keyRows.erase(keyId);
    erased.keys += 1;
  }
  return erased;
};
