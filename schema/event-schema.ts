/** The stored shape of one event type as a JSON Schema, for auditors and for those who consume the history. (architecture section 3) */
import type { EventDefinition } from '../src/kernel/codec.ts';

/** Data as this build writes it: skeleton members, and the settings beside them. */
export const eventSchema = ({ type, schema, skeleton, settings, view }: EventDefinition, comment: string): object => {
  const { properties, required = [] } = skeleton as { readonly properties?: object; readonly required?: readonly string[] };
  return {
    $schema: 'https://json-schema.org/draft/2020-12/schema',
    $comment: comment,
    title: type,
    type: 'object',
    properties: { ...properties, ...(settings !== undefined && { settings }) },
    required: [...required, ...(settings === undefined ? [] : ['settings'])],
    'x-schema-number': schema,
    'x-public-view': view,
  };
};
