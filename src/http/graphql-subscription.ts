/** Subscriptions: every event is executed in a context of its own, so that loaders and policy are as fresh as the event. */
import { createSourceEventStream, execute, GraphQLError, type ExecutionArgs, type ExecutionResult } from 'graphql';
import { isAsyncIterable, type Plugin } from 'graphql-yoga';
import type { Context } from '../../schema/index.ts';

/** The caller was authenticated again right before the event was made; what is judged now, is judged by the policy of now. */
const fresh = (context: Context): Context => ({ ...context, caller: { ...context.caller, arrivedAt: performance.now() } });

/** A source that fails ends the stream with that error as its last result. */
const results = (args: ExecutionArgs, source: AsyncIterator<unknown>): AsyncIterableIterator<ExecutionResult> => {
  let failed = false;
  return {
    [Symbol.asyncIterator]() {
      return this;
    },
    next: async () => {
      if (failed) return { value: undefined, done: true };
      try {
        const event = await source.next();
        if (event.done === true) return { value: undefined, done: true };
        return { value: await execute({ ...args, rootValue: event.value, contextValue: fresh(args.contextValue as Context) }), done: false };
      } catch (error) {
        failed = true;
        return { value: { errors: [new GraphQLError('Subscription ended', { originalError: error as Error })] }, done: false };
      }
    },
    return: async () => {
      await source.return?.();
      return { value: undefined, done: true };
    },
  };
};

const subscribe = async (args: ExecutionArgs): Promise<AsyncIterableIterator<ExecutionResult> | ExecutionResult> => {
  const source = await createSourceEventStream(args);
  return isAsyncIterable(source) ? results(args, source[Symbol.asyncIterator]()) : source;
};

export const useFreshContexts = (): Plugin => ({
  onSubscribe: ({ setSubscribeFn }) => setSubscribeFn(subscribe),
});
