/** How the rows of a read model answer a batch of keys. */
import { createContextCache } from '@pothos/core';
import DataLoader from 'dataloader';
import type { ListsBelow, PageRequest, Reading } from '../src/runtime/reading.ts';
import type { Context } from './builder.ts';
import { rowsOf, type Page } from './connection.ts';

/**
 * Rows in the order of their keys. A key without a row is asked of its service, which folds the stream; so is
 * a single key while the projector lags. A page is worth its rows as they are. (failure scenario 15)
 */
export const answered = <View>(keys: readonly string[], { rows, fresh }: Reading<View>, keyOfRow: (row: View) => string, fold: (key: string) => Promise<View>): Promise<(View | Error)[]> => {
  const usable = fresh || keys.length > 1 ? rows : [];
  const found = new Map(usable.map((row) => [keyOfRow(row), row]));
  return Promise.all(keys.map(async (key) => found.get(key) ?? fold(key).catch((error: unknown) => error as Error)));
};

/**
 * The rows of a nested list, below one parent as below many at the same cost: all parents that are asked for the same
 * page in one request are loaded together.
 */
export const listLoader = <Parent, Row>(keyOfParent: (parent: Parent) => string, load: (context: Context, parents: readonly Parent[], request: PageRequest) => Promise<ListsBelow<Row>>) => {
  const loaderOf = (context: Context, page: Page) => new DataLoader<Parent, readonly Row[], string>((parents) => load(context, parents, rowsOf(page)), { cacheKeyFn: keyOfParent });
  const loadersOf = createContextCache((_: Context) => new Map<string, ReturnType<typeof loaderOf>>());
  return (context: Context, parent: Parent, page: Page): Promise<readonly Row[]> => {
    const loaders = loadersOf(context);
    const key = `${page.limit} ${page.after ?? ''}`;
    const loader = loaders.get(key) ?? loaderOf(context, page);
    loaders.set(key, loader);
    return loader.load(parent);
  };
};
