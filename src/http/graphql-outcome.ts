/** What became of a GraphQL request, as the metrics count it: its kind of operation, and the worst status among its errors. */
import { getOperationAST, type DocumentNode } from 'graphql';
import type { Plugin } from 'graphql-yoga';
import type { GraphqlOperation } from '../telemetry/metrics.ts';

export interface Outcome {
  /** `none` until the document turned out to hold an operation. */
  operation: GraphqlOperation;
  /** The largest HTTP status among the errors, 200 without any. */
  status: number;
}

interface Args {
  readonly document: DocumentNode;
  readonly operationName?: string | null | undefined;
  readonly contextValue?: unknown;
}

const note = ({ document, operationName, contextValue }: Args): void => {
  (contextValue as { outcome: Outcome }).outcome.operation = getOperationAST(document, operationName)?.operation ?? 'none';
};

export const useOutcome = (): Plugin => ({
  onExecute: ({ args }) => note(args),
  onSubscribe: ({ args }) => note(args),
});
