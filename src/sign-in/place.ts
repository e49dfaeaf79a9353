/** Where a client is, as guesses of passwords are counted and lined up by it. (iam-auth-audit 6) */
import { isIP } from 'node:net';

/** What one client can choose its address from: of IPv6 a whole /64. */
export const placeOf = (address: string): string => {
  const mapped = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i.exec(address)?.[1];
  if (mapped !== undefined || isIP(address) !== 6) return mapped ?? address;
  const [head = [], tail = []] = address.split('%')[0]!.split('::').map((part) => (part === '' ? [] : part.split(':')));
  const groups = [...head, ...Array<string>(8 - head.length - tail.length).fill('0'), ...tail].slice(0, 4);
  return groups.map((group) => Number.parseInt(group, 16).toString(16)).join(':');
};
