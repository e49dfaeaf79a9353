/** Input schemas of the Namespace's use cases, shared by both edges. (rest-contract 3.2) */
import Type, { type Static } from 'typebox';
import { name } from '../kernel/text.ts';

export const createNamespaceInput = Type.Object(
  {
    name,
    existingNamespace: Type.Optional(Type.String({ maxLength: 63, pattern: '^[a-z0-9](?:[-a-z0-9]*[a-z0-9])?$' })),
  },
  { additionalProperties: false },
);
export type CreateNamespaceInput = Static<typeof createNamespaceInput>;
