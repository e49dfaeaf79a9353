/** `exuvia iam` and `exuvia key`: policy and keys from the host of the server, which may run or not. (iam-auth-audit 4.2, 4.4, 8.1) */
import { access } from 'node:fs/promises';
import { resolve } from 'node:path';
import { iam, namespaces } from '../aggregates.ts';
import { readConfig } from '../config.ts';
import { createOperator, type Operator, type Scope } from '../iam/operator.ts';
import { everyPermission, type GrantedPermission } from '../iam/permissions.ts';
import { bindingsOf, membersOf, type Policy } from '../iam/policy.ts';
import { writePrivately } from '../installation/bootstrap.ts';
import { Fault } from '../kernel/errors.ts';
import { openHostStores, type HostStores } from '../open-stores.ts';
import { createAccountRows, createKeyRows, createWaysIn } from '../postgres/private-rows.ts';
import type { Account } from '../sign-in/accounts.ts';
import { createLogger } from '../telemetry/logger.ts';
import type { Target } from './iam-terms.ts';

/** What every one of these commands takes. */
export interface HostOptions {
  readonly json?: boolean;
  /** Does it although it takes the last administrator away. */
  readonly force?: boolean;
}

export interface PlaceOptions extends HostOptions {
  readonly namespace?: string;
}

interface Host extends Pick<HostStores, 'installationId'> {
  readonly operator: Operator;
  policy(): Promise<Policy>;
  accounts(): Promise<readonly Account[]>;
}

/** What a command has to say: an object for programs, lines for people. */
interface Answer {
  readonly json: object;
  readonly lines: readonly string[];
}

/** Names come from callers: none may write over what is shown beside it. */
const plain = (line: string): string => line.replace(/[\u0000-\u001f\u007f-\u009f\u2028\u2029]/g, '\ufffd');

const print = ({ json, lines }: Answer, options: HostOptions): void => {
  process.stdout.write(options.json === true ? `${JSON.stringify(json)}\n` : lines.map((line) => `${plain(line)}\n`).join(''));
};

/** Opens the stores, lets the operator act, and says what came of it. @throws Fault, Refusal */
const onHost = async (options: PlaceOptions, act: (host: Host) => Promise<Answer>): Promise<void> => {
  const config = readConfig(process.env);
  await using stack = new AsyncDisposableStack();
  const { database, streams, clock, installationId } = await openHostStores(config, createLogger({ level: config.logLevel }), stack);
  if (options.namespace !== undefined) {
    const { status } = (await streams.load(namespaces, options.namespace)).state;
    if (status === 'absent' || status === 'removed') throw new Fault(`There is no Namespace ${options.namespace}`);
  }
  const operator = createOperator({ streams, keyRows: createKeyRows(database.pool), waysIn: createWaysIn(database.pool), clock, installationId, mayLockOut: options.force === true });
  const accounts = () => createAccountRows(database.pool).all();
  print(await act({ operator, installationId, policy: async () => (await streams.load(iam, '')).state, accounts }), options);
};

const made = (id: string): Answer => ({ json: { id }, lines: [id] });
const done = (json: Readonly<Record<string, string>>, line: string): Answer => ({ json, lines: [line] });

const written = ({ action, resourceKind }: { readonly action: string; readonly resourceKind: string }): string => `${resourceKind}:${action}`;
const whereOf = ({ namespaceId, resourceKind, resourceId }: { readonly namespaceId?: string; readonly resourceKind?: string; readonly resourceId?: string }): string =>
  [resourceId === undefined ? 'everything' : `${resourceKind} ${resourceId}`, namespaceId === undefined ? 'anywhere' : `in ${namespaceId}`].join(' ');
const inNamespace = (namespaceId: string | undefined): string => (namespaceId === undefined ? '' : ` in ${namespaceId}`);

type Placed = { readonly namespaceId?: string | undefined };

/** Everybody who can be granted something, a human with what tells people apart. */
const principalsOf = ({ identities }: Policy, accounts: readonly Account[], isShown: (one: Placed) => boolean) => {
  const byPrincipal = new Map(accounts.map((account) => [account.principalId, account]));
  return [...identities.values()].filter(isShown).map((identity) => {
    const { email, name } = byPrincipal.get(identity.id) ?? {};
    return { ...identity, ...(email !== undefined && { email, name }) };
  });
};

const placedIn = (namespaceId: string | undefined) => (one: Placed): boolean => namespaceId === undefined || one.namespaceId === namespaceId;

