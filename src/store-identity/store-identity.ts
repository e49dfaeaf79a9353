/** The `store` stream's decider: a history has one identity for ever, and counts the openings of the database beside it. (failure scenarios 5 and 9) */
import type { Decider } from '../kernel/decider.ts';
import type { StoreEvent } from './messages.ts';

export interface StoreState {
  /** Null before the first event. */
  readonly storeId: string | null;
  /** Number of the last opening. */
  readonly opened: number;
  /** The number the database knew at the last opening. */
  readonly found: number;
}

export type StoreCommand =
  | { readonly type: 'OpenStore'; readonly storeId: string }
  | { readonly type: 'OpenDatabase'; readonly number: number; readonly found: number };

export const storeDecider: Decider<StoreState, StoreCommand, StoreEvent> = {
  initial: { storeId: null, opened: 0, found: 0 },
  decide: (state, command) => {
    if (command.type === 'OpenStore') return state.storeId === null ? [{ type: 'StoreOpened', data: { storeId: command.storeId } }] : [];
    const { number, found } = command;
    return number > state.opened ? [{ type: 'DatabaseOpened', data: { number, found } }] : [];
  },
  evolve: (state, { type, data }) => (type === 'StoreOpened' ? { ...state, storeId: data.storeId } : { ...state, opened: data.number, found: data.found }),
};

/** Whether the database, when it was opened last, knew less than the history had seen it know. */
export const wentBack = ({ opened, found }: StoreState): boolean => found < opened - 1;
