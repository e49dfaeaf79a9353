/** The Streams service of one member of the loopback EventStoreDB. */
import type { IStreamsServer } from '@eventstore/db-client/generated/streams_grpc_pb.js';
import pb from '@eventstore/db-client/generated/streams_pb.js';
import type { AppendReq, AppendResp, BatchAppendReq, BatchAppendResp, DeleteReq, ReadReq, ReadResp, TombstoneReq } from '@eventstore/db-client/generated/streams_pb.js';
import { status } from '@grpc/grpc-js';
import type { Metadata, ServerDuplexStream, ServerReadableStream, ServerWritableStream, ServiceError, sendUnaryData } from '@grpc/grpc-js';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import type { Judge } from './access.ts';
import type { Fault, Faults, Method } from './faults.ts';
import { isAfter } from './log.ts';
import type { AppendOutcome, Expected, Log, LogPosition, LogRecord, ProposedEvent } from './log.ts';
import {
  appendAnswer,
  batchAnswer,
  caughtUpMessage,
  checkpointMessage,
  confirmationMessage,
  denied,
  eventMessage,
  expectedOf,
  failed,
  filterOf,
  invalidPosition,
  noLeader,
  notLeader,
  proposedEvent,
  streamName,
  streamNotFoundMessage,
  unavailable,
} from './messages.ts';

/** How the service sees the member it belongs to. */
export interface MemberView {
  readonly port: number;
  readonly log: Log;
  readonly faults: Faults;
  readonly judge: Judge;
  readonly leaderPort: () => number;
  /** How many records of the log this member shows: a follower may be behind. */
  readonly visible: () => number;
  /** Subscriptions under way, to be ended from outside. */
  readonly subscriptions: Set<(error?: ServiceError) => void>;
}

const defaultWindow = 32;

