/**
 * The log of the loopback EventStoreDB: what a real one promises about appends, idempotence, deletion and truncation,
 * kept in an append-only file so that it survives a kill.
 */
import { randomUUID } from 'node:crypto';
import { appendFileSync, existsSync, readFileSync, writeFileSync } from 'node:fs';

export interface ProposedEvent {
  readonly id: string;
  readonly type: string;
  readonly contentType: string;
  /** Base64. */
  readonly data: string;
  /** Base64. */
  readonly metadata: string;
}

export interface LogRecord extends ProposedEvent {
  readonly stream: string;
  readonly revision: number;
  readonly commit: number;
  readonly prepare: number;
  /** Ticks of 100 ns since 1970. */
  readonly created: string;
}

export interface LogPosition {
  readonly commit: number;
  readonly prepare: number;
}

/** A revision, or what else may be expected of a stream. */
export type Expected = number | 'no stream' | 'any' | 'stream exists';

export type AppendOutcome =
  | { readonly outcome: 'success'; readonly revision: number; readonly position: LogPosition }
  | { readonly outcome: 'wrong expected version'; readonly current: number }
  | { readonly outcome: 'stream deleted' }
  | { readonly outcome: 'too large' };

/** Revisions a stream shows: none of a deleted one, the later ones of a truncated one. */
export type View = { readonly is: 'absent' } | { readonly is: 'tombstoned' } | { readonly is: 'present'; readonly records: readonly LogRecord[] };

export const maxAppendBytes = 1_048_576;
/** `$tb` of a stream that was deleted softly. */
const deletedStream = 2 ** 63 - 1;
const ticksPerMs = 10_000;
const tombstone = '$streamDeleted';
/** Bytes a record takes in the log beside its payload, so that positions have gaps. */
const overhead = 73;
/** One system event after so many appends, as the server's own statistics come in between. */
const appendsPerSystemEvent = 3;

export const isAfter = (a: LogPosition, b: LogPosition): boolean => a.commit > b.commit || (a.commit === b.commit && a.prepare > b.prepare);

