/** A gateway started as its launcher starts it, with HTTP and WebSocket clients for it. */
import { spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { WebSocket } from 'ws';
import { reservePort } from '../../src/compute/process/launch.ts';
import type { GatewaySettings } from '../../src/gateway/server.ts';

const entry = fileURLToPath(new URL('../../src/gateway/main.ts', import.meta.url));
const waitLimitMs = 30_000;
const pollMs = 10;

export interface Response {
  readonly ok: boolean;
  readonly payload?: unknown;
  readonly error?: unknown;
}

export interface Client {
  readonly socket: WebSocket;
  readonly challenge: Promise<unknown>;
  /** The close code. */
  readonly closed: Promise<number>;
  readonly call: (method: string, params: object) => Promise<Response>;
}

export interface GatewayProcess extends GatewaySettings {
  readonly folder: string;
  readonly child: ChildProcess;
  readonly exited: Promise<number | null>;
  readonly get: (path: string, token?: string) => Promise<readonly [status: number, body: unknown]>;
  /** Waits until a path answers with this status. */
  readonly until: (path: string, status: number) => Promise<void>;
  readonly client: () => Promise<Client>;
  readonly connected: (scopes?: readonly string[]) => Promise<Client>;
  readonly dispose: () => Promise<void>;
}

export const connectParams = (token: string, scopes: readonly string[] = ['operator.admin']) => ({
  minProtocol: 4,
  maxProtocol: 4,
  client: { id: 'gateway-client', version: '1.0.0', platform: 'linux', mode: 'backend' },
  role: 'operator',
  scopes,
  caps: [],
  auth: { token },
});

export const startGateway = async (document: object, port?: number): Promise<GatewayProcess> => {
  const folder = await mkdtemp(join(tmpdir(), 'exuvia-gateway-'));
  const settings: GatewaySettings = {
    port: port ?? (await reservePort(undefined)),
    token: 'a-private-token',
    revisionId: 'rev_1',
    startId: 'start-1',
    documentPath: join(folder, 'openclaw.json'),
    workspaceFolder: join(folder, 'workspace'),
  };
  await writeFile(settings.documentPath, JSON.stringify(document));
  const child = spawn(process.execPath, [entry], { stdio: ['pipe', 'ignore', 'ignore'], env: { NODE_COMPILE_CACHE: join(tmpdir(), 'exuvia-gateway-code') } });
  child.stdin.end(JSON.stringify(settings));
  const exited = once(child, 'exit').then(([code]) => code as number | null);
  const sockets: WebSocket[] = [];
  const origin = `127.0.0.1:${settings.port}`;

  const get: GatewayProcess['get'] = async (path, token) => {
    const response = await fetch(`http://${origin}${path}`, { headers: token === undefined ? {} : { authorization: `Bearer ${token}` } });
    return [response.status, await response.json()];
  };

  const client = async (): Promise<Client> => {
    const socket = new WebSocket(`ws://${origin}/`);
    sockets.push(socket);
    const challenge = once(socket, 'message').then(([data]) => JSON.parse(String(data)) as unknown);
    const closed = once(socket, 'close').then(([code]) => code as number);
    await challenge;
    let calls = 0;
    return {
      socket,
      challenge,
      closed,
      call: (method, params) =>
        new Promise((resolve) => {
          const id = String((calls += 1));
          const receive = (data: unknown) => {
            const frame = JSON.parse(String(data)) as Response & { readonly id?: string };
            if (frame.id !== id) return;
            socket.off('message', receive);
            resolve(frame);
          };
          socket.on('message', receive);
          socket.send(JSON.stringify({ type: 'req', id, method, params }));
        }),
    };
  };

  return {
    ...settings,
    folder,
    child,
    exited,
    get,
    client,
    until: async (path, status) => {
      const deadline = performance.now() + waitLimitMs;
      while ((await get(path).catch(() => [0] as const))[0] !== status) {
        if (performance.now() > deadline) throw new Error(`Expected ${path} to answer ${status} within ${waitLimitMs} ms`);
        await delay(pollMs);
      }
    },
    connected: async (scopes) => {
      const opened = await client();
      const greeting = await opened.call('connect', connectParams(settings.token, scopes));
      if (!greeting.ok) throw new Error('Expected the gateway to accept the connection');
      return opened;
    },
    dispose: async () => {
      for (const socket of sockets) socket.terminate();
      child.kill('SIGKILL');
      await exited;
      await rm(folder, { recursive: true, force: true });
    },
  };
};
