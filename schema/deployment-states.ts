/** The states of one deployment as a subscriber gets them, each authorized when it is sent. (architecture section 7, iam-auth-audit 8.4) */
import { Repeater } from 'graphql-yoga';
import type { DeploymentView, RevisionPlace } from '../src/agent-revision/service.ts';
import { Refusal } from '../src/kernel/errors.ts';
import type { Context } from './builder.ts';

/** A grant or a key that ends is noticed within this time, also when nothing changes. */
const reauthorizeMs = 25_000;

const isGone = (error: unknown): boolean => error instanceof Refusal && error.code === 'NOT_FOUND';

/**
 * The current state first, then each one that differs from the last sent; a slow client misses states in
 * between. Completes when the Agent is gone, fails when the caller may not read it any more.
 * @throws Refusal before anything is sent: FORBIDDEN, NOT_FOUND
 */
export const deploymentStates = async ({ caller, renewCaller, services, watch, closing }: Context, place: RevisionPlace): Promise<AsyncIterable<DeploymentView>> => {
  const first = await services.revisions.deployment(caller, place);
  return new Repeater<DeploymentView>(async (push, stop) => {
    let stopped = false;
    let wake = Promise.withResolvers<void>();
    const ring = () => wake.resolve();
    void stop.then(() => ((stopped = true), ring()));
    const unsubscribe = watch.subscribe(place.revisionId, ring);
    const timer = setInterval(ring, reauthorizeMs);
    const end = () => stop();
    closing.addEventListener('abort', end);
    try {
      let sent = JSON.stringify(first);
      await push(first);
      while (!stopped) {
        await wake.promise;
        wake = Promise.withResolvers();
        if (stopped) break;
        const state = await services.revisions.deployment(await renewCaller(), place);
        const text = JSON.stringify(state);
        if (text === sent) continue;
        sent = text;
        await push(state);
      }
    } catch (error) {
      if (!isGone(error)) throw error;
      stop();
    } finally {
      closing.removeEventListener('abort', end);
      unsubscribe();
      clearInterval(timer);
    }
  });
};
