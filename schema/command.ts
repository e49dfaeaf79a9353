/** What every mutation does with its input: the same checks, in the same order, as the REST route of the same command. */
import Type, { type Static, type TSchema } from 'typebox';
import { defaultBodyLimit } from '../src/http/rest/route.ts';
import { Refusal } from '../src/kernel/errors.ts';
import { idempotencyKey } from '../src/kernel/text.ts';
import { parse, receive, type Sent } from '../src/kernel/parse.ts';

/** The members of an input that place and accompany a command, and are no part of its content. */
const accompanying = new Set(['id', 'namespaceId', 'clientMutationId', 'ifMatch']);

/**
 * The content of a mutation's input in the shape both edges share. Opened, it is safe and no larger than the body of its REST route.
 * @throws Refusal INVALID_REQUEST; when it is opened also PAYLOAD_TOO_LARGE
 */
export const contentOf = <S extends TSchema>(schema: S, input: object, limit = defaultBodyLimit): Sent<Static<S>> => {
  const content = Object.fromEntries(Object.entries(input).filter(([member]) => !accompanying.has(member)));
  const sent = receive(schema, content);
  return {
    open: () => {
      const opened = sent.open();
      if (Buffer.byteLength(JSON.stringify(content)) > limit) throw new Refusal('PAYLOAD_TOO_LARGE', `The input is limited to ${limit} bytes`);
      return opened;
    },
  };
};

const key = Type.Object({ idempotencyKey: Type.Optional(idempotencyKey) });

/** An input whose idempotency key is no part of its content, and that key. @throws Refusal INVALID_REQUEST */
export const keyed = <Input extends { readonly idempotencyKey?: unknown }>({ idempotencyKey, ...content }: Input) => ({
  ...parse(key, idempotencyKey === undefined ? {} : { idempotencyKey }),
  content,
});
