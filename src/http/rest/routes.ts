/** All REST routes, in the order of the contract; the methods of a path stand in this order in `Allow`. (rest-contract 2.1, 3.1 to 3.3, 3.9, 3.10) */
import { accountRoutes } from './accounts.ts';
import { agentRoutes } from './agents.ts';
import { configurationRoutes } from './configurations.ts';
import { deploymentRoutes } from './deployments.ts';
import { iamRoutes } from './iam.ts';
import { installationRoutes } from './installation.ts';
import { namespaceRoutes } from './namespaces.ts';
import { revisionRoutes } from './revisions.ts';
import { signInRoutes } from './sign-in.ts';
import type { Route } from './route.ts';
import { serviceKeyRoutes } from './service-keys.ts';

export const routes: readonly Route[] = [
  ...installationRoutes,
  ...namespaceRoutes,
  ...configurationRoutes,
  ...agentRoutes,
  ...revisionRoutes,
  ...deploymentRoutes,
  ...iamRoutes,
  ...serviceKeyRoutes,
  ...signInRoutes,
  ...accountRoutes,
];

/** Sign-in and the native admin UI are outside the table: a wrong method there is an unknown route. (rest-contract 1.11) */
const isOutside = (path: string): boolean => path.startsWith('/api/auth/') || path.endsWith('/native-admin');

const methodsByPath = [...new Set(routes.map(({ path }) => path))].filter((path) => !isOutside(path)).map((path) => ({
  pattern: new RegExp(`^${path.replaceAll(/:\w+/g, '[^/]+')}$`),
  allow: routes.filter((route) => route.path === path).map(({ method }) => method).join(', '),
}));

/** The methods of a path some route has, as `Allow` lists them; undefined for a path no route has. */
export const allowedMethods = (path: string): string | undefined => methodsByPath.find(({ pattern }) => pattern.test(path))?.allow;
