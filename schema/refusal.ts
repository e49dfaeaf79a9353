/** The one error type clients see: a member of every mutation's result, and the extensions of a query's error. */
import { GraphQLError } from 'graphql';
import { statusOf } from '../src/http/errors.ts';
import { codes, Refusal, type Code, type DetailCode } from '../src/kernel/errors.ts';
import { builder } from './builder.ts';

const RefusalCode = builder.enumType('RefusalCode', {
  description: 'The documented codes, the same as on the REST routes.',
  values: Object.keys(codes) as Code[],
});

const DetailCodeType = builder.enumType('RefusalDetailCode', {
  values: ['REQUIRED', 'UNKNOWN_FIELD', 'INVALID_TYPE', 'INVALID_FORMAT', 'INVALID_VALUE', 'TOO_LONG', 'TOO_DEEP'] satisfies DetailCode[],
});

const RefusalDetail = builder.objectRef<Refusal['details'][number]>('RefusalDetail').implement({
  description: 'One refused field.',
  fields: (t) => ({
    path: t.exposeString('path', { description: 'A JSON Pointer into the input.' }),
    code: t.expose('code', { type: DetailCodeType }),
  }),
});

builder.objectType(Refusal, {
  name: 'Refusal',
  description: 'An answer the caller can act on.',
  fields: (t) => ({
    code: t.expose('code', { type: RefusalCode }),
    message: t.exposeString('message'),
    status: t.int({ description: 'The HTTP status of the same refusal on the REST routes.', resolve: (refusal) => statusOf(refusal) }),
    details: t.expose('details', { type: [RefusalDetail] }),
    retryAfterSeconds: t.int({ nullable: true, resolve: (refusal) => refusal.retryAfterSeconds ?? null }),
    requestId: t.string({ resolve: (_, _args, { caller }) => caller.requestId }),
  }),
});

/** A refusal as an error of a query field, of a subscription, or of the request as a whole. (iam-auth-audit 8.4) */
export const refusalError = (refusal: Refusal, requestId: string, at?: Pick<GraphQLError, 'nodes' | 'path'>): GraphQLError =>
  new GraphQLError(refusal.message, {
    ...(at?.nodes !== undefined && { nodes: at.nodes }),
    ...(at?.path !== undefined && { path: at.path }),
    extensions: {
      code: refusal.code,
      status: statusOf(refusal),
      requestId,
      ...(refusal.details.length > 0 && { details: refusal.details }),
      ...(refusal.retryAfterSeconds !== undefined && { retryAfterSeconds: refusal.retryAfterSeconds }),
    },
  });
