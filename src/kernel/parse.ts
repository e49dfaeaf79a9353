/** Turns outside input into typed values, or into one INVALID_REQUEST with JSON Pointer details. (rest-contract 1.1, 1.3) */
import { Ajv, type ErrorObject, type ValidateFunction } from 'ajv';
import type { Static, TSchema } from 'typebox';
import { Refusal, type Detail, type DetailCode } from './errors.ts';

const ajv = new Ajv({ allErrors: true, verbose: true, strict: false, coerceTypes: false, useDefaults: false });
const compiled = new WeakMap<TSchema, ValidateFunction>();

/** The compiled check of a schema; compiled once per schema object. */
export const validator = (schema: TSchema): ValidateFunction => {
  let validate = compiled.get(schema);
  if (validate === undefined) compiled.set(schema, (validate = ajv.compile(schema)));
  return validate;
};

const codeOf: Partial<Record<string, DetailCode>> = {
  required: 'REQUIRED',
  additionalProperties: 'UNKNOWN_FIELD',
  type: 'INVALID_TYPE',
  format: 'INVALID_FORMAT',
  pattern: 'INVALID_FORMAT',
  maxLength: 'TOO_LONG',
};

/** A member name as one step of a JSON Pointer. */
export const escapePointer = (name: string): string => name.replaceAll('~', '~0').replaceAll('/', '~1');

const detailOf = (error: ErrorObject): Detail => {
  const params = error.params as { missingProperty?: string; additionalProperty?: string };
  const name = params.missingProperty ?? params.additionalProperty;
  return {
    path: name === undefined ? error.instancePath : `${error.instancePath}/${escapePointer(name)}`,
    code: codeOf[error.keyword] ?? 'INVALID_VALUE',
  };
};

const isUnion = (error: ErrorObject): boolean => error.keyword === 'anyOf';

/** The failed union is reported once: by the branch the value was meant for, or at the union's own path. */
const unionDetails = (union: ErrorObject, inner: readonly ErrorObject[]): readonly Detail[] => {
  const branches = union.schema as readonly { type?: string; const?: unknown }[];
  const isObject = typeof union.data === 'object' && union.data !== null;
  if (isObject) {
    const meant = branches
      .map((_, index) => inner.filter((error) => error.schemaPath.startsWith(`${union.schemaPath}/${index}/`)))
      .filter((errors) => errors.length > 0 && !errors.some((error) => error.keyword === 'const' || error.instancePath === union.instancePath && error.keyword === 'type'))
      .sort((a, b) => a.length - b.length)[0];
    return meant === undefined ? [{ path: union.instancePath, code: 'INVALID_VALUE' }] : detailsOf(meant);
  }
  const hasLiterals = branches.some((branch) => 'const' in branch);
  return [{ path: union.instancePath, code: hasLiterals ? 'INVALID_VALUE' : 'INVALID_TYPE' }];
};

const detailsOf = (errors: readonly ErrorObject[]): readonly Detail[] => {
  const outermost = errors.filter(
    (union) => isUnion(union) && !errors.some((other) => isUnion(other) && other !== union && union.schemaPath.startsWith(`${other.schemaPath}/`)),
  );
  const inUnion = (error: ErrorObject) =>
    outermost.some((union) => error === union || error.schemaPath.startsWith(`${union.schemaPath}/`));
  const details = [
    ...errors.filter((error) => !inUnion(error)).map(detailOf),
    ...outermost.flatMap((union) => unionDetails(union, errors.filter((error) => error.schemaPath.startsWith(`${union.schemaPath}/`)))),
  ];
  return details.filter((detail, index) => details.findIndex((other) => other.path === detail.path && other.code === detail.code) === index);
};

/** One refusal for a contract violation; the message names up to three problems and how many more there are. */
export const invalidRequest = (details: readonly Detail[], what = 'The request is not valid'): Refusal => {
  const named = details.slice(0, 3).map((detail) => `${detail.path === '' ? 'body' : detail.path} ${detail.code}`);
  const more = details.length > 3 ? ` and ${details.length - 3} more` : '';
  return new Refusal('INVALID_REQUEST', named.length === 0 ? what : `${what}: ${named.join(', ')}${more}`, { details });
};

/**
 * Checks a value against a closed schema.
 * @throws Refusal INVALID_REQUEST with at most 32 details
 */
export const parse = <S extends TSchema>(schema: S, value: unknown): Static<S> => {
  const validate = validator(schema);
  if (validate(value)) return value as Static<S>;
  throw invalidRequest(detailsOf(validate.errors ?? []));
};

const depthLimit = 24;
const forbiddenNames = new Set(['__proto__', 'constructor', 'prototype']);
const unstorable = /\u0000|[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/;

/**
 * The whole-body safety check: nesting at most 24 deep, no prototype names, and only text and numbers that every store keeps.
 * @throws Refusal INVALID_REQUEST with `TOO_DEEP` or `INVALID_VALUE`
 */
const assertSafeJson = (value: unknown, path = '', depth = 0): void => {
  const refuse = (code: DetailCode, at = path) => {
    throw invalidRequest([{ path: at, code }]);
  };
  if (typeof value === 'string') {
    if (unstorable.test(value)) refuse('INVALID_VALUE');
    return;
  }
  // `1e400` is JSON, and more than a number can hold.
  if (typeof value === 'number' && !Number.isFinite(value)) refuse('INVALID_VALUE');
  if (typeof value !== 'object' || value === null) return;
  if (depth >= depthLimit) refuse('TOO_DEEP');
  for (const [name, member] of Object.entries(value)) {
    const at = `${path}/${escapePointer(name)}`;
    if (!Array.isArray(value) && (forbiddenNames.has(name) || unstorable.test(name))) refuse('INVALID_VALUE', at);
    assertSafeJson(member, at, depth + 1);
  }
};

/** What a caller sent, closed until it is known who he is: between its shape and its safety his identity is judged. (rest-contract 1.1 steps 8 to 10) */
export interface Sent<T> {
  /**
   * For whoever has judged the identity, and nobody else.
   * @throws Refusal INVALID_REQUEST with `TOO_DEEP` or `INVALID_VALUE`
   */
  open(): T;
}

/**
 * Takes what has the shape of a schema.
 * @throws Refusal INVALID_REQUEST
 */
export const receive = <S extends TSchema>(schema: S, value: unknown): Sent<Static<S>> => {
  try {
    parse(schema, value);
  } catch (error) {
    // Comparing the items of a unique list recurses as deep as they nest.
    if (error instanceof RangeError) assertSafeJson(value);
    throw error;
  }
  return {
    open: () => {
      assertSafeJson(value);
      return value as Static<S>;
    },
  };
};

/** Takes anything: also its shape is judged when it is opened. (iam-auth-audit 2.6) */
export const receiveUnread = <S extends TSchema>(schema: S, value: unknown): Sent<Static<S>> => ({ open: () => receive(schema, value).open() });
