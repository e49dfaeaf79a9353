/** Translates between the log and the messages of the wire protocol. */
import shared from '@eventstore/db-client/generated/shared_pb.js';
import type { StreamIdentifier, UUID } from '@eventstore/db-client/generated/shared_pb.js';
import statusMessages from '@eventstore/db-client/generated/status_pb.js';
import pb from '@eventstore/db-client/generated/streams_pb.js';
import type { AppendReq, AppendResp, BatchAppendReq, BatchAppendResp, ReadReq, ReadResp } from '@eventstore/db-client/generated/streams_pb.js';
import { Metadata, status } from '@grpc/grpc-js';
import type { ServiceError } from '@grpc/grpc-js';
import anyMessages from 'google-protobuf/google/protobuf/any_pb.js';
import { maxAppendBytes } from './log.ts';
import type { AppendOutcome, Expected, LogPosition, LogRecord, ProposedEvent } from './log.ts';

export const streamName = (identifier: StreamIdentifier | undefined): string => Buffer.from(identifier!.getStreamName_asU8()).toString();

const identifier = (stream: string): StreamIdentifier => {
  const message = new shared.StreamIdentifier();
  message.setStreamName(Buffer.from(stream));
  return message;
};

const base64 = (bytes: Uint8Array): string => Buffer.from(bytes).toString('base64');

export const proposedEvent = (message: AppendReq.ProposedMessage | BatchAppendReq.ProposedMessage): ProposedEvent => ({
  id: message.getId()!.getString(),
  type: message.getMetadataMap().get('type')!,
  contentType: message.getMetadataMap().get('content-type')!,
  data: base64(message.getData_asU8()),
  metadata: base64(message.getCustomMetadata_asU8()),
});

export const expectedOf = (
  options: Pick<AppendReq.Options, 'hasNoStream' | 'hasAny' | 'hasStreamExists'>,
  revision: string,
): Expected => (options.hasNoStream() ? 'no stream' : options.hasAny() ? 'any' : options.hasStreamExists() ? 'stream exists' : Number(revision));

export const eventMessage = (record: LogRecord): ReadResp => {
  const recorded = new pb.ReadResp.ReadEvent.RecordedEvent();
  const id = new shared.UUID();
  id.setString(record.id);
  recorded.setId(id);
  recorded.setStreamIdentifier(identifier(record.stream));
  recorded.setStreamRevision(String(record.revision));
  recorded.setCommitPosition(String(record.commit));
  recorded.setPreparePosition(String(record.prepare));
  recorded.getMetadataMap().set('type', record.type).set('content-type', record.contentType).set('created', record.created);
  recorded.setData(Buffer.from(record.data, 'base64'));
  recorded.setCustomMetadata(Buffer.from(record.metadata, 'base64'));
  const event = new pb.ReadResp.ReadEvent();
  event.setEvent(recorded);
  event.setCommitPosition(String(record.commit));
  const message = new pb.ReadResp();
  message.setEvent(event);
  return message;
};

export const streamNotFoundMessage = (stream: string): ReadResp => {
  const notFound = new pb.ReadResp.StreamNotFound();
  notFound.setStreamIdentifier(identifier(stream));
  const message = new pb.ReadResp();
  message.setStreamNotFound(notFound);
  return message;
};

export const confirmationMessage = (subscriptionId: string): ReadResp => {
  const confirmation = new pb.ReadResp.SubscriptionConfirmation();
  confirmation.setSubscriptionId(subscriptionId);
  const message = new pb.ReadResp();
  message.setConfirmation(confirmation);
  return message;
};

export const checkpointMessage = ({ commit, prepare }: LogPosition): ReadResp => {
  const checkpoint = new pb.ReadResp.Checkpoint();
  checkpoint.setCommitPosition(String(commit));
  checkpoint.setPreparePosition(String(prepare));
  const message = new pb.ReadResp();
  message.setCheckpoint(checkpoint);
  return message;
};

export const caughtUpMessage = (): ReadResp => {
  const message = new pb.ReadResp();
  message.setCaughtUp(new pb.ReadResp.CaughtUp());
  return message;
};

