/** Faults the loopback EventStoreDB commits on demand, each once, and what it was asked. */

/** Methods of the Streams service that can be made to fail. */
export type Method = 'append' | 'batchAppend' | 'read';

export type Fault =
  /** Does nothing and never answers. */
  | 'drop'
  /** Answers UNAVAILABLE and does nothing. */
  | 'fail'
  /** Answers as a member that is no leader and knows of none. */
  | 'no leader'
  /** Says that the user may not do this. */
  | 'deny'
  /** Stores, then never answers. */
  | 'store and drop'
  | 'store and fail'
  /** Stores, then says that committing timed out. */
  | 'store and time out'
  /** Stores, then says WrongExpectedVersion. */
  | 'store and conflict'
  /** Stores and acknowledges without saying where. */
  | 'store without position'
  /** Batch: answers a second time. */
  | 'answer twice'
  /** Batch and read: ends the call without an error. */
  | 'end the call'
  /** Subscription: says that it caught up, and nothing ever after. */
  | 'go silent'
  | { readonly holdUntil: Promise<unknown> }
  | { readonly storeAndHoldUntil: Promise<unknown> };

/** One call as it arrived. */
export interface SeenCall {
  readonly method: Method;
  /** Port of the member that was asked. */
  readonly port: number;
  readonly requiresLeader: boolean;
  readonly hasDeadline: boolean;
  readonly stream: string;
}

export const createFaults = () => {
  const planned = new Map<Method, Fault[]>();
  const seen: SeenCall[] = [];
  return {
    seen: seen as readonly SeenCall[],
    note: (call: SeenCall): void => void seen.push(call),
    /** The next calls of a method, one fault each. */
    next(method: Method, ...faults: readonly Fault[]): void {
      planned.set(method, [...(planned.get(method) ?? []), ...faults]);
    },
    /** Forgets what was planned and not yet committed. */
    clear: (): void => planned.clear(),
    take: (method: Method): Fault | undefined => planned.get(method)?.shift(),
  };
};

export type Faults = ReturnType<typeof createFaults>;
