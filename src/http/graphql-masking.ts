/** What clients see of errors in a GraphQL answer: refusals with their code, faults masked and logged once. (architecture section 7) */
import { GraphQLError, type ExecutionResult } from 'graphql';
import { isAsyncIterable, mapAsyncIterator, type Plugin } from 'graphql-yoga';
import { refusalError } from '../../schema/index.ts';
import type { Caller } from '../iam/caller.ts';
import { Refusal } from '../kernel/errors.ts';
import type { Log } from '../telemetry/logger.ts';
import { publicRefusal } from './errors.ts';

/** An error of the document, its variables or its shape has no cause of ours: it is the caller's. */
const refusalOf = (error: GraphQLError, requestId: string, log: Log): Refusal =>
  error.originalError == null || error.originalError instanceof GraphQLError ? new Refusal('INVALID_REQUEST', error.message) : publicRefusal(error.originalError, requestId, log);

export const useMasking = (log: Log): Plugin<object, { readonly caller: Caller }> => ({
  onResultProcess: ({ result, setResult, serverContext }) => {
    const { requestId } = serverContext.caller;
    const masked = (one: ExecutionResult): ExecutionResult =>
      one.errors === undefined ? one : { ...one, errors: one.errors.map((error) => refusalError(refusalOf(error, requestId, log), requestId, error)) };
    if (isAsyncIterable(result)) setResult(mapAsyncIterator(result, masked));
    else if (!Array.isArray(result)) setResult(masked(result));
  },
});
