/** What the process driver needs of a logger: constant messages, facts as keys. */
type Write = (facts: object, message: string) => void;

export interface Log {
  readonly info: Write;
  readonly warn: Write;
  readonly error: Write;
}
