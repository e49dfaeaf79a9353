/** How the rows of a read model answer a batch of keys. */
import type { Reading } from '../src/runtime/reading.ts';

/**
 * Rows in the order of their keys. A key without a row is asked of its service, which folds the stream; so is
 * a single key while the projector lags. A page is worth its rows as they are. (failure scenario 15)
 */
export const answered = <View>(keys: readonly string[], { rows, fresh }: Reading<View>, keyOfRow: (row: View) => string, fold: (key: string) => Promise<View>): Promise<(View | Error)[]> => {
  const usable = fresh || keys.length > 1 ? rows : [];
  const found = new Map(usable.map((row) => [keyOfRow(row), row]));
  return Promise.all(keys.map(async (key) => found.get(key) ?? fold(key).catch((error: unknown) => error as Error)));
};
