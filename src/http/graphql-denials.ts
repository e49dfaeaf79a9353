/** How many denials one GraphQL operation may leave in the history before it ends. (failure scenario 25) */
import type { DenialAllowance } from '../iam/caller.ts';
import { Refusal } from '../kernel/errors.ts';

const recordedDenials = 20;

/** The allowance of one operation; once it is used up, every further judgement of the operation meets the same refusal. */
export const createDenialAllowance = (): DenialAllowance & { readonly refusal: Refusal } => {
  const refusal = new Refusal('RATE_LIMITED', `The operation ended after ${recordedDenials} denied permissions`, { retryAfterSeconds: 1 });
  let left = recordedDenials;
  const assertOpen = (): void => {
    if (left < 0) throw refusal;
  };
  return {
    refusal,
    assertOpen,
    use: () => {
      left--;
      assertOpen();
    },
  };
};
