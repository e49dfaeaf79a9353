/** What a request to an Agent host asks for: the one host it names, its path, and where the gateway's redirects lead. (agent-lifecycle 9.2) */
import type { IncomingMessage } from 'node:http';
import { Refusal } from '../../kernel/errors.ts';
import { agentHost, hashIn, isAgentDomain, type NativeAdminSettings } from '../../native-admin/domains.ts';

export interface Target {
  /** Stands for the Agent. */
  readonly hash: string;
  /** The exact origin of the Agent's pages. */
  readonly origin: string;
  /** Canonical path and query, as the request has them. */
  readonly path: string;
}

const longestPath = 4_096;

const absolute = /^[a-z][a-z0-9+.-]*:\/\/([^/?#]*)/i;

/** A host without user, port, capitals and the dot of the root. */
const hostnameOf = (host: string): string => host.toLowerCase().replace(/^.*@/, '').replace(/:\d*$/, '').replace(/\.$/, '');

/** The hosts a request names: every `Host` header, and the one in its target. */
const hostsOf = ({ rawHeaders, url = '' }: IncomingMessage): readonly string[] => [
  ...rawHeaders.filter((_, index) => index % 2 === 1 && rawHeaders[index - 1]!.toLowerCase() === 'host'),
  ...(absolute.exec(url)?.slice(1) ?? []),
];

/** Whether a request names an Agent host in any place: then no route of ours may answer it. */
export const isForAgentHost = (settings: NativeAdminSettings, request: IncomingMessage): boolean => hostsOf(request).some((host) => isAgentDomain(settings, hostnameOf(host)));

const assertCanonical = (url: string): void => {
  const path = url.replace(/\?.*$/s, '');
  const isCanonical =
    url.length <= longestPath && !/[^\x21-\x7e]|[#\\]/.test(url) && !path.includes('//') && !/%(?![0-9a-f]{2})|%(?:0[0-9a-f]|1[0-9a-f]|7f|2f|5c)/i.test(path) && URL.parse(path, 'http://agent')?.pathname === path;
  if (!isCanonical) throw new Refusal('INVALID_REQUEST', `The path must be canonical and have at most ${longestPath} characters`);
};

/** @throws Refusal INVALID_REQUEST, NOT_FOUND for what is no Agent host */
export const targetOf = (settings: NativeAdminSettings, request: IncomingMessage): Target => {
  const { url = '' } = request;
  const [host, ...others] = hostsOf(request);
  if (host === undefined || others.length > 0) throw new Refusal('INVALID_REQUEST', 'The request must name one host, in its Host header');
  const hash = hashIn(settings, host.replace(/:\d+$/, '').toLowerCase());
  if (hash === undefined) throw new Refusal('NOT_FOUND', 'There is no such Agent host');
  assertCanonical(url);
  return { hash, origin: agentHost(settings, hash).origin, path: url };
};

/** The gateway's URL for a path below its base. */
export const upstreamUrl = (base: string, path: string, protocol: 'https:' | 'wss:'): URL => {
  const { host, pathname } = new URL(base);
  return new URL(`${protocol}//${host}${pathname.replace(/\/$/, '')}${path}`);
};

/** A redirect of the gateway as a browser can follow it; undefined for one within the gateway but outside the base. */
export const rewrittenLocation = (location: string, base: string, requested: URL, origin: string): string | undefined => {
  const target = URL.parse(location, requested);
  if (target === null || target.host !== requested.host) return location;
  const prefix = new URL(base).pathname.replace(/\/$/, '');
  if (target.pathname !== prefix && !target.pathname.startsWith(`${prefix}/`)) return undefined;
  return `${origin}${target.pathname.slice(prefix.length) || '/'}${target.search}${target.hash}`;
};
