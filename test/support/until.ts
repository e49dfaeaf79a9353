/** Waits for a state of the world, with a deadline that names what was expected. */
import { setTimeout as delay } from 'node:timers/promises';

const stepMs = 5;

/** Reads until the answer is the wanted one; fails with what was expected and what was last seen. */
export const until = async <T>(expected: string, read: () => Promise<T> | T, wanted: (value: T) => boolean, withinMs = 30_000): Promise<T> => {
  const deadline = performance.now() + withinMs;
  for (;;) {
    const value = await read();
    if (wanted(value)) return value;
    if (performance.now() > deadline) throw new Error(`Expected ${expected}; last seen: ${JSON.stringify(value)}`);
    await delay(stepMs);
  }
};
