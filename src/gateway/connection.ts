/** One client connection of the gateway: challenge, handshake, then methods under the scopes it was granted. */
import { randomUUID } from 'node:crypto';
import type { RawData, WebSocket } from 'ws';
import { judgeConnect } from './connect.ts';
import type { Scope } from './connect.ts';
import {
  closing, eventText, handshakeLimitMs, largestFrameBeforeConnectBytes, largestFrameBytes, parseRequest, protocolVersion, refuse, responseText,
} from './protocol.ts';
import type { Answer, RequestFrame } from './protocol.ts';
import type { WorkspaceFiles } from './workspace-files.ts';

export interface ConnectionContext {
  readonly token: string;
  readonly agentId: string;
  readonly version: string;
  readonly files: WorkspaceFiles;
  /** Whether the start is over and went well. */
  readonly ready: () => boolean;
}

interface Method {
  /** Any one of these scopes suffices. */
  readonly scopes: readonly Scope[];
  readonly answer: (params: unknown) => Promise<Answer>;
}

const retryAfterMs = 500;

/** Serves a freshly opened socket until it closes. (compute-drivers 11.2) */
export const serveConnection = (socket: WebSocket, context: ConnectionContext): void => {
  const methods: Readonly<Record<string, Method>> = {
    'agents.files.get': { scopes: ['operator.admin', 'operator.read'], answer: context.files.get },
    'agents.files.set': { scopes: ['operator.admin'], answer: context.files.set },
  };
  let granted: readonly string[] | undefined;

  const silence = setTimeout(() => socket.close(closing.silent), handshakeLimitMs);
  socket.once('close', () => clearTimeout(silence));
  // A broken frame ends its own connection; `ws` closes it with the fitting code.
  socket.on('error', () => socket.terminate());
  socket.send(eventText('connect.challenge', { nonce: randomUUID(), ts: Date.now() }));

  const connect = ({ id, method, params }: RequestFrame): void => {
    if (method !== 'connect') {
      socket.send(responseText(id, refuse('INVALID_REQUEST', 'invalid handshake: first request must be connect')));
      return socket.close(closing.policy);
    }
    const verdict = judgeConnect(params, context.token);
    if ('error' in verdict) {
      socket.send(responseText(id, { error: verdict.error }));
      return socket.close(verdict.closeCode);
    }
    if (!context.ready()) {
      const details = { reason: 'startup-sidecars' };
      socket.send(responseText(id, { error: { code: 'UNAVAILABLE', message: 'gateway starting', details, retryable: true, retryAfterMs } }));
      return socket.close(closing.tryLater);
    }
    clearTimeout(silence);
    granted = verdict.scopes;
    const payload = {
      type: 'hello-ok',
      protocol: protocolVersion,
      server: { version: context.version },
      features: { methods: Object.keys(methods), events: ['connect.challenge'] },
      auth: { role: 'operator', scopes: granted },
      policy: { maxPayload: largestFrameBytes },
      snapshot: { sessionDefaults: { defaultAgentId: context.agentId, ownership: 'sole', selectionRequired: false } },
    };
    socket.send(responseText(id, { payload }));
  };

  const call = async (scopes: readonly string[], { id, method, params }: RequestFrame): Promise<void> => {
    const send = (answer: Answer) => socket.send(responseText(id, answer));
    const target = Object.hasOwn(methods, method) ? methods[method] : undefined;
    if (target === undefined) return send(refuse('INVALID_REQUEST', 'unknown method'));
    if (!target.scopes.some((scope) => scopes.includes(scope)))
      return send(refuse('FORBIDDEN', 'missing scope', { code: 'MISSING_SCOPE', missingScope: target.scopes.at(-1) }));
    try {
      send(await target.answer(params));
    } catch (error) {
      const { code = 'UNKNOWN' } = error as NodeJS.ErrnoException;
      process.stderr.write(`${method} failed: ${code}\n`);
      send(refuse('UNAVAILABLE', 'the workspace file could not be served'));
    }
  };

  socket.on('message', (data: RawData, isBinary: boolean) => {
    const bytes = data as Buffer;
    if (granted === undefined && bytes.length > largestFrameBeforeConnectBytes) return socket.close(closing.tooBig);
    const request = isBinary ? undefined : parseRequest(bytes.toString('utf8'));
    if (request === undefined) return socket.close(closing.policy);
    if (granted === undefined) connect(request);
    else void call(granted, request);
  });
};
