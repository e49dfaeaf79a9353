/** One WebSocket of a browser to the native admin UI, and the one to the gateway behind it. (agent-lifecycle 9.2) */
import { once } from 'node:events';
import type { IncomingMessage } from 'node:http';
import type { Duplex } from 'node:stream';
import { WebSocket, WebSocketServer } from 'ws';
import { Refusal, unavailable } from '../../kernel/errors.ts';
import type { Admitted } from '../../native-admin/service.ts';
import { toGateway } from './headers.ts';
import type { Timers } from './lease.ts';
import { upstreamUrl, type Target } from './target.ts';

const largestMessageBytes = 26_214_400;
const connectWithinMs = 10_000;
/** A side that sends faster than the other one takes is not read for a while. */
const heldBytes = 1_048_576;
const goingAway = 1001;
const policyViolation = 1008;

const keyText = /^[+/0-9A-Za-z]{22}==$/;
const protocolText = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/;

/** The subprotocols a browser offers. @throws Refusal INVALID_REQUEST for what is no handshake */
const protocolsOf = ({ method, headers }: IncomingMessage): readonly string[] => {
  const offered = headers['sec-websocket-protocol']?.split(',').map((protocol) => protocol.trim()) ?? [];
  const isHandshake =
    method === 'GET' && headers.upgrade?.toLowerCase() === 'websocket' && headers['sec-websocket-version'] === '13' && keyText.test(headers['sec-websocket-key'] ?? '');
  if (!isHandshake || new Set(offered).size < offered.length || !offered.every((protocol) => protocolText.test(protocol))) throw new Refusal('INVALID_REQUEST', 'The request is no WebSocket handshake');
  return offered;
};

/** Connects to the gateway, unless `signal` says that there is no time for it; nothing of it is read yet. @throws Refusal INVALID_REQUEST, DEPENDENCY_UNAVAILABLE */
export const connectGateway = async (request: IncomingMessage, { path }: Target, { gateway: { url, token, certificate } }: Admitted, timers: Timers, signal: AbortSignal): Promise<WebSocket> => {
  const protocols = protocolsOf(request);
  const gateway = new WebSocket(upstreamUrl(url, path, 'wss:'), [...protocols], {
    headers: toGateway(request, token),
    maxPayload: largestMessageBytes,
    perMessageDeflate: false,
    ...(certificate !== undefined && { ca: certificate }),
  });
  gateway.once('open', () => gateway.pause());
  const late = new AbortController();
  const prevent = timers.after(connectWithinMs, () => late.abort());
  try {
    await once(gateway, 'open', { signal: AbortSignal.any([signal, late.signal]) });
  } catch (error) {
    gateway.on('error', () => {});
    gateway.terminate();
    throw unavailable('gateway', error);
  } finally {
    prevent();
  }
  // An error is followed by the close that ends both.
  gateway.on('error', () => {});
  return gateway;
};

/** Answers the browser's handshake; undefined when it has left. */
export const acceptBrowser = (request: IncomingMessage, socket: Duplex, head: Buffer, protocol: string): Promise<WebSocket | undefined> =>
  new Promise((resolve) => {
    const server = new WebSocketServer({ noServer: true, clientTracking: false, maxPayload: largestMessageBytes, perMessageDeflate: false, handleProtocols: () => (protocol === '' ? false : protocol) });
    if (socket.destroyed) return resolve(undefined);
    socket.once('close', () => resolve(undefined));
    server.handleUpgrade(request, socket, head, (browser) => {
      browser.on('error', () => {});
      resolve(browser);
    });
  });

const isSendable = (code: number): boolean => code === 1000 || (code >= 1001 && code <= 1014 && ![1004, 1005, 1006].includes(code)) || (code >= 3000 && code <= 4999);

const forward = (from: WebSocket, to: WebSocket): void => {
  from.on('message', (data, binary) => {
    if (to.readyState !== WebSocket.OPEN) return;
    to.send(data as Buffer, { binary }, () => {
      if (from.isPaused && to.bufferedAmount < heldBytes) from.resume();
    });
    if (to.bufferedAmount >= heldBytes) from.pause();
  });
  from.on('close', (code, reason) => (isSendable(code) ? to.close(code, reason) : to.close()));
};

export interface Joined {
  /** Resolves with who closed first, once both have closed. */
  readonly closed: Promise<'CLIENT_CLOSED' | 'GATEWAY_CLOSED'>;
  /** Ends both at once. */
  end(): void;
}

/** Lets each side hear the other. */
export const join = (browser: WebSocket, gateway: WebSocket): Joined => {
  const { promise: first, resolve: closedFirst } = Promise.withResolvers<'CLIENT_CLOSED' | 'GATEWAY_CLOSED'>();
  const closeOf = (side: WebSocket) =>
    new Promise<void>((resolve) => {
      if (side.readyState === WebSocket.CLOSED) return resolve();
      side.once('close', () => {
        closedFirst(side === browser ? 'CLIENT_CLOSED' : 'GATEWAY_CLOSED');
        resolve();
      });
    });
  const both = Promise.all([closeOf(browser), closeOf(gateway)]);
  forward(browser, gateway);
  forward(gateway, browser);
  if (gateway.readyState === WebSocket.OPEN) gateway.resume();
  else {
    closedFirst('GATEWAY_CLOSED');
    browser.close(goingAway);
  }
  return {
    closed: both.then(() => first),
    end: () => {
      gateway.terminate();
      browser.close(policyViolation);
      // The close frame is on its way; a peer that does not answer it must not stay.
      setImmediate(() => browser.terminate());
    },
  };
};
