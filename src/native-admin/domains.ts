/** Where the native admin UIs of Agents are reached: the settings, checked once at the start, and the host of each Agent. (agent-lifecycle 9.2) */
import { getPublicSuffix } from 'tldts';
import type { AgentPlace } from '../agent/service.ts';
import { sha256 } from '../kernel/canonical.ts';
import { Fault } from '../kernel/errors.ts';

export interface NativeAdminSettings {
  /** Every Agent host is one label under it. */
  readonly domain: string;
  /** Agent origins have its scheme and its port; its host is never an Agent's. */
  readonly consoleOrigin: string;
  /** The parent of the console and of all Agent hosts that the session cookie is shared under. */
  readonly cookieDomain: string;
}

export interface AgentHost {
  readonly host: string;
  readonly origin: string;
}

const hashLength = 40;
const label = new RegExp(`^agent-([0-9a-f]{${hashLength}})$`);
/** Names of DNS with at least two labels that leave room for the label of an Agent, and that no IP address is read as. */
const domainName = /^(?=.{3,206}$)(?:[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?\.)+[a-z](?:[a-z0-9-]{0,61}[a-z0-9])?$/;

const isInside = (host: string, domain: string): boolean => host === domain || host.endsWith(`.${domain}`);

/**
 * Checks the settings of the feature against each other.
 * @throws Fault AGENT_NATIVE_ADMIN_INVALID that names the setting
 */
export const nativeAdminSettings = ({
  domain,
  cookieDomain,
  consoleOrigin,
  trustedOrigins,
  isProduction,
}: {
  readonly domain: string | undefined;
  readonly cookieDomain: string | undefined;
  readonly consoleOrigin: string | undefined;
  /** Pages beside the console that may change state. */
  readonly trustedOrigins: readonly string[];
  readonly isProduction: boolean;
}): NativeAdminSettings => {
  const invalid = (text: string): Fault => new Fault(`AGENT_NATIVE_ADMIN_INVALID: ${text}`);
  const checked = (name: string, value: string | undefined): string => {
    if (value === undefined) throw invalid(`${name} is needed for the native admin UI`);
    if (!domainName.test(value)) throw invalid(`${name} must be a domain name in lower case without scheme, port, wildcard or path, but is ${JSON.stringify(value)}`);
    if (getPublicSuffix(value, { allowPrivateDomains: true }) === value) throw invalid(`${name} must not be a public suffix, but is ${JSON.stringify(value)}`);
    return value;
  };
  const suffix = checked('OCC_AGENT_NATIVE_ADMIN_DOMAIN', domain);
  const parent = checked('OCC_AUTH_COOKIE_DOMAIN', cookieDomain);
  if (consoleOrigin === undefined) throw invalid('OCC_AUTH_BASE_URL is needed for the native admin UI');
  const { hostname, protocol } = new URL(consoleOrigin);
  if (isProduction && protocol !== 'https:') throw invalid('OCC_AUTH_BASE_URL must begin with https:// in production');
  if (!isInside(hostname, parent)) throw invalid(`OCC_AUTH_BASE_URL must be inside OCC_AUTH_COOKIE_DOMAIN ${parent}, but its host is ${hostname}`);
  if (!isInside(suffix, parent)) throw invalid(`OCC_AGENT_NATIVE_ADMIN_DOMAIN must be inside OCC_AUTH_COOKIE_DOMAIN ${parent}, but is ${suffix}`);
  const taken = trustedOrigins.map((origin) => new URL(origin).hostname).find((host) => host !== hostname && isInside(host, suffix));
  if (taken !== undefined) throw invalid(`EXUVIA_TRUSTED_ORIGINS must not name a host under OCC_AGENT_NATIVE_ADMIN_DOMAIN, but names ${taken}`);
  return { domain: suffix, consoleOrigin, cookieDomain: parent };
};

/** What stands for an Agent in its host: nobody finds the Agent by it who does not know its ids. */
export const hashOf = (installationId: string, { namespaceId, agentId }: AgentPlace): string => sha256(`${installationId}/${namespaceId}/${agentId}`).slice(0, hashLength);

/** The host of an Agent, and the origin of its pages. */
export const agentHost = ({ domain, consoleOrigin }: NativeAdminSettings, hash: string): AgentHost => {
  const host = `agent-${hash}.${domain}`;
  const { protocol, port } = new URL(consoleOrigin);
  return { host, origin: `${protocol}//${host}${port === '' ? '' : `:${port}`}` };
};

/** Whether a name, as a request gives it, is one that only Agents are served under. */
export const isAgentDomain = ({ domain, consoleOrigin }: NativeAdminSettings, hostname: string): boolean =>
  isInside(hostname, domain) && hostname !== new URL(consoleOrigin).hostname;

/** The hash in an Agent host; undefined for every other name. */
export const hashIn = ({ domain }: NativeAdminSettings, hostname: string): string | undefined =>
  hostname.endsWith(`.${domain}`) ? label.exec(hostname.slice(0, -domain.length - 1))?.[1] : undefined;
