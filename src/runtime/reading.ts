/** Rows of a read model, with the word whether the projector that feeds it is keeping up. (failure scenario 15) */
export interface Reading<Row> {
  readonly rows: readonly Row[];
  /**
   * False while the projector has not been seen at the end of the store for a second, or has parked a stream
   * the rows come from: reads of one resource then fold its stream instead.
   */
  readonly fresh: boolean;
}
