/** Whether a request came by a trusted way: proxies, the loopback rule of development, and the origin rule of cookies. (rest-contract 1.1 steps 4 and 5, 1.8) */
import type { IncomingMessage } from 'node:http';
import { BlockList, isIP, isIPv6 } from 'node:net';
import { Refusal } from '../kernel/errors.ts';

export interface TransportSettings {
  readonly mode: 'development' | 'production';
  /** Origins of pages that may change state with a cookie. */
  readonly trustedOrigins: readonly string[];
  /** Addresses, or networks in CIDR notation, as the settings have checked them, whose forwarding headers are accepted. */
  readonly trustedProxies: readonly string[];
}

/**
 * Which `Origin` a request needs: with a `cookie` a trusted one where it would change state, `exact` also where it would not;
 * to `sign-in` none, but no other than a trusted one. (iam-auth-audit 1.5)
 */
export type OriginRule = 'cookie' | 'exact' | 'sign-in';

export interface Transport {
  /** The way alone: who forwarded it, and in development where it comes from. @throws Refusal FORBIDDEN */
  assertWay(request: IncomingMessage): void;
  /** @throws Refusal FORBIDDEN */
  assert(request: IncomingMessage, rule?: OriginRule): void;
  /** The client's address as a trusted proxy tells it; undefined without one. */
  clientAddress(request: IncomingMessage): string | undefined;
}

/** Browsers take every name under `localhost` for this host. */
const loopbackHost = /^(?:(?:[a-z0-9-]+\.)*localhost|127(?:\.\d{1,3}){3}|\[::1\])(?::\d{1,5})?$/i;
const loopbackOrigin = /^https?:\/\/(?:(?:[a-z0-9-]+\.)*localhost|127(?:\.\d{1,3}){3}|\[::1\])(?::\d{1,5})?$/i;
const loopbackPeer = /^(?:127\.|::1$|::ffff:127\.)/;

const family = (address: string): 'ipv4' | 'ipv6' => (isIPv6(address) ? 'ipv6' : 'ipv4');

const networks = (list: readonly string[]): BlockList => {
  const trusted = new BlockList();
  for (const entry of list) {
    const [address = '', bits] = entry.split('/');
    if (bits === undefined) trusted.addAddress(address, family(address));
    else trusted.addSubnet(address, Number(bits), family(address));
  }
  return trusted;
};

const carriesForwarding = (headers: IncomingMessage['headers']): boolean => {
  for (const name in headers) if (name === 'forwarded' || name === 'x-real-ip' || name.startsWith('x-forwarded-')) return true;
  return false;
};

const safeMethods = new Set(['GET', 'HEAD', 'OPTIONS']);

const untrusted = (): Refusal => new Refusal('FORBIDDEN', 'A trusted browser origin is required');

export const createTransport = ({ mode, trustedOrigins, trustedProxies }: TransportSettings): Transport => {
  const proxies = networks(trustedProxies);
  const isProxy = (peer: string): boolean => trustedProxies.length > 0 && proxies.check(peer, family(peer));

  const assertWay = ({ headers, socket }: IncomingMessage): void => {
    const peer = socket.remoteAddress ?? '';
    if (carriesForwarding(headers) && !isProxy(peer)) throw new Refusal('FORBIDDEN', 'Forwarding headers are accepted from trusted proxies only');
    if (mode === 'development') {
      const { host = '', origin } = headers;
      if (!loopbackHost.test(host)) throw new Refusal('FORBIDDEN', 'In development mode the Host must be a loopback name');
      if (origin !== undefined && !loopbackOrigin.test(origin)) throw new Refusal('FORBIDDEN', 'In development mode the Origin must be a loopback origin');
      if (!loopbackPeer.test(peer) && !isProxy(peer)) throw new Refusal('FORBIDDEN', 'In development mode requests must come from this host');
    }
  };

  const assertOrigin = ({ headers, method = 'GET' }: IncomingMessage, rule: OriginRule): void => {
    const { origin, 'sec-fetch-site': site } = headers;
    const isTrusted = origin !== undefined && trustedOrigins.includes(origin);
    if (rule === 'sign-in') {
      if (origin === undefined ? site === 'cross-site' : !isTrusted) throw untrusted();
      return;
    }
    const byCookie = headers.cookie !== undefined && headers['x-api-key'] === undefined && headers.authorization === undefined;
    if (!byCookie || (rule === 'cookie' && safeMethods.has(method))) return;
    if (!isTrusted || (site !== undefined && site !== 'same-origin')) throw untrusted();
  };

  return {
    assertWay,
    assert: (request, rule = 'cookie') => {
      assertWay(request);
      assertOrigin(request, rule);
    },
    clientAddress: ({ headers, socket }) => {
      if (!isProxy(socket.remoteAddress ?? '')) return undefined;
      const forwarded = [headers['x-forwarded-for'] ?? []].flat().join(',').split(',').map((address) => address.trim());
      // What stands before the last entry that is no proxy's is the client's own word.
      const last = forwarded.findLast((entry) => isIP(entry) === 0 || !isProxy(entry));
      return last === undefined || isIP(last) === 0 ? undefined : last;
    },
  };
};
