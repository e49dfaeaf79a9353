/** Bytes that no client library sends: every answer that comes is one of ours, and the server goes on. (rest-contract 1.3, 1.7; client-expectations CX-18) */
import { connect } from 'node:net';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startTestApplication, type TestApplication } from '../support/app.ts';
import { followEvents } from '../support/request-events.ts';

let application: TestApplication;
let newEvents: ReturnType<typeof followEvents>;
beforeAll(async () => {
  application = await startTestApplication({ env: { EXUVIA_ROLES: 'api,projector', EXUVIA_MODE: 'production' } });
  newEvents = followEvents(application.database);
  await newEvents();
});
afterAll(() => application?.close());

interface Answer {
  readonly status: number;
  readonly head: string;
  readonly body: string;
}

/** All answers in what was received; each says how long its body is. */
const answersIn = (received: Buffer): readonly Answer[] => {
  const end = received.indexOf('\r\n\r\n');
  if (end === -1) return [];
  const head = received.subarray(0, end).toString('latin1');
  const length = Number(/^content-length: (\d+)$/im.exec(head)?.[1] ?? 0);
  const body = received.subarray(end + 4, end + 4 + length).toString();
  const rest = answersIn(received.subarray(end + 4 + length));
  const status = Number(head.split(' ')[1]);
  return status === 100 ? rest : [{ status, head, body }, ...rest];
};

/** Sends bytes, and gives the answers until the server closes, which every row brings about. */
const answersTo = (bytes: string | Buffer): Promise<readonly Answer[]> =>
  new Promise((resolve, reject) => {
    const { hostname, port } = new URL(application.origin);
    const socket = connect(Number(port), hostname);
    const received: Buffer[] = [];
    socket.setTimeout(10_000, () => socket.destroy(new Error(`Neither an answer nor an end after ${JSON.stringify(bytes.toString().slice(0, 200))}`)));
    socket.on('data', (chunk) => received.push(chunk));
    socket.on('error', (error: NodeJS.ErrnoException) => (error.code === 'ECONNRESET' || error.code === 'EPIPE' ? undefined : reject(error)));
    socket.on('close', () => resolve(answersIn(Buffer.concat(received))));
    socket.write(bytes);
  });

/** In the envelope of REST, or a result of GraphQL. */
const expectOurs = ({ status, head, body }: Answer): void => {
  const requestId = /^x-request-id: (req_[0-9a-f-]{36})$/im.exec(head)?.[1];
  expect(head).toMatch(/^cache-control: no-store$/im);
  expect(head).toMatch(/^x-content-type-options: nosniff$/im);
  expect(head).toMatch(/^content-type: application\/json; charset=utf-8$/im);
  const envelope = JSON.parse(body) as { error?: object; data?: unknown; meta?: { requestId: string } };
  expect(requestId).toBeDefined();
  expect(status >= 400 ? envelope.error : envelope.data).toBeDefined();
  expect([undefined, requestId]).toContain(envelope.meta?.requestId);
};

const key = () => `x-api-key: ${application.key}\r\n`;
const get = (target: string, more = '') => `GET ${target} HTTP/1.1\r\nhost: localhost\r\n${key()}${more}\r\n`;
const post = (target: string, more: string, body: string) => `POST ${target} HTTP/1.1\r\nhost: localhost\r\n${key()}content-type: application/json\r\n${more}\r\n${body}`;
const close = 'connection: close\r\n';

type Row = readonly [what: string, bytes: () => string | Buffer, statuses: readonly number[]];

