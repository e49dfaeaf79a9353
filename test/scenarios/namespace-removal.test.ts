/** What a Namespace takes along: its Roles, bindings, service principals and keys, on each event store. (iam-auth-audit 4.6) */
import { expect, it, vi } from 'vitest';
import { demand } from '../end-to-end/steps.ts';
import { startTestApplication } from '../support/app.ts';
import { createClient } from '../support/client.ts';
import { onEachEventStore } from '../support/event-stores.ts';
import { runToEnd } from '../support/server.ts';
import { until } from '../support/until.ts';

vi.setConfig({ testTimeout: 60_000 });

onEachEventStore((store) => {
  it('a Namespace that is removed leaves nobody and nothing in the lists, and no hash of a key', async () => {
    const application = await startTestApplication({ env: store.env });
    const { client, database, dataDir, origin } = application;
    try {
      const { id } = await demand<{ id: string }>(client, 201, 'POST', '/namespaces', { name: 'short-lived' });
      const at = `/namespaces/${id}`;
      await until('a Namespace that is ready', () => client.rest<{ status: string }>('GET', at), ({ data }) => data.status === 'ready', 30_000);
      const principal = await demand<{ id: string }>(client, 201, 'POST', `${at}/iam/service-principals`, {});
      const issued = await demand<{ id: string; key: string }>(client, 201, 'POST', '/api/auth/service-keys', { servicePrincipalId: principal.id, namespaceId: id, name: 'ci' });
      const role = await demand<{ id: string }>(client, 201, 'POST', `${at}/iam/roles`, { permissions: [{ action: 'read', resourceKind: 'namespace' }] });
      const bound = { subjectKind: 'identity', subjectId: principal.id, roleId: role.id, resourceKind: 'namespace', resourceId: id };
      const binding = await demand<{ id: string }>(client, 201, 'POST', `${at}/iam/access-bindings`, bound);
      const own = createClient(origin, issued.key);
      expect((await own.rest('GET', at)).status).toBe(200);
      const list = async () => {
        const { code, stdout, stderr } = await runToEnd(['iam', 'list', '--json'], { OCC_DATABASE_URL: database.url, EXUVIA_DATA_DIR: dataDir, ...store.env });
        expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
        return stdout;
      };
      const made = [id, principal.id, issued.id, role.id, binding.id];
      const before = await list();
      expect(made.filter((one) => !before.includes(one))).toEqual([]);

      expect((await client.rest('DELETE', at)).status).toBe(202);
      await until('a Namespace that is gone', async () => (await client.rest('GET', at)).status, (status) => status === 404, 30_000);
      const after = await list();
      expect(made.filter((one) => after.includes(one))).toEqual([]);
      expect((await own.rest('GET', at)).status).toBe(401);
      expect((await database.pool.query('select key_id from service_key where service_principal_id = $1', [principal.id])).rows).toEqual([]);
    } finally {
      await application.close();
    }
  });
});
