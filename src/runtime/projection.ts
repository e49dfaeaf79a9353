/**
 * A projection: one read model as data. Its table, and per event type the row changes an event leads to; never
 * SQL, and nothing that would have to be read first. (architecture section 4)
 */
import type { Delivered, Handlers, Unread } from './consumer.ts';
import type { Message } from '../kernel/decider.ts';

/** Text sorts by code units, as positions must. Documents are JSON in `text`, their members in the order of the event. */
export type ColumnType = 'text' | 'integer';

type Value = string | number | null;

/** What an event changes. Changes of a batch are merged per key and applied set-wise. */
export type Change<Row> =
  /** Inserts the row with these columns, or sets them where it exists. */
  | { readonly upsert: Partial<Row> }
  /** Sets columns of the row with this key, if there is one. */
  | { readonly patch: string; readonly set: Partial<Row> }
  /** Once the batch is written: fills a column, where the row with this key has none, from the nearest row before it that has one and agrees in these columns. */
  | { readonly inherit: string; readonly column: keyof Row & string; readonly from: readonly (keyof Row & string)[] }
  | { readonly remove: string }
  /** Removes rows by columns that never change in a row's life. */
  | { readonly removeWhere: Partial<Row> };

export interface Table<Row> {
  /** The text column that identifies a row. */
  readonly key: keyof Row & string;
  readonly columns: { readonly [C in keyof Row & string]: ColumnType };
  /** Each a list of columns, with an optional condition. */
  readonly indexes: readonly { readonly on: readonly (keyof Row & string)[]; readonly unique?: true; readonly where?: string }[];
  /** Only readers need the indexes: a table that fills from the first event gets them when it has reached the last. */
  readonly indexedLast?: true;
}

export interface Projection<E extends Message, Row extends { readonly [C in keyof Row]: Value }> {
  readonly name: string;
  readonly version: number;
  /** Kinds of streams it follows; undefined: all. */
  readonly streams: readonly string[] | undefined;
  readonly table: Table<Row>;
  /** One handler per event type, or one for every event. */
  readonly on: Handlers<E, Change<Row>> | ((delivered: Delivered) => readonly Change<Row>[]);
  /** For a read model without gaps: the rows of an event this build cannot read, until one can. Its events may come in any order. */
  readonly unread?: (event: Unread) => readonly Change<Row>[];
}

/** The table of a projection's version; builds of different versions have one each. */
export const tableOf = ({ name, version }: { readonly name: string; readonly version: number }): string => `${name}_v${version}`;
