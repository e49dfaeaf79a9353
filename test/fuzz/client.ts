/** Sends requests that ordinary clients would not send, on kept connections, and gives the answers as they came. */
import { Agent, request as open } from 'node:http';
import type { FuzzRequest } from './rest-requests.ts';

export interface FuzzAnswer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | readonly string[] | undefined>>;
  /** Of an event stream, its first event; without a `data` line where none came at once. */
  readonly body: string;
}

export interface FuzzClient {
  /** @throws when no complete answer comes within 30 s */
  send(request: FuzzRequest): Promise<FuzzAnswer>;
  close(): void;
}

const deadlineMs = 30_000;
/** How long a stream may be silent before it is left. */
const silenceMs = 500;

/** The header lines of a request, in order. */
export const linesOf = ({ credential, headers }: FuzzRequest): readonly (readonly [name: string, value: string])[] => [...Object.entries(credential.headers), ...headers];

export const createFuzzClient = (origin: string): FuzzClient => {
  const { hostname, port, host } = new URL(origin);
  const agent = new Agent({ keepAlive: true, maxSockets: 32 });

  const once = (fuzzed: FuzzRequest): Promise<FuzzAnswer> =>
    new Promise((resolve, reject) => {
      const lines = linesOf(fuzzed);
      const named = (wanted: string) => lines.some(([name]) => name === wanted);
      const raw = [...(named('host') ? [] : [['host', host] as const]), ...lines, ...(fuzzed.body === undefined ? [] : [['content-length', String(fuzzed.body.length)] as const])];
      const outgoing = open({ agent, hostname, port, method: fuzzed.method, path: fuzzed.target, headers: raw.flat() as never, timeout: deadlineMs });
      outgoing.on('timeout', () => outgoing.destroy(new Error(`No answer within ${deadlineMs} ms`)));
      outgoing.on('error', reject);
      outgoing.on('response', (response) => {
        const chunks: Buffer[] = [];
        const finish = () => resolve({ status: response.statusCode!, headers: response.headers, body: Buffer.concat(chunks).toString() });
        const streams = response.headers['content-type']?.startsWith('text/event-stream') === true;
        const leave = () => {
          finish();
          response.destroy();
        };
        const silence = streams ? setTimeout(leave, silenceMs) : undefined;
        response.on('close', () => clearTimeout(silence));
        response.on('data', (chunk: Buffer) => {
          chunks.push(chunk);
          if (streams && /^data: .*\n\n/m.test(Buffer.concat(chunks).toString())) leave();
        });
        response.on('end', finish);
        response.on('error', reject);
      });
      outgoing.end(fuzzed.body);
    });

  /** A kept connection may have been closed under the request, as any client of HTTP must expect; a fresh one tells. */
  const send: FuzzClient['send'] = async (fuzzed) => {
    try {
      return await once(fuzzed);
    } catch (error) {
      if (!(error instanceof Error && 'code' in error && (error.code === 'ECONNRESET' || error.code === 'EPIPE'))) throw error;
      return await once(fuzzed);
    }
  };
  return { send, close: () => agent.destroy() };
};
