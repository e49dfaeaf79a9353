/**
 * The birth of the Installation: rows and temporary files first, one event at no-stream as the only commit
 * point, then the files get their names. The loser of a race erases its own. (iam-auth-audit 1.9, failure scenario 36)
 */
import { open, readFile, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { iam } from '../aggregates.ts';
import { newKey, type KeyRows } from '../iam/keys.ts';
import type { InstallationBootstrapped } from '../iam/messages.ts';
import { everyPermission } from '../iam/permissions.ts';
import { Refusal } from '../kernel/errors.ts';
import type { Actor } from '../kernel/event.ts';
import { newId } from '../kernel/ids.ts';
import { timestamp, type Clock } from '../runtime/clock.ts';
import type { CommandContext, Streams } from '../runtime/streams.ts';
import { canonicalEmail, localIssuer, type AccountRows } from '../sign-in/accounts.ts';
import { randomPassword, type Passwords } from '../sign-in/passwords.ts';

export interface InstallationRow {
  id(): Promise<string>;
}

const keyLifetimeMs = 30 * 24 * 60 * 60 * 1000;

export const systemActor: Actor = { principalId: 'system', kind: 'system' };

/** The context of what the control plane does by itself. */
export const systemContext = (correlationId: string): CommandContext => ({
  actor: systemActor,
  requestId: null,
  correlationId,
  causationId: null,
  policyRevision: null,
});

const temporary = (path: string): string => `${path}.new`;

/** Writes a file that its owner alone may read, in the place of an earlier one. */
export const writePrivately = async (path: string, content: unknown): Promise<void> => {
  await rm(path, { force: true });
  const file = await open(path, 'wx', 0o600);
  try {
    await file.writeFile(`${JSON.stringify(content)}\n`);
    await file.sync();
  } finally {
    await file.close();
  }
};

const readJson = async (path: string): Promise<unknown> => readFile(path, 'utf8').then(JSON.parse, () => undefined);

export interface Bootstrap {
  readonly installationId: string;
  readonly streams: Streams;
  readonly clock: Clock;
  readonly keyRows: KeyRows;
  readonly accountRows: Pick<AccountRows, 'insert' | 'erase'>;
  readonly passwords: Pick<Passwords, 'hash'>;
  /** Where `service-key.json` and `admin.json` go. */
  readonly dataDir: string;
  readonly administratorEmail: string;
}

/** Makes sure the Installation exists, once for all processes. Returns the fact of its birth. */
export const bootstrapInstallation = async (deps: Bootstrap): Promise<InstallationBootstrapped['data']> => {
  const { installationId, streams, clock, keyRows, accountRows, passwords, dataDir } = deps;
  const administratorEmail = canonicalEmail(deps.administratorEmail);
  const keyFile = join(dataDir, 'service-key.json');
  const adminFile = join(dataDir, 'admin.json');

  /** The temporary files get their names if they are the ones the event speaks of; others are litter of a lost try. */
  const settleFiles = async (born: InstallationBootstrapped['data']): Promise<void> => {
    const pending = (await readJson(temporary(keyFile))) as { data?: { id?: string } } | undefined;
    if (pending?.data?.id === born.serviceKey.keyId) {
      await rename(temporary(adminFile), adminFile).catch(() => undefined);
      await rename(temporary(keyFile), keyFile);
    }
    await Promise.all([keyFile, adminFile].map((path) => rm(temporary(path), { force: true })));
  };

  const known = (await streams.load(iam, '')).state.installation;
  if (known !== null) {
    await settleFiles(known);
    return known;
  }

  const key = newKey();
  const [principalId, servicePrincipalId, userId] = [newId('prn'), newId('spn'), newId('usr')];
  const password = randomPassword();
  const serviceKey = { keyId: key.keyId, servicePrincipalId, name: 'bootstrap-admin', expiresAt: timestamp(clock.now() + keyLifetimeMs) };
  const roleId = newId('role');
  const binding = (subjectId: string) => ({ bindingId: newId('bnd'), subjectKind: 'identity' as const, subjectId, roleId });
  const data: InstallationBootstrapped['data'] = {
    installationId,
    name: 'Exuvia',
    administrator: { principalId, issuer: localIssuer, subject: userId },
    servicePrincipal: { servicePrincipalId },
    role: { roleId, name: 'Installation administrator', permissions: [...everyPermission] },
    bindings: [binding(principalId), binding(servicePrincipalId)],
    serviceKey,
    defaultNamespaceId: newId('ns'),
  };

  await accountRows.insert({ userId, principalId, email: administratorEmail, name: 'Administrator', passwordHash: await passwords.hash(password) }, { founding: true });
  await keyRows.insert(key.keyId, servicePrincipalId, key.secretHash);
  await writePrivately(temporary(adminFile), { email: administratorEmail, password });
  const { keyId: id, ...rest } = serviceKey;
  await writePrivately(temporary(keyFile), { data: { id, ...rest, key: key.text }, meta: { installationId } });

  const resource = { kind: 'installation', id: installationId } as const;
  const context = { ...systemContext(installationId), audit: { kind: 'bootstrap', action: 'openclaw.installation.bootstrap', resource, outcome: 'success' } as const };
  try {
    await streams.execute(iam, '', { type: 'BootstrapInstallation', data }, context);
    await settleFiles(data);
    return data;
  } catch (error) {
    const winner = error instanceof Refusal && error.code === 'RESOURCE_CONFLICT' ? (await streams.load(iam, '')).state.installation : null;
    if (winner === null) throw error;
    await Promise.all([accountRows.erase(userId), keyRows.erase(key.keyId), settleFiles(winner)]);
    return winner;
  }
};