/** The answer to an append, or the error it ends with. */
export const appendAnswer = (outcome: AppendOutcome, stream: string, expected: Expected, withPosition = true): AppendResp | ServiceError => {
  const answer = new pb.AppendResp();
  switch (outcome.outcome) {
    case 'success': {
      const success = new pb.AppendResp.Success();
      success.setCurrentRevision(String(outcome.revision));
      if (withPosition) {
        const position = new pb.AppendResp.Position();
        position.setCommitPosition(String(outcome.position.commit));
        position.setPreparePosition(String(outcome.position.prepare));
        success.setPosition(position);
      } else success.setNoPosition(new shared.Empty());
      answer.setSuccess(success);
      return answer;
    }
    case 'wrong expected version': {
      const wrong = new pb.AppendResp.WrongExpectedVersion();
      if (outcome.current === -1) wrong.setCurrentNoStream(new shared.Empty());
      else wrong.setCurrentRevision(String(outcome.current));
      if (typeof expected === 'number') wrong.setExpectedRevision(String(expected));
      else if (expected === 'no stream') wrong.setExpectedNoStream(new shared.Empty());
      else wrong.setExpectedStreamExists(new shared.Empty());
      answer.setWrongExpectedVersion(wrong);
      return answer;
    }
    case 'stream deleted':
      return failed(status.FAILED_PRECONDITION, `Event stream '${stream}' is deleted.`, { exception: 'stream-deleted', 'stream-name': stream });
    case 'too large':
      return failed(status.INVALID_ARGUMENT, `Maximum Append Size of ${maxAppendBytes} Exceeded.`, {
        exception: 'maximum-append-size-exceeded',
        'maximum-append-size': String(maxAppendBytes),
      });
  }
};

/** The answer to one append of a batch call; what went wrong is packed into its error. */
export const batchAnswer = (correlationId: UUID, stream: string, outcome: AppendOutcome): BatchAppendResp => {
  const answer = new pb.BatchAppendResp();
  answer.setCorrelationId(correlationId);
  answer.setStreamIdentifier(identifier(stream));
  if (outcome.outcome === 'success') {
    const position = new shared.AllStreamPosition();
    position.setCommitPosition(String(outcome.position.commit));
    position.setPreparePosition(String(outcome.position.prepare));
    const success = new pb.BatchAppendResp.Success();
    success.setCurrentRevision(String(outcome.revision));
    success.setPosition(position);
    answer.setSuccess(success);
    return answer;
  }
  const details = new anyMessages.Any();
  if (outcome.outcome === 'wrong expected version') {
    const wrong = new shared.WrongExpectedVersion();
    wrong.setCurrentStreamRevision(String(outcome.current));
    details.pack(wrong.serializeBinary(), 'event_store.client.WrongExpectedVersion');
  } else if (outcome.outcome === 'stream deleted') details.pack(new shared.StreamDeleted().serializeBinary(), 'event_store.client.StreamDeleted');
  else {
    const tooLarge = new shared.MaximumAppendSizeExceeded();
    tooLarge.setMaxappendsize(maxAppendBytes);
    details.pack(tooLarge.serializeBinary(), 'event_store.client.MaximumAppendSizeExceeded');
  }
  const error = new statusMessages.Status();
  error.setMessage(outcome.outcome);
  error.setDetails(details);
  answer.setError(error);
  return answer;
};

/** A gRPC error as EventStoreDB sends it: what it is stands in its metadata. */
export const failed = (code: status, details: string, metadata: Readonly<Record<string, string>> = {}): ServiceError => {
  const trailers = new Metadata();
  for (const [name, value] of Object.entries(metadata)) trailers.set(name, value);
  return Object.assign(new Error(details), { code, details, metadata: trailers });
};

export const unavailable = (): ServiceError => failed(status.UNAVAILABLE, 'Server Is Not Ready');
export const noLeader = (): ServiceError => failed(status.UNKNOWN, 'No leader info available in response');
export const notLeader = (host: string, port: number): ServiceError =>
  failed(status.NOT_FOUND, 'Leader info available', { exception: 'not-leader', 'leader-endpoint-host': host, 'leader-endpoint-port': String(port) });
export const denied = (): ServiceError => failed(status.PERMISSION_DENIED, 'Access Denied', { exception: 'access-denied' });
export const unauthenticated = (): ServiceError => failed(status.UNAUTHENTICATED, '');
export const invalidPosition = (): ServiceError => failed(status.INVALID_ARGUMENT, 'Trying to read from an invalid position.');

/** What the filter of a read or subscription keeps. */
export const filterOf = (options: ReadReq.Options): ((record: LogRecord) => boolean) => {
  const filter = options.getFilter();
  const expression = filter?.getStreamIdentifier() ?? filter?.getEventType();
  if (filter === undefined || expression === undefined) return () => true;
  const regex = expression.getRegex() === '' ? undefined : new RegExp(expression.getRegex());
  const prefixes = expression.getPrefixList();
  return (record) => {
    const value = filter.hasStreamIdentifier() ? record.stream : record.type;
    return regex?.test(value) ?? prefixes.some((prefix) => value.startsWith(prefix));
  };
};