/** Opens the log in a file, which is made when absent. */
export const openLog = (file: string) => {
  const all: LogRecord[] = [];
  const streams = new Map<string, LogRecord[]>();
  const listeners = new Set<() => void>();
  let end = 0;
  let appends = 0;

  const take = (records: readonly LogRecord[]): void => {
    for (const record of records) {
      all.push(record);
      const stream = streams.get(record.stream);
      if (stream === undefined) streams.set(record.stream, [record]);
      else stream.push(record);
      end = record.commit + overhead + sizeOf(record);
    }
  };

  const write = (stream: string, events: readonly ProposedEvent[]): readonly LogRecord[] => {
    const first = streams.get(stream)?.length ?? 0;
    let offset = end;
    const records = events.map((event, index): LogRecord => {
      const position = { commit: offset, prepare: offset };
      offset += overhead + sizeOf(event);
      return { ...event, stream, revision: first + index, created: String(Date.now() * ticksPerMs), ...position };
    });
    appendFileSync(file, `${JSON.stringify(records)}\n`);
    take(records);
    return records;
  };

  const writeSystemEvent = (stream: string, type: string): void => {
    write(stream, [{ id: randomUUID(), type, contentType: 'application/json', data: base64('{}'), metadata: '' }]);
  };

  const lastOf = (stream: string): Readonly<Record<string, unknown>> => {
    const data = streams.get(stream)?.at(-1)?.data ?? '';
    return data === '' ? {} : (JSON.parse(Buffer.from(data, 'base64').toString()) as Record<string, unknown>);
  };

  const settings = (stream: string): { readonly $tb?: number; readonly $maxCount?: number; readonly $maxAge?: number } => lastOf(`$$${stream}`);

  const view = (stream: string, visible: number = all.length): View => {
    const bound = all[visible];
    const records = (streams.get(stream) ?? []).filter((record) => bound === undefined || isAfter(bound, record));
    if (records.at(-1)?.type === tombstone) return { is: 'tombstoned' };
    const { $tb = 0, $maxCount = Infinity, $maxAge = Infinity } = settings(stream);
    if (records.length === 0 || $tb >= deletedStream) return { is: 'absent' };
    const oldest = Date.now() - $maxAge * 1_000;
    const young = records.filter(({ created }) => Number(created) / ticksPerMs >= oldest);
    return { is: 'present', records: young.filter(({ revision }) => revision >= Math.max($tb, records.length - $maxCount)) };
  };

  const notify = (): void => {
    for (const listener of [...listeners]) listener();
  };

  /** Ids are compared at the exact revisions, contents are not; a batch of which a part is stored is a conflict. */
  const append = (stream: string, expected: Expected, events: readonly ProposedEvent[]): AppendOutcome => {
    const stored = streams.get(stream) ?? [];
    const current = stored.length - 1;
    if (stored.at(-1)?.type === tombstone) return { outcome: 'stream deleted' };
    if (events.reduce((sum, event) => sum + sizeOf(event), 0) > maxAppendBytes) return { outcome: 'too large' };
    const isDeletedSoftly = (settings(stream).$tb ?? 0) >= deletedStream;
    const matches =
      expected === 'any' || (expected === 'stream exists' ? current >= 0 : expected === 'no stream' ? current === -1 || isDeletedSoftly : expected === current);
    const from = expected === 'no stream' ? 0 : typeof expected === 'number' ? expected + 1 : stored.findIndex(({ id }) => id === events[0]?.id);
    if (from >= 0 && from + events.length <= stored.length && events.every(({ id }, index) => stored[from + index]!.id === id)) {
      const last = stored[from + events.length - 1]!;
      return { outcome: 'success', revision: last.revision, position: last };
    }
    if (!matches) return { outcome: 'wrong expected version', current };
    const last = write(stream, events).at(-1)!;
    if (isDeletedSoftly) setSettings(stream, { $tb: current + 1 });
    if (!stream.startsWith('$') && ++appends % appendsPerSystemEvent === 0) writeSystemEvent('$stats-127.0.0.1', '$statsCollected');
    notify();
    return { outcome: 'success', revision: last.revision, position: last };
  };

  const setSettings = (stream: string, values: object): void => {
    write(`$$${stream}`, [{ id: randomUUID(), type: '$metadata', contentType: 'application/json', data: base64(JSON.stringify(values)), metadata: '' }]);
  };

  if (existsSync(file)) {
    const lines = readFileSync(file, 'utf8').split('\n');
    lines.pop(); // empty, or what was being written when the server was killed
    for (const line of lines) take(JSON.parse(line) as LogRecord[]);
  } else {
    writeFileSync(file, '');
    writeSystemEvent('$epoch-information', '$EpochInformation');
  }

  return {
    /** Every record in store order. */
    all: all as readonly LogRecord[],
    append,
    view,
    /** The metadata of a stream in force now. */
    metadata: (stream: string) => lastOf(`$$${stream}`),
    /** The data of a stream's last event, which is JSON. */
    lastOf,
    /** As an operator would set `$maxCount` or `$tb`. */
    setSettings,
    /** Hides the stream; with `forEver` nothing can be appended to it again. False when it is not at the expected revision. */
    deleteStream(stream: string, expected: Expected, forEver: boolean): boolean {
      const current = (streams.get(stream)?.length ?? 0) - 1;
      if (typeof expected === 'number' && expected !== current) return false;
      if (forEver) write(stream, [{ id: randomUUID(), type: tombstone, contentType: 'application/octet-stream', data: '', metadata: '' }]);
      else setSettings(stream, { $tb: deletedStream });
      notify();
      return true;
    },
    /** Makes subscriptions look again. */
    notify,
    /** Calls the listener after every append until the returned function is called. */
    onAppend(listener: () => void): () => void {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
  };
};

export type Log = ReturnType<typeof openLog>;

/** Cuts the log in a file back to its first records, as a restored backup would be. */
export const rewindLog = (file: string, records: number): void => {
  const kept: string[] = [];
  let count = 0;
  for (const line of readFileSync(file, 'utf8').split('\n').slice(0, -1)) {
    count += (JSON.parse(line) as LogRecord[]).length;
    if (count > records) break;
    kept.push(`${line}\n`);
  }
  writeFileSync(file, kept.join(''));
};

const base64 = (text: string): string => Buffer.from(text).toString('base64');

const sizeOf = ({ type, data, metadata }: ProposedEvent): number =>
  Buffer.byteLength(type) + Buffer.byteLength(data, 'base64') + Buffer.byteLength(metadata, 'base64');
