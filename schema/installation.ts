/** The Installation in the schema. */
import type { InstallationView } from '../src/installation/view.ts';
import { builder } from './builder.ts';

const Installation = builder.objectRef<Pick<InstallationView, 'id' | 'name' | 'createdAt'>>('Installation').implement({
  description: 'This control plane.',
  fields: (t) => ({
    installationId: t.exposeID('id'),
    name: t.exposeString('name'),
    createdAt: t.expose('createdAt', { type: 'Timestamp' }),
  }),
});

builder.queryField('installation', (t) =>
  t.field({ type: Installation, nullable: true, resolve: (_, _args, { services, caller }) => services.installation.get(caller) }),
);
