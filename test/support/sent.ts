/** The body of a request as an edge hands it on, for tests that call the services themselves. */
import type { Sent } from '../../src/kernel/parse.ts';

export const sent = <T>(content: T): Sent<T> => ({ open: () => content });
