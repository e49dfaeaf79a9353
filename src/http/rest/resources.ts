/** The resources REST answers with: each one's closed schema, its presenter, and its entity tag where it has one. (rest-contract 2.2, 2.7, 2.8, 3.1 to 3.3) */
import Type, { type TSchema } from 'typebox';
import { createAgentInput } from '../../agent/input.ts';
import { diagnosticChecks, type Diagnostics } from '../../deployment/diagnose.ts';
import { createConfigurationInput } from '../../configuration/input.ts';
import { idPattern, type Prefix } from '../../kernel/ids.ts';
import { nativeAdminStatuses, type NativeAdminView } from '../../native-admin/view.ts';
import { createRoleInput } from '../../iam/input.ts';
import type { RevokedServiceKey } from '../../iam/view.ts';
import { opaqueId } from '../../kernel/text.ts';
import {
  presentAccessBinding,
  presentAgent,
  presentConfiguration,
  presentDeployment,
  presentInstallation,
  presentNamespace,
  presentRevision,
  presentRole,
  presentServiceKey,
  presentServicePrincipal,
} from './present.ts';

export interface Resource<View> {
  readonly schema: TSchema;
  readonly present: (view: View) => object | null;
  /** What `ETag` says and `If-Match` is compared with. */
  readonly version?: (view: View) => number;
}

const closed = { additionalProperties: false } as const;
const id = (prefix: Prefix) => Type.String({ pattern: idPattern(prefix) });
const timestamp = Type.String({ pattern: '^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}[.][0-9]{3}Z$' });
const nullable = <S extends TSchema>(schema: S) => Type.Union([schema, Type.Null()]);
const oneOf = <const T extends readonly string[]>(...values: T) => Type.Union(values.map((value) => Type.Literal(value)));
const code = Type.String({ minLength: 1, maxLength: 64 });

const { name, backendId, harnessAuth, credentialSources, plugins, pluginApprovers } = createAgentInput.properties;
const { values, secretBindings } = createConfigurationInput.properties;
const [boundHarnessAuth] = harnessAuth.anyOf;

const configurationReadError = Type.Object(
  {
    code: Type.Literal('SAVED_CONFIGURATION_UNREADABLE'),
    field: oneOf('plugins', 'pluginApprovers', 'repositoryBindings', 'repositoryAccess', 'harnessAuth', 'secretBindings', 'repositoryCredentials', 'configuration'),
  },
  closed,
);

/** The resource as it is, or what is left of it when its saved settings cannot be read. */
const readable = (title: string, readableSchema: TSchema, remains: TSchema): TSchema => Type.Union([readableSchema, remains], { title });

export const installation = {
  schema: Type.Object({ id: id('ins'), name, createdAt: timestamp }, { ...closed, title: 'Installation' }),
  present: presentInstallation,
};

export const namespace = {
  schema: Type.Object(
    { id: id('ns'), name, status: oneOf('provisioning', 'ready', 'failed', 'deleting'), createdAt: timestamp, existingNamespace: Type.Optional(Type.String()) },
    { ...closed, title: 'Namespace' },
  ),
  present: presentNamespace,
};

const configurationPlace = { id: id('cfg'), namespaceId: id('ns'), kind: Type.Literal('agent'), generation: Type.Integer({ minimum: 1 }) };

export const configuration = {
  schema: readable(
    'Configuration',
    Type.Object({ ...configurationPlace, values, secretBindings, createdAt: timestamp }, closed),
    Type.Object({ ...configurationPlace, createdAt: timestamp, configurationReadError }, closed),
  ),
  present: presentConfiguration,
  version: ({ generation }: { readonly generation: number }) => generation,
};

const agentDraft = { id: id('agt'), namespaceId: id('ns'), name, servicePrincipalId: opaqueId, configurationId: id('cfg'), backendId: nullable(backendId.anyOf[0]) };
const agentState = {
  desiredRuntimeState: oneOf('running', 'stopped'),
  activeRevisionId: Type.Optional(id('rev')),
  status: oneOf('active', 'deleting'),
  createdAt: timestamp,
};
const executionMode = oneOf('embedded', 'dedicated');

export const agent = {
  schema: readable(
    'Agent',
    Type.Object(
      {
        ...agentDraft,
        harnessAuth: nullable(boundHarnessAuth),
        executionMode,
        credentialSources: Type.Array(credentialSources.items),
        plugins,
        pluginApprovers,
        ...agentState,
      },
      closed,
    ),
    Type.Object({ ...agentDraft, executionMode, ...agentState, configurationReadError }, closed),
  ),
  present: presentAgent,
  version: ({ draftRevision }: { readonly draftRevision: number }) => draftRevision,
};

