/** The gateway as its clients meet it: a real child process, its health endpoints, its WebSocket protocol and its files. */
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { lstat, mkdir, readdir, readFile, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import { connectParams, startGateway } from './gateway-process.ts';
import type { GatewayProcess } from './gateway-process.ts';

const open: GatewayProcess[] = [];
const start = async (document: object = {}, until: 'ready' | 'live' = 'ready'): Promise<GatewayProcess> => {
  const gateway = await startGateway(document);
  open.push(gateway);
  await gateway.until(until === 'ready' ? '/readyz' : '/healthz', 200);
  return gateway;
};

afterEach(async () => {
  await Promise.all(open.splice(0).map((gateway) => gateway.dispose()));
});

describe('health', () => {
  it('is live, started and ready, also under the aliases', async () => {
    const { get } = await start();
    for (const path of ['/healthz', '/health']) expect(await get(path)).toEqual([200, { ok: true, status: 'live' }]);
    for (const path of ['/startupz', '/startup']) expect(await get(path)).toEqual([200, { ok: true, status: 'started' }]);
    for (const path of ['/readyz', '/ready']) expect(await get(path)).toEqual([200, { ready: true }]);
    expect((await get('/elsewhere'))[0]).toBe(404);
  });

  it('stays alive and unready while its start lasts, and turns connections away for now', async () => {
    const gateway = await start({ exuvia: { startupDelayMs: 600_000 } }, 'live');
    expect(await gateway.get('/startupz')).toEqual([503, { ok: false, status: 'starting' }]);
    expect(await gateway.get('/readyz')).toEqual([503, { ready: false, failing: ['startup'] }]);
    const client = await gateway.client();
    expect(await client.call('connect', connectParams(gateway.token))).toMatchObject({
      ok: false,
      error: { code: 'UNAVAILABLE', retryable: true, retryAfterMs: expect.any(Number) as number, details: { reason: 'startup-sidecars' } },
    });
    expect(await client.closed).toBe(1013);
  });

  it('shows its private status only to the holder of the token', async () => {
    const { get, token, revisionId, startId } = await start();
    expect((await get('/openclaw/runtime/status'))[0]).toBe(401);
    expect((await get('/openclaw/runtime/status', 'wrong'))[0]).toBe(401);
    expect(await get('/openclaw/runtime/status', token)).toEqual([200, { revisionId, container: 'gateway', startId }]);
  });

  it('holds the failure its document asks for', async () => {
    const holdStartup = { code: 'MODEL_PROBE_FAILED', check: 'model-probe', cause: { kind: 'PROBE_STATUS', detail: 'billing' } };
    const gateway = await start({ exuvia: { holdStartup } }, 'live');
    expect((await gateway.get('/readyz'))[0]).toBe(503);
    expect((await gateway.get('/openclaw/runtime/status', gateway.token))[1]).toMatchObject({
      runtimeFailure: { component: 'gateway', checkedAt: expect.stringMatching(/Z$/) as string, ...holdStartup },
    });
  });
});

describe('process', () => {
  it('closes its connections at SIGTERM and ends with 0', async () => {
    const gateway = await start();
    const client = await gateway.connected();
    gateway.child.kill('SIGTERM');
    expect(await once(gateway.child, 'exit')).toEqual([0, null]);
    expect(await client.closed).toBe(1001);
  });

  it('ends with the code its document asks for, and with 78 for a document it cannot read', async () => {
    for (const [document, code] of [[{ exuvia: { exitAtStartup: 7 } }, 7], [{ exuvia: 'no' }, 78]] as const) {
      const gateway = await startGateway(document);
      open.push(gateway);
      expect(await gateway.exited).toBe(code);
    }
  });

  it('ends with 98 when its port is taken', async () => {
    const { port } = await start();
    const second = await startGateway({}, port);
    open.push(second);
    expect(await second.exited).toBe(98);
  });
});

describe('handshake', () => {
  it('challenges, then greets with the announced Agent and the granted scopes', async () => {
    const gateway = await start({ agents: { list: [{ id: 'scout' }] } });
    const client = await gateway.client();
    expect(await client.challenge).toEqual({ type: 'event', event: 'connect.challenge', payload: { nonce: expect.any(String) as string, ts: expect.any(Number) as number } });
    expect(await client.call('connect', connectParams(gateway.token, ['operator.read']))).toMatchObject({
      ok: true,
      payload: {
        type: 'hello-ok',
        protocol: 4,
        auth: { scopes: ['operator.read'] },
        policy: { maxPayload: 26_214_400 },
        snapshot: { sessionDefaults: { defaultAgentId: 'scout', ownership: 'sole', selectionRequired: false } },
      },
    });
  });

  it('accepts the shared token in either auth field', async () => {
    const gateway = await start();
    const client = await gateway.client();
    expect(await client.call('connect', { ...connectParams(''), auth: { password: gateway.token } })).toMatchObject({ ok: true });
  });

  const { auth: _none, ...withoutAuth } = connectParams('');
  const cases: readonly [name: string, params: (token: string) => object, error: object, close: number][] = [
    ['a wrong token', () => connectParams('wrong'), { code: 'INVALID_REQUEST', details: { code: 'AUTH_TOKEN_MISMATCH' } }, 1008],
    ['no auth', () => withoutAuth, { code: 'NOT_PAIRED', details: { code: 'DEVICE_IDENTITY_REQUIRED' } }, 1008],
    ['a custom client id', (token) => ({ ...connectParams(token), client: { ...connectParams(token).client, id: 'mine' } }), { code: 'INVALID_REQUEST' }, 1008],
    ['an unknown property', (token) => ({ ...connectParams(token), extra: true }), { code: 'INVALID_REQUEST' }, 1008],
    ['protocol 3', (token) => ({ ...connectParams(token), minProtocol: 3, maxProtocol: 3 }), { code: 'INVALID_REQUEST', details: { code: 'PROTOCOL_MISMATCH' } }, 1002],
  ];
  it.each(cases)('refuses %s', async (_name, params, error, close) => {
    const gateway = await start();
    const client = await gateway.client();
    expect(await client.call('connect', params(gateway.token))).toMatchObject({ ok: false, error });
    expect(await client.closed).toBe(close);
  });

  it('refuses any other first request, text that is no request, and a large frame', async () => {
    const gateway = await start();
    const first = await gateway.client();
    expect(await first.call('agents.files.get', {})).toMatchObject({ ok: false, error: { code: 'INVALID_REQUEST' } });
    expect(await first.closed).toBe(1008);
    const second = await gateway.client();
    second.socket.send('hello');
    expect(await second.closed).toBe(1008);
    const third = await gateway.client();
    third.socket.send(JSON.stringify({ type: 'req', id: '1', method: 'connect', params: { padding: 'x'.repeat(65_536) } }));
    expect(await third.closed).toBe(1009);
  });
});

describe('agents.files', () => {
  const soul = { agentId: 'main', name: 'SOUL.md' };
  const sha256 = (text: string) => createHash('sha256').update(text).digest('hex');

  it('reads what was written, as a real private file', async () => {
    const gateway = await start();
    const client = await gateway.connected();
    const content = 'Grüße\n';
    const file = { name: 'SOUL.md', missing: false, size: 8, hash: sha256(content), content, updatedAtMs: expect.any(Number) as number };
    expect(await client.call('agents.files.set', { ...soul, content })).toMatchObject({ ok: true, payload: { ok: true, file } });
    expect(await client.call('agents.files.get', soul)).toMatchObject({ ok: true, payload: { agentId: 'main', file } });
    const path = join(gateway.workspaceFolder, 'SOUL.md');
    expect(await readFile(path, 'utf8')).toBe(content);
    expect((await lstat(path)).mode & 0o777).toBe(0o600);
    expect(await readdir(gateway.workspaceFolder)).toEqual(['SOUL.md']);
  });

  it('answers a missing file with success, and tells it from an empty one', async () => {
    const gateway = await start();
    const client = await gateway.connected();
    expect(await client.call('agents.files.get', soul)).toMatchObject({ ok: true, payload: { file: { missing: true, content: '' } } });
    await client.call('agents.files.set', { ...soul, content: '' });
    expect(await client.call('agents.files.get', soul)).toMatchObject({ ok: true, payload: { file: { missing: false, size: 0, content: '' } } });
  });

  it('compares the expected hash, also between writes that are under way together', async () => {
    const gateway = await start();
    const client = await gateway.connected();
    await client.call('agents.files.set', { ...soul, content: 'one' });
    const race = await Promise.all(['two', 'three'].map((content) => client.call('agents.files.set', { ...soul, content, expectedHash: sha256('one') })));
    expect(race.map(({ ok }) => ok)).toEqual([true, false]);
    expect(race[1]).toMatchObject({ error: { code: 'INVALID_REQUEST', details: { type: 'agent_file_conflict', currentHash: sha256('two') } } });
  });

  it('judges scopes per method', async () => {
    const gateway = await start();
    const forbidden = { ok: false, error: { code: 'FORBIDDEN', details: { code: 'MISSING_SCOPE' } } };
    const nobody = await gateway.connected([]);
    expect(await nobody.call('agents.files.get', soul)).toMatchObject(forbidden);
    const reader = await gateway.connected(['operator.read']);
    expect(await reader.call('agents.files.get', soul)).toMatchObject({ ok: true });
    expect(await reader.call('agents.files.set', { ...soul, content: 'x' })).toMatchObject(forbidden);
  });

  it('refuses names outside its list, unknown Agents, unknown methods and open parameters', async () => {
    const gateway = await start();
    const client = await gateway.connected();
    const refused = { ok: false, error: { code: 'INVALID_REQUEST' } };
    expect(await client.call('agents.files.get', { ...soul, name: '../secrets/gateway-token' })).toMatchObject(refused);
    expect(await client.call('agents.files.get', { ...soul, agentId: 'other' })).toMatchObject(refused);
    expect(await client.call('agents.files.set', { ...soul, content: 'x', extra: 1 })).toMatchObject(refused);
    expect(await client.call('agents.files.list', { agentId: 'main' })).toMatchObject(refused);
    expect(await client.call('toString', {})).toMatchObject(refused);
  });

  it('takes 17 KiB: smaller limits are its caller\'s to enforce', async () => {
    const gateway = await start();
    const client = await gateway.connected();
    expect(await client.call('agents.files.set', { ...soul, content: 'x'.repeat(17 * 1024) })).toMatchObject({ ok: true, payload: { file: { size: 17_408 } } });
  });

  it('never follows a link out of the workspace', async () => {
    const gateway = await start();
    const client = await gateway.connected();
    const outside = join(gateway.folder, 'outside');
    await writeFile(outside, 'private');
    await mkdir(gateway.workspaceFolder, { recursive: true });
    await symlink(outside, join(gateway.workspaceFolder, 'SOUL.md'));
    expect(await client.call('agents.files.get', soul)).toMatchObject({ ok: false, error: { code: 'UNAVAILABLE' } });
  });
});
