/** Texts that inputs of every slice share. (rest-contract 1.5, architecture section 10) */
import Type from 'typebox';

/** A Name: 1 to 200 code points of plain text without surrounding white space or control characters. */
export const name = Type.String({
  minLength: 1,
  maxLength: 200,
  pattern: '^(?!\\s)(?![\\s\\S]*\\s$)[^\\u0000-\\u001f\\u007f-\\u009f\\u2028\\u2029]+$',
});

/** Names one attempt at a creation or a deploy, so that it can be sent again. */
export const idempotencyKey = Type.String({ minLength: 16, maxLength: 128 });

/** An id that clients do not take apart. (rest-contract 1.4) */
export const opaqueId = Type.String({ minLength: 1, maxLength: 200 });
