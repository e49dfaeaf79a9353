/** Input schemas of policy and service keys, shared by both edges, and the permissions an operation of a Namespace checks. (iam-auth-audit 2.1, 4.1; rest-contract 3.9, 3.10) */
import Type, { type Static } from 'typebox';
import { name, opaqueId } from '../kernel/text.ts';
import type { ResourceKind } from '../kernel/event.ts';
import type { Action } from './evaluate.ts';

const closed = { additionalProperties: false } as const;
const kept = ['create', 'read', 'update', 'delete'] as const;

/** What a Role of a Namespace may permit, by kind. */
const grantable = {
  namespace: ['read'],
  configuration: kept,
  secret: [...kept, 'operate'],
  service_account: kept,
  credential_source: [...kept, 'operate'],
  agent: [...kept, 'deploy', 'operate', 'administer'],
  agent_revision: ['read'],
} as const satisfies Partial<Record<ResourceKind, readonly Action[]>>;

export type BindableKind = keyof typeof grantable;

/** The kinds a Role can be bound to one resource of. */
export const bindableKinds = Object.keys(grantable) as readonly BindableKind[];

export const permission = Type.Union(
  bindableKinds.map((kind) => Type.Object({ action: Type.Enum([...grantable[kind]] as Action[]), resourceKind: Type.Literal(kind) }, closed)),
);

export const createRoleInput = Type.Object(
  { name: Type.Optional(name), permissions: Type.Array(permission, { minItems: 1, maxItems: 64, uniqueItems: true }) },
  closed,
);
export type CreateRoleInput = Static<typeof createRoleInput>;

export const createAccessBindingInput = Type.Object(
  { subjectKind: Type.Literal('identity'), subjectId: opaqueId, roleId: opaqueId, resourceKind: Type.Enum([...bindableKinds]), resourceId: opaqueId },
  closed,
);
export type CreateAccessBindingInput = Static<typeof createAccessBindingInput>;

export const createServicePrincipalInput = Type.Object({}, closed);

const day = 86_400;

export const issueServiceKeyInput = Type.Object(
  {
    servicePrincipalId: opaqueId,
    /** The Namespace of the principal; absent for one of the Installation. */
    namespaceId: Type.Optional(opaqueId),
    name: Type.String({ minLength: 1, maxLength: 32, pattern: '\\S' }),
    /** In seconds. */
    expiresIn: Type.Optional(Type.Integer({ minimum: day, maximum: 365 * day })),
  },
  closed,
);
export type IssueServiceKeyInput = Static<typeof issueServiceKeyInput>;

/** In seconds. */
export const defaultKeyLifetime = 30 * day;
