/** Stored shapes of an Agent's draft settings, shared by its events, its revisions and the input schemas of both edges. (rest-contract 2.3 to 2.5) */
import Type, { type Static } from 'typebox';
import { idPattern } from '../kernel/ids.ts';

const closed = { additionalProperties: false } as const;

export const executionMode = Type.Union([Type.Literal('embedded'), Type.Literal('dedicated')]);
export type ExecutionMode = Static<typeof executionMode>;

const secretSource = Type.Object(
  { kind: Type.Literal('secret'), namespaceId: Type.String({ pattern: idPattern('ns') }), id: Type.String({ pattern: '^sec_' }) },
  closed,
);
const serviceAccountSource = Type.Object(
  { kind: Type.Literal('service_account'), namespaceId: Type.String({ pattern: idPattern('ns') }), id: Type.String({ pattern: '^sa_' }) },
  closed,
);

export const harnessAuth = Type.Union([
  Type.Object({ method: Type.Literal('api_key'), source: secretSource }, closed),
  Type.Object({ method: Type.Literal('codex_pat'), source: Type.Union([secretSource, serviceAccountSource]) }, closed),
  Type.Object({ method: Type.Literal('credential_source'), sourceId: Type.String({ pattern: '^cs_' }) }, closed),
  Type.Object({ method: Type.Literal('runtime') }, closed),
]);
export type HarnessAuth = Static<typeof harnessAuth>;

export const credentialSources = Type.Array(Type.Object({ sourceId: Type.String({ pattern: '^cs_' }) }, closed), {
  maxItems: 8,
  uniqueItems: true,
});

export const pluginApprovers = Type.Array(
  Type.Object(
    {
      channel: Type.String({ minLength: 1, maxLength: 64, pattern: '^[a-z][a-z0-9_-]*$' }),
      id: Type.String({ minLength: 1, maxLength: 200, pattern: '^[^\\u0000-\\u0020\\u007f]+$' }),
    },
    closed,
  ),
  { maxItems: 64, uniqueItems: true },
);

const approval = Type.Union([
  Type.Literal('provider_default'),
  Type.Literal('all_actions'),
  Type.Literal('write_actions'),
  Type.Literal('none'),
]);
const reviewer = Type.Union([Type.Literal('human'), Type.Literal('auto')]);
const toolPolicy = { enabled: Type.Optional(Type.Boolean()), approval: Type.Optional(approval), reviewer: Type.Optional(reviewer) };

export const plugins = Type.Record(
  Type.String({ pattern: '^[A-Za-z0-9._~:@-]{1,253}$' }),
  Type.Object(
    {
      enabled: Type.Boolean(),
      toolDefaults: Type.Optional(Type.Object(toolPolicy, { ...closed, minProperties: 1 })),
      approvers: Type.Optional(pluginApprovers),
      driverPolicy: Type.Optional(Type.Object({}, { additionalProperties: true })),
      tools: Type.Optional(
        Type.Record(
          Type.String({ pattern: '^[^\\u0000-\\u0020\\u007f]{1,1024}$' }),
          Type.Object({ ...toolPolicy, approvers: Type.Optional(pluginApprovers) }, { ...closed, minProperties: 1 }),
          closed,
        ),
      ),
    },
    closed,
  ),
  closed,
);

export const agentSettings = Type.Object({
  harnessAuth: Type.Union([harnessAuth, Type.Null()]),
  credentialSources,
  plugins: Type.Optional(plugins),
  pluginApprovers: Type.Optional(pluginApprovers),
});
export type AgentSettings = Static<typeof agentSettings>;