/** Policy as it stands, each list in the order of creation; with a Namespace, what is of it alone. */
const overview = (policy: Policy, accounts: readonly Account[], installationId: string, namespaceId: string | undefined) => {
  const isShown = placedIn(namespaceId);
  return {
    installationId,
    principals: principalsOf(policy, accounts, isShown),
    groups: [...policy.groups.values()].filter(isShown).map(({ groupId: id, ...group }) => ({ id, ...group, principalIds: membersOf(policy, id) })),
    roles: [...policy.roles.values()].filter(isShown).map(({ roleId: id, ...role }) => ({ id, ...role })),
    bindings: [...policy.bindings.values()].filter(isShown).map(({ bindingId: id, ...binding }) => ({ id, ...binding })),
    restrictions: [...policy.restrictions.values()].filter(isShown).map(({ restrictionId: id, ...restriction }) => ({ id, ...restriction })),
    keys: [...policy.keys.values()].filter(isShown).map(({ keyId: id, ...key }) => ({ id, ...key })),
    /** Rules that the history has broken: while there is one, everything is denied. */
    broken: [...policy.breaches].map(([id, { message }]) => ({ id, message })),
  };
};

const principalLine = ({ id, kind, namespaceId, agentId, email, name }: ReturnType<typeof principalsOf>[number]): string => {
  if (kind === 'principal') return `${id}  ${email === undefined ? 'human without an account' : name === email ? email : `${email}, ${name}`}`;
  return `${id}  ${agentId === undefined ? 'service principal' : `principal of ${agentId}`}${inNamespace(namespaceId)}`;
};

export const list = (options: PlaceOptions): Promise<void> =>
  onHost(options, async ({ policy, accounts, installationId }) => {
    const shown = overview(await policy(), await accounts(), installationId, options.namespace);
    const section = (title: string, lines: readonly string[]): readonly string[] => (lines.length === 0 ? [] : [title, ...lines.map((line) => `  ${line}`)]);
    const lines = [
      ...section('Broken, so that everything is denied', shown.broken.map(({ id, message }) => `${id.replaceAll('\n', ' ')}  ${message}`)),
      ...section('Principals', shown.principals.map(principalLine)),
      ...section('Groups', shown.groups.map(({ id, name, namespaceId, principalIds }) => `${id}  ${name}${inNamespace(namespaceId)}: ${principalIds.join(', ') || 'nobody'}`)),
      ...section('Roles', shown.roles.map(({ id, name, namespaceId, permissions }) => `${id}  ${name ?? 'unnamed'}${inNamespace(namespaceId)}: ${permissions.map(written).join(' ')}`)),
      ...section('Bindings', shown.bindings.map(({ id, subjectId, roleId, ...scope }) => `${id}  ${subjectId} has ${roleId} on ${whereOf(scope)}`)),
      ...section('Restrictions', shown.restrictions.map(({ id, resourceId, namespaceId, ...permission }) => {
        const where = whereOf({ resourceKind: permission.resourceKind, ...(resourceId !== undefined && { resourceId }), ...(namespaceId !== undefined && { namespaceId }) });
        return `${id}  nobody has ${written(permission)} on ${where}`;
      })),
      ...section('Keys', shown.keys.map(({ id, name, servicePrincipalId, expiresAt }) => `${id}  ${name} of ${servicePrincipalId} until ${expiresAt}`)),
    ];
    return { json: shown, lines };
  });

export const principals = (options: PlaceOptions): Promise<void> =>
  onHost(options, async ({ policy, accounts }) => {
    const shown = principalsOf(await policy(), await accounts(), placedIn(options.namespace));
    return { json: shown, lines: shown.map(principalLine) };
  });

export const createPrincipal = (options: PlaceOptions): Promise<void> =>
  onHost(options, async ({ operator }) => made(await operator.createServicePrincipal({ namespaceId: options.namespace })));

export const createRole = (permissions: readonly GrantedPermission[], options: PlaceOptions & { readonly name?: string }): Promise<void> =>
  onHost(options, async ({ operator }) => made(await operator.createRole(permissions, { namespaceId: options.namespace, name: options.name })));

export const deleteRole = (roleId: string, options: HostOptions): Promise<void> =>
  onHost(options, async ({ operator }) => {
    await operator.deleteRole(roleId);
    return done({ id: roleId }, `${roleId} is deleted`);
  });

const scopeOf = ({ namespace, on }: PlaceOptions & { readonly on?: Target }): Scope => ({ ...(namespace !== undefined && { namespaceId: namespace }), ...on });

export const bind = (subjectId: string, roleId: string, options: PlaceOptions & { readonly on?: Target }): Promise<void> =>
  onHost(options, async ({ operator }) => made(await operator.bind(subjectId, roleId, scopeOf(options))));

export const unbind = (bindingId: string, options: HostOptions): Promise<void> =>
  onHost(options, async ({ operator }) => {
    await operator.unbind(bindingId);
    return done({ id: bindingId }, `${bindingId} is deleted`);
  });

