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

/**
 * Which rows below several parents their caller may see: everything below the whole ones, below the others what `only`
 * names, less what `except` names. Both name a row as {@link nameIn}.
 */
export interface VisibilityBelow {
  readonly parents: readonly { readonly id: string; readonly whole: boolean }[];
  readonly only: readonly string[];
  readonly except: readonly string[];
}

/** A resource of a Namespace, as lists over several Namespaces name it. */
export const nameIn = (namespaceId: string, id: string): string => `${namespaceId}/${id}`;

/** A page of a list in creation order, then id: at most `limit` rows from the row with this id on; none where the list has no such row. */
export interface PageRequest {
  readonly from: string | null;
  readonly limit: number;
}

/** The rows below each of several parents, in their order; where a parent's list is refused, why. */
export type ListsBelow<Row> = readonly (readonly Row[] | Error)[];

/** Judges every place, and answers for those that pass, all at once. */
export const judgedEach = async <Place, Value>(
  places: readonly Place[],
  judge: (place: Place) => Promise<unknown>,
  answer: (admitted: readonly Place[]) => Promise<readonly (Value | Error)[]>,
): Promise<readonly (Value | Error)[]> => {
  const refusals = await Promise.all(places.map((place) => judge(place).then(() => undefined, (error: unknown) => error as Error)));
  const admitted = places.filter((_, index) => refusals[index] === undefined);
  const answers = admitted.length === 0 ? [] : [...(await answer(admitted))];
  return refusals.map((refusal) => refusal ?? answers.shift()!);
};

/** The answer for the one place that was asked for. @throws what it was refused with */
export const only = <Value>([answer]: readonly (Value | Error)[]): Value => {
  if (answer instanceof Error) throw answer;
  return answer!;
};
