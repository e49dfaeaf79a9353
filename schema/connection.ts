/** Relay connections over lists in creation order: forward only, filtered before they are cut. */
import type { Refusal } from '../src/kernel/errors.ts';
import { invalidRequest } from '../src/kernel/parse.ts';
import type { PageRequest } from '../src/runtime/reading.ts';

/** Nodes of a page whose size is not asked for. */
export const pageSize = 20;
/** Also the most nodes that can be asked for by id at once. */
export const largestPage = 100;

export interface PageArgs {
  readonly first?: number | null | undefined;
  readonly after?: string | null | undefined;
}

/** A page of at most `limit` nodes after the one a cursor names. */
export interface Page {
  readonly after: string | null;
  readonly limit: number;
}

/** A cursor is good for the list it was given out for, as its caller may see it now: any other text is refused, never an empty page. */
const foreignCursor = (): Refusal => invalidRequest([{ path: '/after', code: 'INVALID_VALUE' }]);

/** The page asked for; `after` has the form of a cursor where `isCursor` says so. @throws Refusal INVALID_REQUEST naming `/first` or `/after` */
export const pageOf = ({ first, after }: PageArgs, isCursor: (text: string) => boolean): Page => {
  const limit = first ?? pageSize;
  if (limit < 1 || limit > largestPage) throw invalidRequest([{ path: '/first', code: 'INVALID_VALUE' }]);
  if (after != null && !isCursor(after)) throw foreignCursor();
  return { after: after ?? null, limit };
};

/** What a list is asked for: the row the cursor names, by which it is recognised, the page, and one row more, which tells whether another follows. */
export const rowsOf = ({ after, limit }: Page): PageRequest => ({ from: after, limit: limit + (after === null ? 1 : 2) });

/** The rows after the cursor. @throws Refusal INVALID_REQUEST where they do not begin with the one it names */
export const following = <Row>(rows: readonly Row[], after: string | null, cursorOf: (row: Row) => string): readonly Row[] => {
  if (after === null) return rows;
  const [named] = rows;
  if (named === undefined || cursorOf(named) !== after) throw foreignCursor();
  return rows.slice(1);
};

/** The connection over the rows that {@link rowsOf} found. @throws Refusal INVALID_REQUEST for a cursor of another list */
export const connectionOf = <Row>(found: readonly Row[], { after, limit }: Page, cursorOf: (row: Row) => string) => {
  const rows = following(found, after, cursorOf);
  const edges = rows.slice(0, limit).map((node) => ({ node, cursor: cursorOf(node) }));
  return {
    edges,
    pageInfo: {
      hasNextPage: rows.length > limit,
      hasPreviousPage: after !== null,
      startCursor: edges[0]?.cursor ?? null,
      endCursor: edges.at(-1)?.cursor ?? null,
    },
  };
};
