/** Every permission that some operation checks: what a Role can be made of. (iam-auth-audit 2.1) */
import type { ResourceKind } from '../kernel/event.ts';
import type { Action } from './evaluate.ts';

export interface GrantedPermission {
  readonly action: Action;
  readonly resourceKind: ResourceKind;
}

export const checkedActions: Readonly<Record<ResourceKind, readonly Action[]>> = {
  installation: ['administer', 'read'],
  namespace: ['create', 'read', 'delete'],
  configuration: ['create', 'read', 'update', 'delete'],
  service_account: ['create', 'read', 'update', 'delete'],
  secret: ['create', 'read', 'update', 'delete', 'operate'],
  credential_source: ['create', 'read', 'update', 'delete', 'operate'],
  agent: ['create', 'read', 'update', 'delete', 'deploy', 'operate', 'administer'],
  agent_revision: ['read'],
  audit: ['read'],
};

export const resourceKinds = Object.keys(checkedActions) as readonly ResourceKind[];

export const everyPermission: readonly GrantedPermission[] = resourceKinds.flatMap((resourceKind) => checkedActions[resourceKind].map((action) => ({ action, resourceKind })));
