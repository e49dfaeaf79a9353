/** HTTP as bytes on a socket: for requests that no client library agrees to send, and answers seen as they are. */
import { connect } from 'node:net';

export interface RawAnswer {
  readonly status: number;
  readonly headers: ReadonlyMap<string, string>;
  readonly body: string;
}

const deadlineMs = 20_000;

const parseAnswer = (received: Buffer): RawAnswer | undefined => {
  const text = received.toString('latin1');
  const end = text.indexOf('\r\n\r\n');
  if (end === -1) return undefined;
  const [statusLine = '', ...lines] = text.slice(0, end).split('\r\n');
  const headers = new Map(lines.map((line) => [line.slice(0, line.indexOf(':')).toLowerCase(), line.slice(line.indexOf(':') + 1).trim()]));
  const body = received.subarray(end + 4);
  const status = Number(statusLine.split(' ')[1]);
  if (status === 100) return parseAnswer(body);
  return body.length < Number(headers.get('content-length') ?? 0) ? undefined : { status, headers, body: body.toString() };
};

/** Sends exactly these bytes and gives the first complete answer. */
export const exchange = (origin: string, request: string | Buffer): Promise<RawAnswer> =>
  new Promise((resolve, reject) => {
    const { hostname, port } = new URL(origin);
    const socket = connect(Number(port), hostname.replace(/^\[|\]$/g, ''));
    let received = Buffer.alloc(0);
    const settle = (act: () => void): void => {
      socket.removeAllListeners();
      socket.on('error', () => {});
      socket.destroy();
      act();
    };
    const failed = (why: string) => settle(() => reject(new Error(`${why}; expected a complete answer, received ${JSON.stringify(received.toString())}`)));
    socket.setTimeout(deadlineMs, () => failed(`Nothing came for ${deadlineMs} ms`));
    socket.on('error', (error) => failed(error.message));
    socket.on('close', () => failed('The connection was closed'));
    socket.on('data', (bytes) => {
      received = Buffer.concat([received, bytes]);
      const answer = parseAnswer(received);
      if (answer !== undefined) settle(() => resolve(answer));
    });
    socket.write(request);
  });
