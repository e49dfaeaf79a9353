/** The public GraphQL schema, put together. */
import { builder } from './builder.ts';
import './scalars.ts';
import './refusal.ts';
import './installation.ts';
import './namespace.ts';
import './configuration.ts';
import './agent.ts';
import './agent-revision.ts';
import './deployment.ts';
import './diagnostics.ts';
import './native-admin.ts';
import './history.ts';
import './policy.ts';
import './node.ts';

export type { Context } from './builder.ts';
export { refusalError } from './refusal.ts';

export const schema = builder.toSchema();
