/** Bodies: their limits, their media type, their syntax, and the routes that take none. (rest-contract 1.1 steps 6 and 7, 1.10; client-expectations CX-16, CX-20, CX-27) */
import { connect } from 'node:net';
import { beforeEach, describe, expect, it } from 'vitest';
import { createMetrics } from '../../src/telemetry/metrics.ts';
import { exchange } from '../support/raw-http.ts';
import { until } from '../support/until.ts';
import { agentId, configurationId, errorOf, key, namespaceId, requestBytes, startEdge, type Edge } from './edge.ts';
import { agentView, configurationView, installationView, namespaceView, revisionView } from './views.ts';

const agents = `/namespaces/${namespaceId}/agents`;
const agent = `${agents}/${agentId}`;

let edge: Edge;
beforeEach(async () => {
  edge = await startEdge({
    answers: {
      'installation.get': installationView,
      'namespaces.create': namespaceView,
      'agents.create': agentView,
      'agents.deploy': revisionView,
      'agents.stop': agentView,
      'agents.delete': agentView,
      'configurations.create': configurationView,
    },
  });
});

const chunked = (method: string, path: string, chunks: readonly string[], more = ''): string =>
  `${method} ${path} HTTP/1.1\r\nhost: localhost\r\nx-api-key: ${key}\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n${more}\r\n` +
  [...chunks, ''].map((chunk) => `${Buffer.byteLength(chunk).toString(16)}\r\n${chunk}\r\n`).join('');

/** A creation of exactly this many bytes. */
const agentOf = (bytes: number): string => {
  const empty = JSON.stringify({ name: 'Mara', configurationId });
  return empty.slice(0, -1) + ' '.repeat(bytes - empty.length) + '}';
};

describe('limits', () => {
  const namespaceOf = (bytes: number): string => '{"name":"a"' + ' '.repeat(bytes - 12) + '}';

  it.each([
    ['64 KiB', 65_536, 201],
    ['64 KiB and a byte', 65_537, 413],
  ])('%s by default', async (_, bytes, status) => {
    expect((await edge.send({ method: 'POST', path: '/namespaces', body: namespaceOf(bytes) })).status).toBe(status);
  });

  it.each([
    ['448 KiB', 458_752, 201],
    ['448 KiB and a byte', 458_753, 413],
  ])('%s for the creation of an Agent', async (_, bytes, status) => {
    expect((await edge.send({ method: 'POST', path: agents, body: agentOf(bytes) })).status).toBe(status);
  });

  it('count what comes in chunks', async () => {
    expect((await exchange(edge.origin, chunked('POST', '/namespaces', ['{"name"', ':"a"}']))).status).toBe(201);
    const answer = await exchange(edge.origin, chunked('POST', '/namespaces', Array<string>(9).fill('x'.repeat(8_000))));
    expect({ status: answer.status, code: errorOf(answer).code }).toEqual({ status: 413, code: 'PAYLOAD_TOO_LARGE' });
  });

  it('are told before a client that asks first sends anything', async () => {
    const answer = await edge.send({ method: 'POST', path: '/namespaces', headers: { 'content-length': '70000', expect: '100-continue' } });
    expect(answer.status).toBe(413);
  });
});