const rows: readonly Row[] = [
  ['no HTTP', () => 'lobster\r\n\r\n', [400]],
  ['a TLS greeting', () => Buffer.from('16030100a5010000a10303', 'hex'), [400]],
  ['HTTP/2 from the start', () => 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n', [400]],
  ['an unknown method', () => 'LOBSTER /namespaces HTTP/1.1\r\nhost: localhost\r\n\r\n', [400]],
  ['an old version', () => `GET /installation HTTP/1.0\r\n${key()}\r\n`, [200]],
  ['a version there is not', () => 'GET /installation HTTP/9.9\r\nhost: localhost\r\n\r\n', [400]],
  ['no Host', () => `GET /installation HTTP/1.1\r\n${key()}${close}\r\n`, [400]],
  ['two Hosts', () => get('/installation', `host: evil.example\r\n${close}`), [200]],
  ['a length that is no number', () => post('/namespaces', 'content-length: lobster\r\n', '{}'), [400]],
  ['a negative length', () => post('/namespaces', 'content-length: -1\r\n', '{}'), [400]],
  ['a length beyond every number', () => post('/namespaces', `content-length: ${'9'.repeat(30)}\r\n`, '{}'), [400]],
  ['two lengths', () => post('/namespaces', 'content-length: 2\r\ncontent-length: 3\r\n', '{}'), [400]],
  ['a length beside chunks', () => post('/namespaces', 'content-length: 2\r\ntransfer-encoding: chunked\r\n', '2\r\n{}\r\n0\r\n\r\n'), [400]],
  ['chunks of no size', () => post('/namespaces', 'transfer-encoding: chunked\r\n', 'lobster\r\n{}\r\n'), [400]],
  ['an encoding there is not', () => post('/namespaces', 'transfer-encoding: lobster\r\n', '{}'), [400]],
  ['two keys', () => get('/installation', `x-api-key: another\r\n${close}`), [401]],
  ['two media types', () => post('/namespaces', `content-type: text/plain\r\ncontent-length: 2\r\n${close}`, '{}'), [400]],
  ['a header without a name', () => get('/installation', ': a\r\n'), [400]],
  ['a header with a space before its colon', () => get('/installation', 'x-a : b\r\n'), [400]],
  ['a folded header', () => get('/installation', 'x-a: b\r\n c\r\n'), [400]],
  ['a header that ends in half a line', () => get('/installation', 'x-a: b\nx-c: d\r\n'), [400]],
  ['headers without an end', () => get('/installation', `x-a: ${'a'.repeat(40_000)}\r\n`), [400]],
  ['a target of a proxy', () => get('http://elsewhere.example/installation', close), [200]],
  ['a target of a proxy at /graphql', () => post('http://elsewhere.example/graphql', `content-length: 26\r\n${close}`, '{"query":"{ __typename }"}'), [200]],
  ['a target that is an authority', () => 'CONNECT localhost:80 HTTP/1.1\r\nhost: localhost\r\n\r\n', []],
  ['a target of everything', () => `OPTIONS * HTTP/1.1\r\nhost: localhost\r\n${close}\r\n`, [404]],
  ['a target without a slash', () => get('installation', close), [400]],
  ['a target with a space', () => get('/installation /namespaces'), [400]],
  ['a wish to speak otherwise', () => get('/installation', 'connection: close, upgrade\r\nupgrade: websocket\r\n'), [200]],
  ['three requests at once', () => get('/installation') + get('/lobster') + get('/installation', close), [200, 404, 200]],
  ['a request behind one that is none', () => `lobster\r\n\r\n${get('/installation', close)}`, [400]],
  ['a request in the body of another', () => post('/namespaces', `content-length: ${get('/installation').length}\r\n`, get('/installation')) + get('/lobster', close), [400, 404]],
  ['a body behind a route that takes none', () => get('/installation', 'content-length: 2\r\n') + '{}' + get('/lobster', close), [400, 404]],
];

describe('each answer to', () => {
  it.each(rows)('%s is ours', async (_, bytes, statuses) => {
    const answers = await answersTo(bytes());
    expect(answers.map(({ status }) => status)).toEqual(statuses);
    answers.forEach(expectOurs);
    expect(await newEvents()).toEqual([]);
    expect((await fetch(`${application.origin}/healthz`)).status).toBe(200);
  });
});
