/** Whether a gateway can be opened as it is configured and as it is reached. (agent-lifecycle 9.1 row 6, iam-auth-audit section 6) */
import { BlockList, isIP } from 'node:net';
import type { GatewayEndpoint } from '../compute/driver.ts';

const privateNetworks = new BlockList();
for (const [network, bits] of [['127.0.0.0', 8], ['10.0.0.0', 8], ['172.16.0.0', 12], ['192.168.0.0', 16], ['100.64.0.0', 10], ['169.254.0.0', 16]] as const) privateNetworks.addSubnet(network, bits, 'ipv4');
for (const [network, bits] of [['::1', 128], ['fc00::', 7], ['fe80::', 10]] as const) privateNetworks.addSubnet(network, bits, 'ipv6');

/** Names are what Compute says they are; an address tells by itself. */
const isPrivate = (hostname: string): boolean => {
  const address = hostname.replace(/^\[|\]$/g, '');
  const family = isIP(address);
  return family === 0 || privateNetworks.check(address, family === 4 ? 'ipv4' : 'ipv6');
};

/** A private `wss:` base without credentials, query or fragment. */
export const isCleanEndpoint = ({ url }: GatewayEndpoint): boolean => {
  const parsed = URL.parse(url);
  if (parsed === null || /[?#]/.test(url)) return false;
  const { protocol, username, password, hostname } = parsed;
  return protocol === 'wss:' && username === '' && password === '' && isPrivate(hostname);
};

const member = (value: unknown, name: string): unknown => (typeof value === 'object' && value !== null && Object.hasOwn(value, name) ? (value as Record<string, unknown>)[name] : undefined);

/** Whether the native document serves its UI to pages of this origin, and to no page for its Host header or without a paired device. */
export const allowsNativeAdmin = (document: unknown, origin: string): boolean => {
  const controlUi = member(member(document, 'gateway'), 'controlUi');
  const origins = member(controlUi, 'allowedOrigins');
  return (
    member(controlUi, 'enabled') !== false &&
    (origins === undefined || (Array.isArray(origins) && origins.includes(origin))) &&
    member(controlUi, 'dangerouslyAllowHostHeaderOriginFallback') !== true &&
    member(controlUi, 'dangerouslyDisableDeviceAuth') !== true
  );
};
