/**
 * Which headers pass between a browser and a gateway: nothing that carries a credential, an identity, a scope or the way
 * a request came, in either direction. (agent-lifecycle 9.2, iam-auth-audit section 6)
 */
import type { IncomingMessage, OutgoingHttpHeaders } from 'node:http';

/** Of one connection, made anew for the next one, or naming places the other side does not know. */
const ofConnection = new Set(['connection', 'content-length', 'content-location', 'expect', 'host', 'http2-settings', 'keep-alive', 'referer', 'refresh', 'te', 'trailer', 'transfer-encoding', 'upgrade']);

const withheld = [
  /^proxy-|^sec-websocket-/,
  // Credentials; what would take the session cookie away, or make a browser ask for a password.
  /^(?:set-)?cookie2?$|^clear-site-data$|authorization|authenticate|api-?key|(?:access|api|auth|bearer|id|refresh|session)-token/,
  // The way of a request, and what would make the gateway read another one.
  /^forwarded$|^via$|^x-forwarded|^x-original-|^x-rewrite-|^x-envoy-|-ip$|^x-real-|method-override|^x-http-method/,
  // Who somebody is, and what they may do.
  /^(?:x-)?(?:occ|oce|openclaw|tailscale|remote|user(?!-agent$)|auth|webauth|scopes?|roles?)(?:-|$)/,
  /(?:^|-)(?:identity|principal|jwt|oidc)(?:-|$)/,
  // What would let pages of other hosts read the answers, or a script outlive its page.
  /^access-control-|^service-worker|^alt-svc$/,
];

const passes = (name: string): boolean => /^[a-z0-9-]+$/.test(name) && !ofConnection.has(name) && !withheld.some((pattern) => pattern.test(name));

const passed = ({ rawHeaders, headers }: IncomingMessage): OutgoingHttpHeaders => {
  const named = new Set((headers.connection ?? '').toLowerCase().split(',').map((name) => name.trim()));
  const kept: Record<string, string[]> = {};
  for (let index = 0; index < rawHeaders.length; index += 2) {
    const name = rawHeaders[index]!.toLowerCase();
    if (passes(name) && !named.has(name)) (kept[name] ??= []).push(rawHeaders[index + 1]!);
  }
  return kept;
};

const length = ({ headers }: IncomingMessage): OutgoingHttpHeaders | undefined => (headers['content-length'] === undefined ? undefined : { 'content-length': headers['content-length'] });

/** Where the body of a request ends, told in the way it was told; Node alone tells it of no method that usually has none, and the gateway would take such a body for the next request. */
export const framing = (request: IncomingMessage): OutgoingHttpHeaders => length(request) ?? (request.headers['transfer-encoding'] === undefined ? {} : { 'transfer-encoding': 'chunked' });

/** What the gateway gets of a browser's request; it knows the control plane by its token. */
export const toGateway = (request: IncomingMessage, token: string): OutgoingHttpHeaders => ({ ...passed(request), authorization: `Bearer ${token}` });

/** What a browser gets of the gateway's answer: no service worker is ever registered, and nothing is kept that was not asked for again. */
export const toBrowser = (answer: IncomingMessage): OutgoingHttpHeaders => {
  const kept = passed(answer);
  const policies = [kept['content-security-policy'] ?? [], "worker-src 'none'"].flat();
  return { ...kept, ...length(answer), 'content-security-policy': policies.join(', '), 'cache-control': 'no-store', 'x-content-type-options': 'nosniff' };
};
