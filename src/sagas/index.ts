/** The sagas together: one consumer, so that everything about a stream's work follows the stream's order. */
import { prepareNamespace } from './prepare-namespace.ts';
import { reconcileAgent } from './reconcile-agent.ts';
import { retireAgent } from './retire-agent.ts';

export const work = { name: 'work', version: 1, sagas: [prepareNamespace, reconcileAgent, retireAgent] } as const;