describe('media type and syntax', () => {
  it.each([
    ['application/json', 201],
    ['application/json; charset=utf-8', 201],
    ['Application/JSON;charset="UTF-8"', 201],
    ['text/plain', 415],
    ['application/x-www-form-urlencoded', 415],
    ['application/jsonp', 415],
    ['application/merge-patch+json', 415],
    ['nonsense', 415],
    ['-', 415],
  ])('%s: %i', async (type, status) => {
    expect((await edge.send({ method: 'POST', path: '/namespaces', headers: { 'content-type': type }, body: '{"name":"a"}' })).status).toBe(status);
  });

  it.each([
    ['no byte', ''],
    ['white space', ' '],
    ['a word', 'hello'],
    ['an open object', '{"name":"a"'],
    ['two values', '{"name":"a"}{}'],
    ['bytes that are no UTF-8', Buffer.from([0x7b, 0x22, 0xff, 0x22, 0x7d])],
  ])('%s is no JSON', async (_, body) => {
    const answer = await edge.send({ method: 'POST', path: '/namespaces', body });
    expect(answer.status).toBe(400);
    expect(errorOf(answer)).toEqual({ code: 'INVALID_REQUEST', message: expect.any(String) as string });
  });

  it.each([['null'], ['[]'], ['"name"'], ['7']])('%s is not the object a route takes', async (body) => {
    const answer = await edge.send({ method: 'POST', path: '/namespaces', body });
    expect(answer.status).toBe(400);
    expect(errorOf(answer).details).toEqual([{ path: '', code: 'INVALID_TYPE' }]);
  });

  it('a number that no number can hold is refused where it stands', async () => {
    const answer = await edge.send({ method: 'POST', path: `/namespaces/${namespaceId}/configurations`, body: '{"kind":"agent","values":{"limits":[1e308,1e309]}}' });
    expect(answer.status).toBe(400);
    expect(errorOf(answer).details).toEqual([{ path: '/values/limits/1', code: 'INVALID_VALUE' }]);
  });

  it.each([
    ['is cut', 'x'.repeat(20_000), `/${'x'.repeat(511)}`],
    ['loses half an escape', `${'x'.repeat(510)}~`, `/${'x'.repeat(510)}`],
    ['loses half a character', `${'x'.repeat(510)}🦞`, `/${'x'.repeat(510)}`],
    ['keeps no half character of the caller', '\ud83e', '/\ufffd'],
  ])('a name too long or too odd to be told back %s', async (_, name, path) => {
    const answer = await edge.send({ method: 'POST', path: '/namespaces', body: JSON.stringify({ name: 'a', [name]: 1 }) });
    const { message, details } = errorOf(answer);
    expect(details).toEqual([{ path, code: 'UNKNOWN_FIELD' }]);
    expect(message.length).toBeLessThanOrEqual(256);
    expect(message.isWellFormed()).toBe(true);
  });

  it('a body that is missing is no object', async () => {
    expect((await edge.send({ method: 'POST', path: '/namespaces', headers: { 'content-length': '0' } })).status).toBe(400);
  });
});

it('a client that leaves in the middle of its body is nobody’s failure', async () => {
  const metrics = createMetrics();
  edge = await startEdge({ metrics });
  const { hostname, port } = new URL(edge.origin);
  const socket = connect(Number(port), hostname);
  socket.write(requestBytes({ method: 'POST', path: '/namespaces', body: '{"name"', headers: { 'content-length': '100' } }));
  socket.end();
  await until('the request to be counted as refused', () => metrics.exposition().then(({ text }) => text.includes('route="/namespaces",status="400"} 1')), Boolean);
  expect(edge.log).toEqual([]);
});

describe('routes without a body', () => {
  const bodyless: readonly (readonly [method: string, path: string])[] = [
    ['GET', '/installation'],
    ['DELETE', agent],
    ['POST', `${agent}/deploy`],
    ['POST', `${agent}/stop`],
  ];

  it.each(bodyless)('%s %s takes nothing, and a length of nothing', async (method, path) => {
    expect((await edge.send({ method, path })).status).toBeLessThan(300);
    expect((await edge.send({ method, path, headers: { 'content-length': '0' } })).status).toBeLessThan(300);
  });

  it.each(bodyless)('%s %s refuses every byte, before anyone is asked', async (method, path) => {
    const requests = ['{}', ' ', 'x'].map((body) => edge.send({ method, path, body, headers: { 'content-type': body === 'x' ? 'text/plain' : 'application/json' } }));
    for (const answer of [...(await Promise.all(requests)), await exchange(edge.origin, chunked(method, path, ['{}'])), await exchange(edge.origin, chunked(method, path, []))]) {
      expect(answer.status).toBe(400);
      expect(errorOf(answer)).toEqual({ code: 'INVALID_REQUEST', message: 'This route takes no body' });
    }
    expect(edge.calls).toEqual([]);
  });
});
