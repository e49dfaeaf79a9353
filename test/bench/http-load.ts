/** A lean HTTP client for load: one keep-alive connection per caller, one request at a time, answers cut by their length. */
import { connect, type Socket } from 'node:net';

export interface Connection {
  /** Sends one request and gives the body of its answer; rejects unless the status is the expected one. */
  send(request: Request): Promise<string>;
  close(): void;
}

export interface Request {
  readonly method: string;
  readonly path: string;
  readonly body?: string;
  readonly status: number;
}

const headEnd = Buffer.from('\r\n\r\n');

const lengthOf = (head: string): number => Number(/\r\ncontent-length: (\d+)/i.exec(head)?.[1] ?? 0);

export const openConnection = async (origin: string, headers: Readonly<Record<string, string>>): Promise<Connection> => {
  const { hostname, port, host } = new URL(origin);
  const socket: Socket = connect({ host: hostname, port: Number(port), noDelay: true });
  await new Promise<void>((resolve, reject) => socket.once('connect', resolve).once('error', reject));
  const fixed = Object.entries({ host, ...headers }).map(([name, value]) => `${name}: ${value}\r\n`).join('');
  let received = Buffer.alloc(0);
  let waiting: { request: Request; resolve: (body: string) => void; reject: (error: Error) => void } | undefined;
  socket.on('error', (error) => waiting?.reject(error));
  socket.on('close', () => waiting?.reject(new Error('The server closed the connection')));
  socket.on('data', (chunk) => {
    received = received.length === 0 ? chunk : Buffer.concat([received, chunk]);
    const end = received.indexOf(headEnd);
    if (end < 0 || waiting === undefined) return;
    const head = received.toString('latin1', 0, end);
    const total = end + headEnd.length + lengthOf(head);
    if (received.length < total) return;
    const body = received.toString('utf8', end + headEnd.length, total);
    received = received.subarray(total);
    const { request, resolve, reject } = waiting;
    waiting = undefined;
    if (Number(head.slice(9, 12)) === request.status) resolve(body);
    else reject(new Error(`${request.method} ${request.path} answered ${head.slice(9, 12)}: ${body}`));
  });
  return {
    send: (request) =>
      new Promise((resolve, reject) => {
        waiting = { request, resolve, reject };
        const { method, path, body } = request;
        const entity = body === undefined ? '' : `content-type: application/json\r\ncontent-length: ${Buffer.byteLength(body)}\r\n`;
        socket.write(`${method} ${path} HTTP/1.1\r\n${fixed}${entity}\r\n${body ?? ''}`);
      }),
    close: () => socket.destroy(),
  };
};
