/** Input schemas of the Agent's use cases, shared by both edges. (rest-contract 2.3) */
import Type, { type Static } from 'typebox';
import { idPattern } from '../kernel/ids.ts';
import { idempotencyKey, name } from '../kernel/text.ts';
import { credentialSources, executionMode, harnessAuth, pluginApprovers, plugins } from './settings.ts';

const closed = { additionalProperties: false } as const;

const configurationId = Type.String({ pattern: idPattern('cfg') });
const backendId = Type.Union([Type.String({ minLength: 1, maxLength: 200, pattern: '^(?!\\s)(?![\\s\\S]*\\s$)[^\\u0000-\\u001f\\u007f]+$' }), Type.Null()]);

const fileContent = Type.String({ maxLength: 16_384, pattern: '^[^\\u0000]*$' });

export const createAgentInput = Type.Object(
  {
    name,
    configurationId,
    executionMode: Type.Optional(executionMode),
    backendId: Type.Optional(backendId),
    harnessAuth: Type.Optional(Type.Union([harnessAuth, Type.Null()])),
    credentialSources: Type.Optional(credentialSources),
    plugins: Type.Optional(plugins),
    pluginApprovers: Type.Optional(pluginApprovers),
    initialWorkspaceFiles: Type.Optional(
      Type.Object(
        {
          'AGENTS.md': Type.Optional(fileContent),
          'SOUL.md': Type.Optional(fileContent),
          'IDENTITY.md': Type.Optional(fileContent),
          'USER.md': Type.Optional(fileContent),
        },
        closed,
      ),
    ),
    workspaceDefaultsId: Type.Optional(Type.String({ pattern: '^[a-f0-9]{64}$' })),
    idempotencyKey: Type.Optional(idempotencyKey),
  },
  closed,
);
export type CreateAgentInput = Static<typeof createAgentInput>;

export const updateAgentInput = Type.Object(
  {
    configurationId,
    executionMode: Type.Optional(executionMode),
    backendId: Type.Optional(backendId),
    harnessAuth: Type.Optional(Type.Union([harnessAuth, Type.Null()])),
    credentialSources: Type.Optional(credentialSources),
    plugins: Type.Optional(plugins),
    pluginApprovers: Type.Optional(Type.Union([pluginApprovers, Type.Null()])),
  },
  closed,
);
export type UpdateAgentInput = Static<typeof updateAgentInput>;
