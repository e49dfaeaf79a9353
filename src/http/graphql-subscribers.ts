/** Who subscribes: so many streams at once for each caller, and none for a client that takes nothing when its stream has ended. (architecture section 7, failure scenario 25) */
import type { ServerResponse } from 'node:http';
import { GraphQLError } from 'graphql';
import type { Plugin } from 'graphql-yoga';
import type { Context } from '../../schema/index.ts';
import type { Caller } from '../iam/caller.ts';
import { Refusal } from '../kernel/errors.ts';
import type { Metrics } from '../telemetry/metrics.ts';

/** Streams that one principal may have open on one server. */
export const openSubscriptions = 100;

/** How long a client has to take the end of its stream. */
const leaveMs = 5_000;

/** What the plugin knows of a request beside its document. */
export interface Subscriber {
  readonly caller: Caller;
  readonly response: ServerResponse;
}

/** Calls the listener when nothing more can be sent, at once where that is so already. */
const onceClosed = (response: ServerResponse, listener: () => void): void => {
  if (response.closed) listener();
  else response.once('close', listener);
};

/** Takes a place for every subscription, and frees it when the connection is done with it. */
export const useSubscribers = (metrics: Pick<Metrics, 'subscribed'>): Plugin<object, Subscriber> => {
  const open = new Map<string, number>();

  const take = (principalId: string): (() => void) => {
    const count = open.get(principalId) ?? 0;
    if (count >= openSubscriptions) throw new Refusal('RATE_LIMITED', `${count} subscriptions of this caller are open; the limit is ${openSubscriptions}`, { retryAfterSeconds: 1 });
    open.set(principalId, count + 1);
    metrics.subscribed(1);
    return () => {
      const left = open.get(principalId)! - 1;
      if (left === 0) open.delete(principalId);
      else open.set(principalId, left);
      metrics.subscribed(-1);
    };
  };

  return {
    onSubscribe: ({ args, setResultAndStopExecution }) => {
      const { caller, response } = args.contextValue as unknown as Subscriber;
      try {
        onceClosed(response, take(caller.actor.principalId));
      } catch (error) {
        setResultAndStopExecution({ errors: [new GraphQLError('Not subscribed', { originalError: error as Refusal })] });
      }
    },
  };
};

/** Disconnects a client that has not taken the end of its stream in time. */
export const disconnectLater = (response: ServerResponse, every: Context['every']): void => {
  onceClosed(response, every(leaveMs, () => response.destroy()));
};
