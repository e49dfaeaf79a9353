/** Events of one Configuration's stream: its native document and the generation that every change raises. (rest-contract 3.3) */
import Type, { type Static } from 'typebox';
import { createCodec, defineEvent, type EventOf } from '../kernel/codec.ts';

const settingsShape = Type.Object({
  values: Type.Object({}, { additionalProperties: true }),
  secretBindings: Type.Optional(Type.Object({}, { additionalProperties: true })),
});
export type ConfigurationSettings = Static<typeof settingsShape>;

const place = { configurationId: Type.String(), namespaceId: Type.String(), generation: Type.Integer({ minimum: 1 }) };

const configurationCreated = defineEvent('ConfigurationCreated', {
  skeleton: Type.Object({ ...place, kind: Type.Literal('agent') }),
  settings: settingsShape,
  view: ['configurationId', 'namespaceId', 'generation', 'kind'],
});
const configurationReplaced = defineEvent('ConfigurationReplaced', {
  skeleton: Type.Object(place),
  settings: settingsShape,
  view: ['configurationId', 'namespaceId', 'generation'],
});
/** A fence: this id never became a Configuration. */
const configurationCreationAbandoned = defineEvent('ConfigurationCreationAbandoned', {
  skeleton: Type.Object({ configurationId: Type.String(), namespaceId: Type.String() }),
  view: ['configurationId', 'namespaceId'],
});
/** The register of the Namespace decided the deletion; the stream ends with it. */
const configurationDeleted = defineEvent('ConfigurationDeleted', {
  skeleton: Type.Object({ configurationId: Type.String(), namespaceId: Type.String() }),
  view: ['configurationId', 'namespaceId'],
});

export const configurationEvents = createCodec(
  configurationCreated,
  configurationReplaced,
  configurationCreationAbandoned,
  configurationDeleted,
);

export type ConfigurationEvent =
  | EventOf<typeof configurationCreated>
  | EventOf<typeof configurationReplaced>
  | EventOf<typeof configurationCreationAbandoned>
  | EventOf<typeof configurationDeleted>;
