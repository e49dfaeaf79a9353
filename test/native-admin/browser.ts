/** A browser at an Agent host of a running application: real HTTP and WebSockets, with the Host that DNS would have led here. */
import { once } from 'node:events';
import { request as requestOf, type IncomingHttpHeaders, type IncomingMessage } from 'node:http';
import { WebSocket } from 'ws';

export interface Page {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
  /** Of a refusal. */
  readonly code: string | undefined;
}

type Sent = Readonly<Record<string, string | readonly string[]>>;

const codeIn = (body: string): string | undefined => /^\{"error":\{"code":"(\w+)"/.exec(body)?.[1];

/** Sends one request; rejects when the answer is cut. */
export const browse = async (origin: string, host: string, path: string, { method = 'GET', headers = {}, body }: { readonly method?: string; readonly headers?: Sent; readonly body?: string } = {}): Promise<Page> => {
  const { hostname, port } = new URL(origin);
  const request = requestOf({ hostname, port, path, method, headers: { host, ...headers } as IncomingHttpHeaders, agent: false });
  request.end(body);
  const [response] = (await once(request, 'response')) as [IncomingMessage];
  let text = '';
  for await (const chunk of response.setEncoding('utf8')) text += String(chunk);
  return { status: response.statusCode!, headers: response.headers, body: text, code: codeIn(text) };
};

export interface OpenPage {
  readonly socket: WebSocket;
  /** Resolves with the next message. */
  next(): Promise<{ readonly data: string; readonly binary: boolean }>;
  /** Resolves with the code it was closed with. */
  readonly closed: Promise<number>;
}

/** Opens a WebSocket. @throws Error that names the status of a refusal */
export const openSocket = async (origin: string, host: string, path: string, { headers = {}, protocols = [] }: { readonly headers?: Readonly<Record<string, string>>; readonly protocols?: readonly string[] } = {}): Promise<OpenPage> => {
  const socket = new WebSocket(`${origin.replace('http:', 'ws:')}${path}`, [...protocols], { headers: { host, ...headers } });
  const waiting: ((message: { data: string; binary: boolean }) => void)[] = [];
  const heard: { data: string; binary: boolean }[] = [];
  socket.on('message', (data, binary) => {
    const message = { data: (data as Buffer).toString('utf8'), binary };
    const resolve = waiting.shift();
    if (resolve === undefined) heard.push(message);
    else resolve(message);
  });
  const closed = new Promise<number>((resolve) => socket.once('close', resolve));
  await once(socket, 'open');
  socket.on('error', () => {});
  return { socket, closed, next: async () => heard.shift() ?? new Promise((resolve) => waiting.push(resolve)) };
};
