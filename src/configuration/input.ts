/** Input schemas of the Configuration's use cases, shared by both edges. (rest-contract 3.3) */
import Type, { type Static } from 'typebox';
import { idPattern } from '../kernel/ids.ts';
import { idempotencyKey } from '../kernel/text.ts';

const closed = { additionalProperties: false } as const;
const values = Type.Object({}, { additionalProperties: true });

const secretBindings = Type.Record(
  Type.String({ pattern: '^[A-Za-z_][A-Za-z0-9_]{0,252}$' }),
  Type.Object(
    {
      source: Type.Object(
        { kind: Type.Literal('secret'), namespaceId: Type.String({ pattern: idPattern('ns') }), id: Type.String({ pattern: '^sec_' }) },
        closed,
      ),
      delivery: Type.Optional(Type.Object({ type: Type.Literal('env') }, closed)),
    },
    closed,
  ),
  { ...closed, maxProperties: 64 },
);
export type SecretBindings = Static<typeof secretBindings>;

export const createConfigurationInput = Type.Object(
  {
    kind: Type.Literal('agent'),
    values,
    secretBindings: Type.Optional(secretBindings),
    idempotencyKey: Type.Optional(idempotencyKey),
  },
  closed,
);
export type CreateConfigurationInput = Static<typeof createConfigurationInput>;

export const updateConfigurationInput = Type.Object({ values, secretBindings: Type.Optional(secretBindings) }, closed);
export type UpdateConfigurationInput = Static<typeof updateConfigurationInput>;
