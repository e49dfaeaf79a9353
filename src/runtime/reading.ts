/** How read models are asked and how they answer. (failure scenario 15) */

/** Rows of a read model, with the word whether the projector that feeds it is keeping up. */
export interface Reading<Row> {
  readonly rows: readonly Row[];
  /**
   * False while the projector has not been seen at the end of the store for a second, or has parked a stream
   * the rows come from: reads of one resource then fold its stream instead.
   */
  readonly fresh: boolean;
}

/** Which rows of a list its caller may see: all or only some, less the restricted ones. */
export interface Visibility {
  /** Undefined: every resource of the parent. */
  readonly only: readonly string[] | undefined;
  readonly except: readonly string[];
}

/** A page of a list in creation order, then id: at most `limit` rows after the row with this id. */
export interface PageRequest {
  readonly after: string | null;
  readonly limit: number;
}
