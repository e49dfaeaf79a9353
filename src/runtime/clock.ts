/** The one clock of events: PostgreSQL's, as the process knows it. (failure scenario 21) */
export interface Clock {
  /** Now in milliseconds since the epoch, by PostgreSQL's clock. */
  now(): number;
}

/** UTC with exactly three fractional digits, as every public timestamp is written. (rest-contract 1.5) */
export const timestamp = (ms: number): string => new Date(ms).toISOString();
