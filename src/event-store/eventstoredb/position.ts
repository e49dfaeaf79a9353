/** Positions of this store: commit and prepare position as text of fixed width, so that they sort as the store does. (failure scenario 28) */
import type { Position as LogPosition } from '@eventstore/db-client';
import type { Position } from '../event-store.ts';

/** Digits of the largest 64-bit position. */
const digits = 20;
const form = new RegExp(`^(\\d{${digits}})/(\\d{${digits}})$`);
/** Where the server has no position to give, it gives the largest number. */
const unknown = 2n ** 64n - 1n;

const padded = (number: string): string => number.padStart(digits, '0');

/** The position of an event, or undefined where the server does not know it. */
export const positionText = (commit: string, prepare: string): Position | undefined =>
  BigInt(commit) === unknown ? undefined : (`${padded(commit)}/${padded(prepare)}` as Position);

/** What the client calls this position, or undefined when it is none of this store's. */
export const logPosition = (position: Position): LogPosition | undefined => {
  const [, commit, prepare] = form.exec(position) ?? [];
  if (commit === undefined || prepare === undefined) return undefined;
  const place = { commit: BigInt(commit), prepare: BigInt(prepare) };
  return place.commit < 2n ** 63n && place.prepare < 2n ** 63n ? place : undefined;
};