export const restrict = async (permission: GrantedPermission, options: PlaceOptions & { readonly on?: Target }): Promise<void> => {
  if (options.on !== undefined && options.on.resourceKind !== permission.resourceKind)
    throw new Fault(`${written(permission)} cannot be restricted on a resource of kind ${options.on.resourceKind}`);
  await onHost(options, async ({ operator }) => {
    const { on, namespace } = options;
    const scope = { ...(namespace !== undefined && { namespaceId: namespace }), ...(on !== undefined && { resourceId: on.resourceId }) };
    return made(await operator.restrict(permission, scope));
  });
};

export const unrestrict = (restrictionId: string, options: HostOptions): Promise<void> =>
  onHost(options, async ({ operator }) => {
    await operator.unrestrict(restrictionId);
    return done({ id: restrictionId }, `${restrictionId} is deleted`);
  });

export const createGroup = (name: string, options: PlaceOptions): Promise<void> =>
  onHost(options, async ({ operator }) => made(await operator.createGroup(name, { namespaceId: options.namespace })));

export const deleteGroup = (groupId: string, options: HostOptions): Promise<void> =>
  onHost(options, async ({ operator }) => {
    await operator.deleteGroup(groupId);
    return done({ id: groupId }, `${groupId} is deleted`);
  });

export const addMember = (groupId: string, principalId: string, options: HostOptions): Promise<void> =>
  onHost(options, async ({ operator }) => {
    await operator.addMember(groupId, principalId);
    return done({ groupId, principalId }, `${principalId} is a member of ${groupId}`);
  });

export const removeMember = (groupId: string, principalId: string, options: HostOptions): Promise<void> =>
  onHost(options, async ({ operator }) => {
    await operator.removeMember(groupId, principalId);
    return done({ groupId, principalId }, `${principalId} is no member of ${groupId} any more`);
  });

/** The Installation's Role of exactly these permissions, made where there is none. */
const roleOf = async ({ operator, policy }: Host, name: string, permissions: readonly GrantedPermission[]): Promise<string> => {
  const wanted = permissions.map(written).sort().join();
  const known = (await policy()).roles.find((role) => role.namespaceId === undefined && role.permissions.map(written).sort().join() === wanted);
  return known?.roleId ?? operator.createRole(permissions, { name });
};

export const makeAuditor = (subjectId: string, options: PlaceOptions): Promise<void> =>
  onHost(options, async (host) => {
    const roleId = await roleOf(host, 'Auditor', [{ action: 'read', resourceKind: 'audit' }]);
    const { namespace } = options;
    const known = bindingsOf(await host.policy(), subjectId).find((one) => one.subjectId === subjectId && one.roleId === roleId && one.namespaceId === namespace && one.resourceKind === undefined);
    return made(known?.bindingId ?? (await host.operator.bind(subjectId, roleId, scopeOf(options))));
  });

export interface IssueKeyOptions extends HostOptions {
  readonly admin?: boolean;
  readonly name: string;
  readonly days: number;
  /** A new file for the key, which is then not shown. */
  readonly file?: string;
}

const dayMs = 24 * 60 * 60 * 1000;

/** A new service principal that may do everything. */
const createAdministrator = async (host: Host): Promise<string> => {
  const roleId = await roleOf(host, 'Installation administrator', everyPermission);
  const servicePrincipalId = await host.operator.createServicePrincipal();
  await host.operator.bind(servicePrincipalId, roleId, {});
  return servicePrincipalId;
};

export const issueKey = async (named: string | undefined, options: IssueKeyOptions): Promise<void> => {
  const { admin = false, name, days } = options;
  if ((named !== undefined) === admin) throw new Fault('Name either the service principal whose key it will be, or --admin for a new administrator');
  const file = options.file === undefined ? undefined : resolve(options.file);
  if (file !== undefined && (await access(file).then(() => true, () => false))) throw new Fault(`${file} exists already`);
  await onHost(options, async (host) => {
    const servicePrincipalId = named ?? (await createAdministrator(host));
    const { keyId: id, text: key, expiresAt } = await host.operator.issueKey(servicePrincipalId, { name, lifetimeMs: days * dayMs });
    const data = { id, servicePrincipalId, name, expiresAt };
    if (file === undefined) return { json: { ...data, key }, lines: [key] };
    try {
      await writePrivately(file, { data: { ...data, key }, meta: { installationId: host.installationId } });
    } catch (error) {
      await host.operator.revokeKey(id);
      throw new Fault(`The key is revoked again, for ${file} cannot be written: ${(error as Error).message}`);
    }
    return { json: { ...data, file }, lines: [`${id} of ${servicePrincipalId} is in ${file} until ${expiresAt}`] };
  });
};

export const revokeKey = (keyId: string, options: HostOptions): Promise<void> =>
  onHost(options, async ({ operator }) => {
    await operator.revokeKey(keyId);
    return done({ id: keyId }, `${keyId} is revoked`);
  });
