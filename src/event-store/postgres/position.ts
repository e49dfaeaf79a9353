/** Positions of this store: numbers as text of fixed width, so that they sort like numbers. (failure scenario 28) */
import type { Position } from '../event-store.ts';

const digits = 20;
const form = new RegExp(`^\\d{${digits}}$`);

/** The position text of a row's number. */
export const positionText = (number: string | number | bigint): Position => String(number).padStart(digits, '0') as Position;

/** Whether a position can be one of this store's. */
export const isPosition = (position: Position): boolean => form.test(position) && BigInt(position) < 2n ** 63n;
