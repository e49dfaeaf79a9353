/** Relay connections over lists in creation order: forward only, filtered before they are cut. */
import type { PageRequest } from '../src/runtime/reading.ts';
import { invalidRequest } from '../src/kernel/parse.ts';

/** Nodes of a page whose size is not asked for. */
export const pageSize = 20;
/** Also the most nodes that can be asked for by id at once. */
export const largestPage = 100;

export interface PageArgs {
  readonly first?: number | null | undefined;
  readonly after?: string | null | undefined;
}

/** The page asked for; `after` is a cursor that `isCursor` knows. @throws Refusal INVALID_REQUEST */
export const pageOf = ({ first, after }: PageArgs, isCursor: (text: string) => boolean): PageRequest => {
  const limit = first ?? pageSize;
  if (limit < 1 || limit > largestPage) throw invalidRequest([{ path: '/first', code: 'INVALID_VALUE' }]);
  if (after != null && !isCursor(after)) throw invalidRequest([{ path: '/after', code: 'INVALID_FORMAT' }]);
  return { after: after ?? null, limit };
};

/** One row more than the page, which tells whether another page follows. */
export const oneMore = ({ after, limit }: PageRequest): PageRequest => ({ after, limit: limit + 1 });

/** The connection over the rows that {@link oneMore} found. */
export const connectionOf = <Row>(rows: readonly Row[], { after, limit }: PageRequest, cursorOf: (row: Row) => string) => {
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