const revisionPlace = { id: id('rev'), namespaceId: id('ns'), agentId: id('agt'), revision: Type.Integer({ minimum: 1 }), backendId: nullable(backendId.anyOf[0]) };
const driver = Type.Object({ id: Type.String(), implementation: Type.String() }, closed);

export const revision = {
  schema: readable(
    'AgentRevision',
    Type.Object(
      {
        ...revisionPlace,
        configurationId: id('cfg'),
        configurationKind: Type.Literal('agent'),
        configurationGeneration: Type.Integer({ minimum: 1 }),
        configuration: values,
        harness: Type.Object({ id: Type.String(), version: Type.String(), mode: executionMode }, closed),
        compute: driver,
        harnessAuth: boundHarnessAuth,
        secretBindings,
        plugins: Type.Optional(Type.Object({ driver, plugins }, closed)),
        pluginApprovers,
        credentialSources: Type.Array(credentialSources.items),
        createdAt: timestamp,
      },
      closed,
    ),
    Type.Object({ ...revisionPlace, createdAt: timestamp, configurationReadError }, closed),
  ),
  present: presentRevision,
};

export const deployment = {
  schema: Type.Object(
    {
      deploymentId: id('rev'),
      namespaceId: id('ns'),
      agentId: id('agt'),
      status: oneOf('queued', 'running', 'succeeded', 'failed'),
      error: nullable(Type.Object({ code, message: Type.String(), data: Type.Optional(Type.Unknown()) }, closed)),
      warnings: Type.Array(Type.Object({ code, pluginId: Type.String() }, closed)),
      progress: nullable(
        Type.Object({ lastAttempt: nullable(Type.Object({ at: timestamp, code, message: Type.String() }, closed)), nextAttemptAt: nullable(timestamp) }, closed),
      ),
      cleanup: nullable(Type.Object({ status: oneOf('queued', 'running', 'succeeded'), nextAttemptAt: nullable(timestamp) }, closed)),
    },
    { ...closed, title: 'Deployment' },
  ),
  present: presentDeployment,
};

export const diagnostics = {
  schema: Type.Object({ revisionId: id('rev'), observedAt: timestamp, checks: diagnosticChecks }, { ...closed, title: 'Diagnostics' }),
  present: ({ revisionId, observedAt, checks }: Diagnostics) => ({
    revisionId,
    observedAt,
    checks: checks.map(({ component, check, state, checkedAt, code }) => ({ component, check, state, checkedAt, ...(code !== undefined && { code }) })),
  }),
};

export const nativeAdmin = {
  schema: Type.Object(
    { status: oneOf(...nativeAdminStatuses), activeRevisionId: Type.Optional(id('rev')), host: Type.Optional(Type.String()), origin: Type.Optional(Type.String()), url: Type.Optional(Type.String()) },
    { ...closed, title: 'AgentNativeAdmin' },
  ),
  present: ({ status, activeRevisionId, host, origin, url }: NativeAdminView) => ({
    status,
    ...(activeRevisionId !== undefined && { activeRevisionId }),
    ...(host !== undefined && { host, origin }),
    ...(url !== undefined && { url }),
  }),
};

export const role = {
  schema: Type.Object({ id: opaqueId, namespaceId: id('ns'), name: createRoleInput.properties.name, permissions: Type.Array(Type.Object({ action: Type.String(), resourceKind: Type.String() }, closed)) }, { ...closed, title: 'Role' }),
  present: presentRole,
};

export const accessBinding = {
  schema: Type.Object(
    {
      id: opaqueId,
      namespaceId: id('ns'),
      subjectKind: oneOf('identity', 'group'),
      subjectId: opaqueId,
      roleId: opaqueId,
      resourceKind: Type.Optional(Type.String()),
      resourceId: Type.Optional(opaqueId),
    },
    { ...closed, title: 'AccessBinding' },
  ),
  present: presentAccessBinding,
};

export const servicePrincipal = {
  schema: Type.Object({ id: opaqueId, namespaceId: id('ns') }, { ...closed, title: 'ServicePrincipal' }),
  present: presentServicePrincipal,
};

export const issuedServiceKey = {
  schema: Type.Object(
    { id: opaqueId, servicePrincipalId: opaqueId, namespaceId: Type.Optional(id('ns')), name: Type.String(), expiresAt: timestamp, key: Type.String() },
    { ...closed, title: 'IssuedServiceKey' },
  ),
  present: presentServiceKey,
};

export const revokedServiceKey = {
  schema: Type.Object({ id: opaqueId, revoked: Type.Literal(true) }, { ...closed, title: 'RevokedServiceKey' }),
  present: ({ id, revoked }: RevokedServiceKey) => ({ id, revoked }),
};

export const listOf = <View>({ schema, present }: Resource<View>): Resource<readonly View[]> => ({ schema: Type.Array(schema), present: (views) => views.map(present) });
