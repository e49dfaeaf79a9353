/**
 * Who may do what in the loopback EventStoreDB: users with passwords, and access lists in the metadata of streams and in
 * `$settings`, as the server's default policy judges them.
 */
import type { Metadata, ServiceError } from '@grpc/grpc-js';
import type { Log } from './log.ts';
import { denied, unauthenticated } from './messages.ts';

export interface User {
  readonly password: string;
  readonly groups?: readonly string[];
}

/** Read, write, delete; read and write metadata. */
export type Right = '$r' | '$w' | '$d' | '$mr' | '$mw';

type AccessList = Readonly<Partial<Record<Right, string | readonly string[]>>>;

/** The error of a call on a stream, or undefined where the caller may do it. */
export type Judge = (metadata: Metadata, stream: string, right: '$r' | '$w' | '$d') => ServiceError | undefined;

/** Groups that need no entry, and those that everybody is in. */
const administrators = '$admins';
const everybody = '$all';

const credentialsOf = (metadata: Metadata): readonly [name: string, password: string] | undefined => {
  const [, encoded] = /^Basic (.+)$/.exec(String(metadata.get('authorization')[0])) ?? [];
  if (encoded === undefined) return undefined;
  const [name = '', ...password] = Buffer.from(encoded, 'base64').toString().split(':');
  return [name, password.join(':')];
};

/** Without users the server runs insecurely: everybody may do everything. */
export const createJudge = (users: Readonly<Record<string, User>> | undefined, log: () => Log): Judge => {
  const listed = (stream: string, right: Right): string | readonly string[] => {
    const own = log().metadata(stream)['$acl'] as AccessList | undefined;
    const isSystem = stream.startsWith('$');
    const defaults = log().lastOf('$settings')[isSystem ? '$systemStreamAcl' : '$userStreamAcl'] as AccessList | undefined;
    return own?.[right] ?? defaults?.[right] ?? (isSystem ? administrators : everybody);
  };

  return (metadata, stream, right) => {
    if (users === undefined) return undefined;
    const credentials = credentialsOf(metadata);
    if (credentials === undefined) return denied();
    const [name, password] = credentials;
    if (users[name]?.password !== password) return unauthenticated();
    const groups = [name, ...(users[name].groups ?? [])];
    if (groups.includes(administrators)) return undefined;
    const isMetadata = stream.startsWith('$$');
    const wanted = isMetadata ? ({ $r: '$mr', $w: '$mw', $d: '$mw' } as const)[right] : right;
    const allowed = [listed(isMetadata ? stream.slice(2) : stream, wanted)].flat();
    return allowed.includes(everybody) || groups.some((group) => allowed.includes(group)) ? undefined : denied();
  };
};