export const createStreams = ({ port, log, faults, judge, leaderPort, visible, subscriptions }: MemberView): IStreamsServer => {
  const arrive = (method: Method, stream: string, call: { readonly metadata: Metadata; getDeadline(): Date | number }): boolean => {
    const requiresLeader = call.metadata.get('requires-leader')[0] === 'true';
    faults.note({ method, port, requiresLeader, hasDeadline: Number.isFinite(Number(call.getDeadline())), stream });
    return requiresLeader && leaderPort() !== port;
  };

  /** Stores as the fault allows; undefined where nothing must be answered. */
  const store = async (fault: Fault | undefined, stream: string, expected: Expected, events: readonly ProposedEvent[]): Promise<AppendResp | ServiceError | undefined> => {
    if (typeof fault === 'object' && 'holdUntil' in fault) await fault.holdUntil;
    if (fault === 'drop') return undefined;
    if (fault === 'fail') return unavailable();
    if (fault === 'no leader') return noLeader();
    if (fault === 'deny') return denied();
    const outcome = log.append(stream, expected, events);
    if (typeof fault === 'object' && 'storeAndHoldUntil' in fault) await fault.storeAndHoldUntil;
    switch (fault) {
      case 'store and drop':
        return undefined;
      case 'store and fail':
        return unavailable();
      case 'store and time out':
        return failed(status.ABORTED, 'Operation timed out: Commit timeout');
      case 'store and conflict':
        return appendAnswer({ outcome: 'wrong expected version', current: outcome.outcome === 'success' ? outcome.revision : -1 }, stream, expected);
      default:
        return appendAnswer(outcome, stream, expected, fault !== 'store without position');
    }
  };

  const append = async (call: ServerReadableStream<AppendReq, AppendResp>): Promise<AppendResp | ServiceError | undefined> => {
    let options: AppendReq.Options | undefined;
    const events: ProposedEvent[] = [];
    for await (const message of call as AsyncIterable<AppendReq>) {
      options ??= message.getOptions();
      const proposed = message.getProposedMessage();
      if (proposed !== undefined) events.push(proposedEvent(proposed));
    }
    const stream = streamName(options!.getStreamIdentifier());
    if (arrive('append', stream, call)) return notLeader('127.0.0.1', leaderPort());
    const refused = judge(call.metadata, stream, '$w');
    if (refused !== undefined) return refused;
    return store(faults.take('append'), stream, expectedOf(options!, options!.getRevision()), events);
  };

  const batchAppend = async (call: ServerDuplexStream<BatchAppendReq, BatchAppendResp>): Promise<void> => {
    const open = new Map<string, { readonly options: BatchAppendReq.Options; readonly events: ProposedEvent[] }>();
    for await (const message of call as AsyncIterable<BatchAppendReq>) {
      const correlationId = message.getCorrelationId()!;
      const batch = open.get(correlationId.getString()) ?? { options: message.getOptions()!, events: [] };
      open.set(correlationId.getString(), batch);
      batch.events.push(...message.getProposedMessagesList().map(proposedEvent));
      if (!message.getIsFinal()) continue;
      open.delete(correlationId.getString());
      const stream = streamName(batch.options.getStreamIdentifier());
      arrive('batchAppend', stream, call);
      const refused = judge(call.metadata, stream, '$w');
      if (refused !== undefined) {
        call.emit('error', refused);
        return;
      }
      const fault = faults.take('batchAppend');
      if (fault === 'end the call') {
        call.end();
        return;
      }
      if (fault === 'fail') {
        call.emit('error', unavailable());
        return;
      }
      const outcome: AppendOutcome = log.append(stream, expectedOf(batch.options, batch.options.getStreamPosition()), batch.events);
      if (typeof fault === 'object' && 'storeAndHoldUntil' in fault) await fault.storeAndHoldUntil;
      const answer = batchAnswer(correlationId, stream, outcome);
      call.write(answer);
      if (fault === 'answer twice') call.write(answer);
    }
    call.end();
  };

  /** Records in store order from the start of a read on, this included forwards and excluded backwards. */
  const allFrom = (options: ReadReq.Options, backwards: boolean): readonly LogRecord[] | ServiceError => {
    const shown = log.all.slice(0, visible());
    const from = options.getAll()!;
    if (backwards) shown.reverse();
    if (from.hasStart()) return backwards ? [] : shown;
    if (from.hasEnd()) return backwards ? shown : [];
    const position = positionOf(from.getPosition()!);
    const last = log.all.at(-1);
    const isRecord = log.all.some(({ commit, prepare }) => commit === position.commit && prepare === position.prepare);
    if (!isRecord && last !== undefined && isAfter(last, position)) return invalidPosition();
    return shown.filter((record) => (backwards ? isAfter(position, record) : !isAfter(position, record)));
  };

  const streamFrom = (options: ReadReq.Options, backwards: boolean): readonly LogRecord[] | 'absent' | ServiceError => {
    const from = options.getStream()!;
    const stream = streamName(from.getStreamIdentifier());
    const view = log.view(stream, visible());
    if (view.is === 'absent') return 'absent';
    if (view.is === 'tombstoned') return appendAnswer({ outcome: 'stream deleted' }, stream, 'any') as ServiceError;
    const revision = from.hasStart() ? 0 : from.hasEnd() ? Infinity : Number(from.getRevision());
    return backwards ? view.records.filter((record) => record.revision <= revision).reverse() : view.records.filter((record) => record.revision >= revision);
  };

  const read = async (call: ServerWritableStream<ReadReq, ReadResp>): Promise<void> => {
    const options = call.request.getOptions()!;
    const stream = options.hasStream() ? streamName(options.getStream()!.getStreamIdentifier()) : '$all';
    const fail = (error: ServiceError): void => void call.emit('error', error);
    if (arrive('read', stream, call)) return fail(notLeader('127.0.0.1', leaderPort()));
    const refused = judge(call.metadata, stream, '$r');
    if (refused !== undefined) return fail(refused);
    const fault = faults.take('read');
    if (typeof fault === 'object' && 'holdUntil' in fault) await fault.holdUntil;
    if (fault === 'drop') return;
    if (fault === 'fail') return fail(unavailable());
    if (fault === 'no leader') return fail(noLeader());
    if (fault === 'deny') return fail(denied());
    if (fault === 'end the call') return void call.end();
    if (options.hasSubscription()) return follow(call, options, fault);
    const backwards = options.getReadDirection() === pb.ReadReq.Options.ReadDirection.BACKWARDS;
    const records = options.hasStream() ? streamFrom(options, backwards) : allFrom(options, backwards);
    if (records === 'absent') call.write(streamNotFoundMessage(stream));
    else if ('code' in records) return fail(records);
    else {
      const keeps = filterOf(options);
      for (const record of records.filter(keeps).slice(0, Number(options.getCount()))) {
        if (call.cancelled) return;
        if (!call.write(eventMessage(record))) await drained(call);
      }
    }
    call.end();
  };

  /** A position beyond the end is accepted, and everything up to it passed over in silence, as the real server does. */
  const follow = async (call: ServerWritableStream<ReadReq, ReadResp>, options: ReadReq.Options, fault: Fault | undefined): Promise<void> => {
    const from = options.getAll()!;
    const last = log.all.at(-1);
    let after: LogPosition | undefined = from.hasPosition() ? positionOf(from.getPosition()!) : from.hasEnd() ? last : undefined;
    if (after !== undefined && allFrom(options, false) instanceof Error) return void call.emit('error', invalidPosition());
    const filter = options.getFilter();
    const keeps = filterOf(options);
    const interval = (filter?.hasMax() ? filter.getMax() : defaultWindow) * (filter?.getCheckpointintervalmultiplier() ?? 1);
    let examined = 0;
    let index = 0;
    let caughtUp = false;
    let ended = false;
    let wake = (): void => {};
    const silence = log.onAppend(() => wake());
    const end = (error?: ServiceError): void => {
      ended = true;
      if (error === undefined) call.end();
      else call.emit('error', error);
      wake();
    };
    subscriptions.add(end);
    call.on('cancelled', () => {
      ended = true;
      wake();
    });
    call.write(confirmationMessage(randomUUID()));
    while (!ended && !call.cancelled) {
      const record = index < visible() ? log.all[index] : undefined;
      if (record === undefined || (caughtUp && fault === 'go silent')) {
        if (!caughtUp) call.write(caughtUpMessage());
        caughtUp = true;
        await new Promise<void>((resolve) => (wake = resolve));
        continue;
      }
      index += 1;
      if (after !== undefined && !isAfter(record, after)) continue;
      after = record;
      const isFlowing = !keeps(record) || call.write(eventMessage(record));
      if (filter !== undefined && ++examined % interval === 0) call.write(checkpointMessage(record));
      if (!isFlowing) await drained(call);
    }
    silence();
    subscriptions.delete(end);
  };

  const remove = (call: { readonly request: DeleteReq | TombstoneReq; readonly metadata: Metadata }, forEver: boolean): ServiceError | undefined => {
    const options = call.request.getOptions()!;
    const stream = streamName(options.getStreamIdentifier());
    const expected = expectedOf(options, options.getRevision());
    const refused = judge(call.metadata, stream, '$d');
    if (refused !== undefined) return refused;
    return log.deleteStream(stream, expected, forEver) ? undefined : failed(status.FAILED_PRECONDITION, `Stream ${stream} is at another revision`);
  };

  return {
    append: (call: ServerReadableStream<AppendReq, AppendResp>, callback: sendUnaryData<AppendResp>) => {
      void append(call).then((answer) => {
        if (answer === undefined) return;
        if ('code' in answer) callback(answer);
        else callback(null, answer);
      }, ignoreBrokenCall);
    },
    batchAppend: (call: ServerDuplexStream<BatchAppendReq, BatchAppendResp>) => void batchAppend(call).catch(ignoreBrokenCall),
    read: (call: ServerWritableStream<ReadReq, ReadResp>) => void read(call).catch(ignoreBrokenCall),
    delete: (call, callback) => {
      const error = remove(call, false);
      if (error === undefined) callback(null, new pb.DeleteResp());
      else callback(error);
    },
    tombstone: (call, callback) => {
      const error = remove(call, true);
      if (error === undefined) callback(null, new pb.TombstoneResp());
      else callback(error);
    },
  };
};

/** Resolves when more may be written, or nobody reads any more. */
const drained = async (call: ServerWritableStream<ReadReq, ReadResp>): Promise<void> => {
  const end = new AbortController();
  await Promise.race([once(call, 'drain', { signal: end.signal }), once(call, 'cancelled', { signal: end.signal })]).catch(() => {});
  end.abort();
};

const positionOf = (position: ReadReq.Options.Position): LogPosition => ({ commit: Number(position.getCommitPosition()), prepare: Number(position.getPreparePosition()) });

/** The client or a kill ended the call; nobody is left to answer. */
const ignoreBrokenCall = (): void => {};
