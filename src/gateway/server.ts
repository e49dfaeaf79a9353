/** The gateway's one loopback listener: health endpoints, the private status, and the WebSocket of section 11.2. */
import { createServer } from 'node:http';
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import { WebSocketServer } from 'ws';
import { sameSecret } from './connect.ts';
import { serveConnection } from './connection.ts';
import type { GatewayDocument } from './document.ts';
import { closing, largestFrameBytes } from './protocol.ts';
import { workspaceFiles } from './workspace-files.ts';

/** What the launcher hands to a gateway on its standard input, once the child's record is durable. */
export interface GatewaySettings {
  readonly port: number;
  readonly token: string;
  readonly revisionId: string;
  /** Names this start of this child, and no other. */
  readonly startId: string;
  readonly documentPath: string;
  readonly workspaceFolder: string;
}

/** Evidence of a start that was held. (agent-lifecycle 3.8) */
export interface GatewayFailure {
  readonly component: 'gateway';
  readonly check: string;
  readonly checkedAt: string;
  readonly code: string;
  readonly cause?: { readonly kind: string; readonly detail?: string };
}

export type GatewayPhase = 'starting' | 'ready' | 'held' | 'draining';

export interface Gateway {
  /** Ends the start: ready, or held with its evidence. */
  readonly settle: (outcome: 'ready' | GatewayFailure) => void;
  /** Refuses new work and closes every connection. */
  readonly close: () => Promise<void>;
}

const version = '1.0.0';
const health = new Map([['/health', '/healthz'], ['/startup', '/startupz'], ['/ready', '/readyz']]);

/** Listens on the loopback port; the answer is live but not ready until it is settled. @throws EADDRINUSE */
export const openGateway = async (settings: GatewaySettings, document: GatewayDocument): Promise<Gateway> => {
  let phase: GatewayPhase = 'starting';
  let runtimeFailure: GatewayFailure | undefined;

  const respond = (request: IncomingMessage): readonly [status: number, body: object] => {
    const path = request.url?.split('?')[0] ?? '/';
    switch (health.get(path) ?? path) {
      case '/healthz':
        return [200, { ok: true, status: 'live' }];
      case '/startupz':
        if (phase === 'ready') return [200, { ok: true, status: 'started' }];
        return [503, { ok: false, status: phase === 'draining' ? 'draining' : 'starting' }];
      case '/readyz':
        return phase === 'ready' ? [200, { ready: true }] : [503, { ready: false, failing: [phase === 'draining' ? 'draining' : 'startup'] }];
      case '/openclaw/runtime/status': {
        if (!authorized(request, settings.token)) return [401, { error: 'unauthorized' }];
        const { revisionId, startId } = settings;
        return [200, { revisionId, container: 'gateway', startId, ...(runtimeFailure && { runtimeFailure }) }];
      }
      default:
        return [404, { error: 'not found' }];
    }
  };

  const server = createServer((request, response) => {
    if (request.method === 'GET' || request.method === 'HEAD') return answer(response, ...respond(request));
    response.setHeader('allow', 'GET, HEAD');
    answer(response, 405, { error: 'method not allowed' });
  });
  const sockets = new WebSocketServer({ server, path: '/', maxPayload: largestFrameBytes, perMessageDeflate: false });
  const files = workspaceFiles(settings.workspaceFolder, document.agentId);
  const context = { token: settings.token, agentId: document.agentId, version, files, ready: () => phase === 'ready' };
  sockets.on('connection', (socket) => serveConnection(socket, context));
  await listen(server, sockets, settings.port);

  return {
    settle: (outcome) => {
      if (phase === 'draining') return;
      phase = outcome === 'ready' ? 'ready' : 'held';
      runtimeFailure = outcome === 'ready' ? undefined : outcome;
    },
    close: async () => {
      phase = 'draining';
      const closed = new Promise<void>((resolve) => server.close(() => resolve()));
      for (const socket of sockets.clients) {
        socket.close(closing.goingAway);
        // The close frame is on its way; a peer that does not answer it must not hold the exit.
        setImmediate(() => socket.terminate());
      }
      server.closeAllConnections();
      await closed;
    },
  };
};

const listen = (server: Server, sockets: WebSocketServer, port: number): Promise<void> =>
  new Promise((resolve, reject) => {
    // `ws` repeats the server's errors; without its own listener one of them would be uncaught.
    sockets.once('error', reject);
    server.listen(port, '127.0.0.1', () => {
      sockets.off('error', reject);
      resolve();
    });
  });

const authorized = (request: IncomingMessage, token: string): boolean => {
  const [, given] = /^Bearer (.+)$/.exec(request.headers.authorization ?? '') ?? [];
  return given !== undefined && sameSecret(given, token);
};

const answer = (response: ServerResponse, status: number, body: object): void => {
  response.writeHead(status, { 'content-type': 'application/json; charset=utf-8', 'cache-control': 'no-store' });
  response.end(JSON.stringify(body));
};
