/** What the server sends to a read or a subscription, message by message and byte for byte. */
import type { AllStreamSubscription, ResolvedEvent, StreamingRead } from '@eventstore/db-client';
import type { ReadResp } from '@eventstore/db-client/generated/streams_pb.js';
import type { Transform, TransformCallback } from 'node:stream';
import { Fault } from '../../kernel/errors.ts';
import { StoreUnavailable } from '../event-store.ts';
import type { StoredEvent } from '../event-store.ts';
import { positionText } from './position.ts';

type Call = StreamingRead<ResolvedEvent> | AllStreamSubscription;

/**
 * A call's messages as they came. The client would parse metadata that looks like JSON, and thereby lose its
 * bytes and its hash; and it would report checkpoints ahead of the events before them. (failure scenarios 6, 29)
 */
export const asReceived = (call: Call): Transform => {
  const stream = call as unknown as Transform;
  stream._transform = (response: unknown, _encoding: string, next: TransformCallback) => next(null, response);
  stream.on('error', () => {}); // readers hear of it; a late one must not end the process
  return stream;
};

/** Ends a call and tells the server so. */
export const endCall = (call: Call): void => {
  call.destroy();
  const ended = 'unsubscribe' in call ? call.unsubscribe() : call.cancel();
  ended.catch(() => {}); // it never began
};

/**
 * The messages of a read or a subscription, which the client gives no deadline.
 * @throws StoreUnavailable when the server is silent for `silenceMs`
 */
export async function* messages(call: Call, silenceMs: number): AsyncGenerator<ReadResp, void, undefined> {
  const stream = asReceived(call);
  const silence = setTimeout(() => stream.destroy(new StoreUnavailable(`EventStoreDB was silent for ${silenceMs} ms`)), silenceMs);
  try {
    for await (const message of stream as AsyncIterable<ReadResp>) {
      silence.refresh();
      yield message;
    }
  } finally {
    clearTimeout(silence);
    endCall(call);
  }
}

/** The event of a message, or undefined where it carries none. */
export const eventOf = (message: ReadResp): StoredEvent | undefined => {
  const record = message.getEvent()?.getEvent();
  if (record === undefined) return undefined;
  const stream = text(record.getStreamIdentifier()!.getStreamName_asU8());
  const position = positionText(record.getCommitPosition(), record.getPreparePosition());
  if (position === undefined) throw new Fault(`EventStoreDB gives no positions to events of stream ${stream}; it takes version 23.10 or later`);
  return {
    stream,
    revision: Number(record.getStreamRevision()),
    position,
    id: record.getId()!.getString(),
    type: record.getMetadataMap().get('type') ?? '',
    data: text(record.getData_asU8()),
    metadata: text(record.getCustomMetadata_asU8()),
  };
};

/** Settings of a stream, from an event of its metadata stream; the server passes over what is no JSON, too. */
export const settingsIn = ({ data }: StoredEvent): Readonly<Record<string, unknown>> => {
  try {
    return Object(JSON.parse(data)) as Record<string, unknown>;
  } catch {
    return {};
  }
};

const text = (bytes: Uint8Array): string => Buffer.from(bytes).toString();
