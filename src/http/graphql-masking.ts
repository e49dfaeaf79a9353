/** What clients see of errors in a GraphQL answer: refusals with their code, faults masked and logged once. (architecture section 7) */
import { GraphQLError, Kind, type ExecutionResult } from 'graphql';
import { isAsyncIterable, mapAsyncIterator, type Plugin } from 'graphql-yoga';
import { refusalError } from '../../schema/index.ts';
import type { Caller } from '../iam/caller.ts';
import { Refusal } from '../kernel/errors.ts';
import type { Log } from '../telemetry/logger.ts';
import { publicRefusal } from './errors.ts';
import { takesStreamsOnly } from './graphql-accept.ts';
import type { Outcome } from './graphql-outcome.ts';

/** What the plugin knows of a request beside its document. */
export interface Masking {
  readonly caller: Caller;
  /** The refusal that ends the operation; it is told once, however many fields it met. */
  readonly ending: Refusal;
  readonly outcome: Outcome;
}

/** A value the schema cannot represent: graphql-js raises it with the path of a field, and an argument's error names the argument. */
const isOfValue = ({ path, originalError }: GraphQLError): boolean =>
  path !== undefined && originalError instanceof GraphQLError && (originalError.nodes ?? []).every(({ kind }) => kind === Kind.FIELD);

/** An error of the document, its variables or its shape has no cause of ours: it is the caller's. */
const refusalOf = (error: GraphQLError, requestId: string, log: Log): Refusal => {
  const { originalError } = error;
  const isOfCaller = originalError == null || (originalError instanceof GraphQLError && !isOfValue(error));
  return isOfCaller ? new Refusal('INVALID_REQUEST', error.message) : publicRefusal(originalError, requestId, log);
};

const statusIn = ({ extensions }: GraphQLError): number => extensions['status'] as number;

/** A request that was refused for what it says answers so over HTTP, too; a stream tells it as its first result. */
const withStatus = (result: ExecutionResult, errors: readonly GraphQLError[], isStream: boolean): ExecutionResult => {
  const refused = result.data === undefined && !isStream && errors.every(({ extensions }) => extensions['code'] === 'INVALID_REQUEST');
  return { ...result, errors, ...(refused && { extensions: { ...result.extensions, http: { status: statusIn(errors[0]!) } } }) };
};

export const useMasking = (log: Log): Plugin<object, Masking> => ({
  onResultProcess: ({ request, result, setResult, serverContext: { caller, ending, outcome } }) => {
    const { requestId } = caller;
    const isStream = takesStreamsOnly(request.headers.get('accept'));
    const masked = (one: ExecutionResult): ExecutionResult => {
      if (one.errors === undefined) return one;
      const ends = one.errors.findIndex(({ originalError }) => originalError === ending);
      const told = one.errors.filter(({ originalError }, index) => originalError !== ending || index === ends);
      const errors = told.map((error) => refusalError(refusalOf(error, requestId, log), requestId, error));
      outcome.status = Math.max(outcome.status, ...errors.map(statusIn));
      return withStatus(one, errors, isStream);
    };
    if (isAsyncIterable(result)) setResult(mapAsyncIterator(result, masked));
    else if (!Array.isArray(result)) setResult(masked(result));
  },
});
