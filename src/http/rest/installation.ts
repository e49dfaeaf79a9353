/** Routes of the Installation. (rest-contract 3.1) */
import { installation } from './resources.ts';
import { route } from './route.ts';

export const installationRoutes = [
  route({
    method: 'GET',
    path: '/installation',
    operationId: 'getInstallation',
    tag: 'Installation',
    summary: 'Read the Installation',
    permissions: [{ action: 'read', resourceKind: 'installation', scope: 'installation' }],
    status: 200,
    answer: installation,
    handle: ({ installation }, { caller }) => installation.get(caller),
  }),
];
