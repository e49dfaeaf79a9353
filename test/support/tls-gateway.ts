/** A gateway with TLS on loopback: it keeps what it was asked, and answers what a test says. */
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { WebSocketServer, type WebSocket } from 'ws';
import type { GatewayEndpoint } from '../../src/compute/driver.ts';

const folder = join(import.meta.dirname, 'eventstoredb/tls');
const certificate = readFileSync(join(folder, 'certificate.pem'), 'utf8');

export interface GatewayRequest {
  readonly method: string;
  readonly url: string;
  readonly headers: IncomingMessage['headers'];
  readonly body: string;
}

export interface TlsGateway {
  /** Verified by its own certificate, below a base. */
  readonly endpoint: GatewayEndpoint;
  /** What it was asked, upgrades included. */
  readonly requests: GatewayRequest[];
  /** Open WebSockets. */
  readonly sockets: ReadonlySet<WebSocket>;
  /** Answers a request; it is forgotten after each test. */
  answer: (request: GatewayRequest, response: ServerResponse) => void;
  /** What a WebSocket does once it is open; by default it repeats what it hears. */
  opened: (socket: WebSocket) => void;
  /** Whether WebSockets are let in; `silent` says neither. */
  accepts: boolean | 'silent';
  /** Whether one that was told nothing has gone. */
  left: boolean;
  reset(): void;
  close(): Promise<void>;
}

const echo = (socket: WebSocket): void => void socket.on('message', (data, binary) => socket.send(data as Buffer, { binary }));
const ok = (_: GatewayRequest, response: ServerResponse): void => void response.writeHead(200, { 'content-type': 'text/html' }).end('<title>native</title>');

export const startTlsGateway = async (): Promise<TlsGateway> => {
  const server = createServer({ cert: certificate, key: readFileSync(join(folder, 'key.pem')) }, (request, response) => {
    let body = '';
    request.setEncoding('utf8').on('data', (text: string) => (body += text));
    request.on('end', () => {
      const asked = { method: request.method!, url: request.url!, headers: request.headers, body };
      gateway.requests.push(asked);
      gateway.answer(asked, response);
    });
  });
  const sockets = new WebSocketServer({ noServer: true, handleProtocols: (offered) => [...offered].at(-1) ?? false });
  server.on('upgrade', (request, socket, head) => {
    gateway.requests.push({ method: request.method!, url: request.url!, headers: request.headers, body: '' });
    if (gateway.accepts === 'silent') return void socket.on('error', () => socket.destroy()).once('close', () => (gateway.left = true)).resume();
    if (!gateway.accepts) return void socket.end('HTTP/1.1 403 Forbidden\r\nconnection: close\r\n\r\n');
    sockets.handleUpgrade(request, socket, head, (opened) => gateway.opened(opened));
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const gateway: TlsGateway = {
    endpoint: { url: `wss://127.0.0.1:${(server.address() as AddressInfo).port}/base`, token: 'gateway-token', certificate },
    requests: [],
    sockets: sockets.clients,
    answer: ok,
    opened: echo,
    accepts: true,
    left: false,
    reset: () => Object.assign(gateway, { answer: ok, opened: echo, accepts: true, left: false }) && void gateway.requests.splice(0),
    close: async () => {
      for (const socket of sockets.clients) socket.terminate();
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
  return gateway;
};
