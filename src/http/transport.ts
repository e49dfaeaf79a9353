/** Whether a request came by a trusted way: proxies, the loopback rule of development, and the origin rule of cookies. (rest-contract 1.1 steps 4 and 5, 1.8) */
import type { IncomingMessage } from 'node:http';
import { BlockList, isIPv6 } from 'node:net';
import { Fault, Refusal } from '../kernel/errors.ts';

export interface TransportSettings {
  readonly mode: 'development' | 'production';
  /** Origins of pages that may change state with a cookie. */
  readonly trustedOrigins: readonly string[];
  /** Addresses, or networks in CIDR notation, whose forwarding headers are accepted. */
  readonly trustedProxies: readonly string[];
}

/** @throws Refusal FORBIDDEN */
export type AssertTransport = (request: IncomingMessage) => void;

const loopbackHost = /^(?:localhost|127(?:\.\d{1,3}){3}|\[::1\])(?::\d{1,5})?$/i;
const loopbackOrigin = /^https?:\/\/(?:localhost|127(?:\.\d{1,3}){3}|\[::1\])(?::\d{1,5})?$/i;
const loopbackPeer = /^(?:127\.|::1$|::ffff:127\.)/;

const family = (address: string): 'ipv4' | 'ipv6' => (isIPv6(address) ? 'ipv6' : 'ipv4');

const networks = (list: readonly string[]): BlockList => {
  const trusted = new BlockList();
  for (const entry of list) {
    const [address = '', bits] = entry.split('/');
    try {
      if (bits === undefined) trusted.addAddress(address, family(address));
      else trusted.addSubnet(address, Number(bits), family(address));
    } catch (cause) {
      throw new Fault(`A trusted proxy must be an address or a network such as 10.0.0.0/8, but is ${JSON.stringify(entry)}`, { cause });
    }
  }
  return trusted;
};

const carriesForwarding = (headers: IncomingMessage['headers']): boolean => {
  for (const name in headers) if (name === 'forwarded' || name === 'x-real-ip' || name.startsWith('x-forwarded-')) return true;
  return false;
};

const safeMethods = new Set(['GET', 'HEAD', 'OPTIONS']);

export const createTransport = ({ mode, trustedOrigins, trustedProxies }: TransportSettings): AssertTransport => {
  const proxies = networks(trustedProxies);
  const isProxy = (peer: string): boolean => trustedProxies.length > 0 && proxies.check(peer, family(peer));

  return ({ headers, method = 'GET', socket }) => {
    const peer = socket.remoteAddress ?? '';
    if (carriesForwarding(headers) && !isProxy(peer)) throw new Refusal('FORBIDDEN', 'Forwarding headers are accepted from trusted proxies only');
    if (mode === 'development') {
      const { host = '', origin } = headers;
      if (!loopbackHost.test(host)) throw new Refusal('FORBIDDEN', 'In development mode the Host must be a loopback name');
      if (origin !== undefined && !loopbackOrigin.test(origin)) throw new Refusal('FORBIDDEN', 'In development mode the Origin must be a loopback origin');
      if (!loopbackPeer.test(peer) && !isProxy(peer)) throw new Refusal('FORBIDDEN', 'In development mode requests must come from this host');
    }
    const byCookie = headers.cookie !== undefined && headers['x-api-key'] === undefined && headers.authorization === undefined;
    if (!byCookie || safeMethods.has(method)) return;
    const site = headers['sec-fetch-site'];
    const sameSite = site === undefined || site === 'same-origin';
    if (!sameSite || !trustedOrigins.includes(headers.origin ?? '')) throw new Refusal('FORBIDDEN', 'A trusted browser origin is required');
  };
};
