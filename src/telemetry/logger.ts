/** The log: JSON lines on standard error; the message is constant, the facts are keys, and no credential is among them. */
import { destination, pino, type DestinationStream, type Logger } from 'pino';

/** What the product logs with. */
export type Log = Pick<Logger, 'debug' | 'info' | 'warn' | 'error'>;

const credentials = ['x-api-key', 'cookie', 'set-cookie', 'authorization', 'key', 'password', 'secret', 'token'];
const redacted = credentials.flatMap((name) => ['', '*', '*.*'].map((above) => (above === '' ? `["${name}"]` : `${above}["${name}"]`)));

interface LoggedError {
  readonly type: string;
  readonly message: string;
  readonly code?: unknown;
  readonly stack: string | undefined;
  readonly cause?: unknown;
}

/** Only these members: a driver's error may carry the values of a statement beside its message. What is no error is logged as it is. */
const logged = (error: unknown): unknown =>
  error instanceof Error
    ? ({
        type: error.name,
        message: error.message,
        ...('code' in error && { code: error.code }),
        stack: error.stack,
        ...(error.cause !== undefined && { cause: logged(error.cause) }),
      } satisfies LoggedError)
    : error;

/** Written synchronously, so that the last lines of a process are never lost. */
export const createLogger = ({ level, to = destination({ fd: 2, sync: true }) }: { readonly level: string; readonly to?: DestinationStream }): Log =>
  pino(
    {
      level,
      base: null,
      timestamp: () => `,"time":"${new Date().toISOString()}"`,
      formatters: { level: (label) => ({ level: label }) },
      redact: { paths: redacted, censor: '[redacted]' },
      serializers: { error: logged },
    },
    to,
  );
