/** The OpenAPI 3.1 document, generated from the route list. (rest-contract 1.12) */
import Type, { type TSchema } from 'typebox';
import { codes } from '../kernel/errors.ts';
import { idPattern } from '../kernel/ids.ts';
import { parametersOf, type Route } from './rest/route.ts';

const meta = Type.Object({ requestId: Type.String({ pattern: idPattern('req') }) }, { additionalProperties: false });

const failure = Type.Object(
  {
    error: Type.Object(
      {
        code: Type.Union(Object.keys(codes).map((code) => Type.Literal(code))),
        message: Type.String({ minLength: 1, maxLength: 256 }),
        details: Type.Optional(
          Type.Array(
            Type.Object(
              {
                path: Type.String({ maxLength: 512, pattern: '^(?:/(?:[^~/]|~0|~1)*)*$' }),
                code: Type.Union(['REQUIRED', 'UNKNOWN_FIELD', 'INVALID_TYPE', 'INVALID_FORMAT', 'INVALID_VALUE', 'TOO_LONG', 'TOO_DEEP'].map((code) => Type.Literal(code))),
              },
              { additionalProperties: false },
            ),
            { maxItems: 32 },
          ),
        ),
      },
      { additionalProperties: false },
    ),
    meta,
  },
  { additionalProperties: false },
);

const json = (schema: object) => ({ content: { 'application/json': { schema } } });

/** Statuses of errors by kind of route: reads, mutations without a body, mutations with one. */
const errorStatuses = ({ method, body, access, alsoAnswers = [] }: Route): readonly number[] => {
  const always = [400, 403, 500, 503, ...(body === undefined ? [] : [413, 415]), ...alsoAnswers];
  const known = access === 'public' ? [] : method === 'GET' ? [401, 404] : [401, 404, 409];
  return [...always, ...known];
};

const securityOf = ({ access = 'caller' }: Route): readonly object[] => {
  const session = { sessionCookie: [] };
  return { public: [], human: [session], caller: [session, { serviceApiKey: [] }] }[access];
};

/** A titled schema is named once under `components`; the others stay where they are. */
const named = (schemas: Map<string, TSchema>, schema: TSchema): object => {
  const { title, items } = schema as { title?: string; items?: TSchema };
  if (title !== undefined) {
    schemas.set(title, schema);
    return { $ref: `#/components/schemas/${title}` };
  }
  return items === undefined ? schema : { ...schema, items: named(schemas, items) };
};

const header = (name: string, description: string) => ({ name, in: 'header', required: false, description, schema: { type: 'string' } });

const headerParameters = {
  'Idempotency-Key': header('Idempotency-Key', 'The same key with the same input gives the same resource; 16 to 128 characters'),
  'If-Match': header('If-Match', 'The ETag of an earlier answer; a stale one is refused with 409'),
};

const operationOf = (route: Route, schemas: Map<string, TSchema>): object => {
  const { operationId, summary, tag, permissions, body, bodyOptional, cookie, answer, status, takes } = route;
  const success =
    answer === undefined
      ? { description: 'Done' }
      : {
          description: 'Success',
          ...(answer.version !== undefined && { headers: { ETag: { description: 'The version that If-Match is compared with', schema: { type: 'string' } } } }),
          ...(cookie !== undefined && { headers: { 'Set-Cookie': { description: 'The cookie of the session', schema: { type: 'string' } } } }),
          ...json({ type: 'object', required: ['data', 'meta'], additionalProperties: false, properties: { data: named(schemas, answer.schema), meta } }),
        };
  const errors = errorStatuses(route).map((code): [number, object] => [code, { $ref: '#/components/responses/Error' }]);
  return {
    operationId,
    summary,
    tags: [tag],
    security: securityOf(route),
    'x-openclaw-permissions': permissions,
    parameters: [
      ...parametersOf(route.path).map(({ name, pattern }) => ({ name, in: 'path', required: true, schema: { type: 'string', pattern } })),
      ...(takes === undefined ? [] : [headerParameters[takes]]),
    ],
    ...(body !== undefined && { requestBody: { required: bodyOptional !== true, ...json(body) } }),
    responses: Object.fromEntries<object>([[status, success], ...errors]),
  };
};

/** The document as JSON text. */
export const openApiText = (routes: readonly Route[], mode: 'development' | 'production', cookieName: string): string => {
  const schemas = new Map<string, TSchema>([['Error', failure]]);
  const paths: Record<string, Record<string, object>> = {};
  for (const route of routes) {
    const path = route.path.replaceAll(/:(\w+)/g, '{$1}');
    paths[path] = { ...paths[path], [route.method.toLowerCase()]: operationOf(route, schemas) };
  }
  return JSON.stringify({
    openapi: '3.1.0',
    info: { title: mode === 'development' ? 'Development OCC API' : 'Internal OCC API', version: '0.1.0' },
    paths,
    components: {
      securitySchemes: {
        sessionCookie: { type: 'apiKey', in: 'cookie', name: cookieName },
        serviceApiKey: { type: 'apiKey', in: 'header', name: 'x-api-key' },
      },
      responses: { Error: { description: 'The request was refused or failed', ...json({ $ref: '#/components/schemas/Error' }) } },
      schemas: Object.fromEntries(schemas),
    },
  });
};
