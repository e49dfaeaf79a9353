/** What a failure of the client or its server means to callers of the port. */
import { ErrorType, isCommandError } from '@eventstore/db-client';
import { Fault } from '../../kernel/errors.ts';
import { AppendTooLarge, StoreUnavailable, WrongExpectedRevision } from '../event-store.ts';

/** The gRPC status of an argument the server cannot work with, for example a position between two events. */
const invalidArgument = 3;
/** The gRPC status of credentials that the server does not know. */
const unauthenticated = 16;
/** Statuses that no repetition changes: invalid argument, permission denied, unimplemented, unauthenticated. */
const lastingStatuses: readonly unknown[] = [invalidArgument, 7, 12, unauthenticated];

/** Of the error itself or, once named for the port, of its cause. */
const statusOf = (error: unknown): unknown => (!(error instanceof Error) ? undefined : 'code' in error ? error.code : statusOf(error.cause));

/** Whether the server knows no event at the position it was asked for. */
export const isInvalidPosition = (error: unknown): boolean => statusOf(error) === invalidArgument;

/** Whether the server knows the user and refuses this one thing to it. */
export const isDenied = (error: unknown): boolean =>
  error instanceof Error && ((isCommandError(error) && error.type === ErrorType.ACCESS_DENIED && statusOf(error) !== unauthenticated) || isDenied(error.cause));

/** Whether an append failed because the stream is at another revision. */
export const isWrongRevision = (error: unknown): boolean => error instanceof Error && isCommandError(error) && error.type === ErrorType.WRONG_EXPECTED_VERSION;

/**
 * The failure as the port names it. The client rejects with its own errors, with raw gRPC errors, and with plain
 * ones when no member of a cluster answers: whatever may pass by itself is {@link StoreUnavailable}.
 */
export const failure = (error: unknown): Error => {
  if ([StoreUnavailable, WrongExpectedRevision, Fault, RangeError].some((known) => error instanceof known)) return error as Error;
  if (statusOf(error) === unauthenticated) return new Fault('EventStoreDB does not accept the user and the password of its URL', { cause: error });
  if (error instanceof Error && isCommandError(error)) {
    if (error.type === ErrorType.MAXIMUM_APPEND_SIZE_EXCEEDED)
      return new AppendTooLarge('The append exceeds the limit that this EventStoreDB is configured with', { cause: error });
    if (error.type === ErrorType.STREAM_DELETED) return new Fault(`Stream ${error.streamName} was deleted in the event store`, { cause: error });
    if (error.type === ErrorType.ACCESS_DENIED) return new Fault('EventStoreDB does not give its user the rights this takes', { cause: error });
  }
  if (lastingStatuses.includes(statusOf(error))) return new Fault('EventStoreDB refused a call', { cause: error });
  return new StoreUnavailable('EventStoreDB did not answer', { cause: error });
};
