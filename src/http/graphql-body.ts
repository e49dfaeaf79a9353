/** The body of a GraphQL request: bounded, JSON, one operation. (rest-contract 1.1) */
import type { IncomingMessage } from 'node:http';
import Type, { type Static } from 'typebox';
import { Refusal } from '../kernel/errors.ts';
import { parse } from '../kernel/parse.ts';
import { largestBodyLimit } from './rest/route.ts';

/** In UTF-16 code units; values travel as variables. */
const documentLimit = 64 * 1024;
/** In bytes: what the REST route with the largest body takes, beside the document that carries it. */
const bodyLimit = largestBodyLimit + documentLimit;

const members = Type.Union([Type.Object({}), Type.Null()]);
/** What every GraphQL client sends, and nothing else: one operation, no batch. */
const shape = Type.Object(
  { query: Type.String(), variables: Type.Optional(members), operationName: Type.Optional(Type.Union([Type.String(), Type.Null()])), extensions: Type.Optional(members) },
  { additionalProperties: false },
);

const tooLarge = (): Refusal => new Refusal('PAYLOAD_TOO_LARGE', `The body is limited to ${bodyLimit} bytes`);
const invalid = (message: string): Refusal => new Refusal('INVALID_REQUEST', message);

const bytesOf = async (request: IncomingMessage): Promise<Buffer> => {
  const chunks: Buffer[] = [];
  let size = 0;
  // A request that is destroyed here could not be answered any more.
  for await (const chunk of request.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>) {
    size += chunk.length;
    if (size > bodyLimit) throw tooLarge();
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
};

const parsed = (text: string): unknown => {
  try {
    return JSON.parse(text);
  } catch {
    throw invalid('The request body is not valid JSON');
  }
};

/**
 * What a client sent, parsed.
 * @throws Refusal PAYLOAD_TOO_LARGE over {@link bodyLimit} bytes, UNSUPPORTED_MEDIA_TYPE for anything but JSON, INVALID_REQUEST
 */
export const readDocument = async (request: IncomingMessage): Promise<Static<typeof shape>> => {
  if (Number(request.headers['content-length'] ?? 0) > bodyLimit) throw tooLarge();
  const mediaType = request.headers['content-type']?.split(';')[0]?.trim().toLowerCase();
  if (mediaType !== 'application/json') throw new Refusal('UNSUPPORTED_MEDIA_TYPE', 'The request body must be application/json');
  const document = parse(shape, parsed((await bytesOf(request)).toString('utf8')));
  const { length } = document.query;
  if (length > documentLimit) throw invalid(`The document has ${length} characters; the limit is ${documentLimit}`);
  return document;
};
