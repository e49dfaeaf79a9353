/** What follows the whole history: the read models and the sagas. */
import { projections } from '../projections/index.ts';
import type { Consumer } from './runtime/consumer.ts';
import { projector } from './runtime/projector.ts';
import { sagaProcessor } from './runtime/saga-processor.ts';
import { work } from './sagas/index.ts';

export const consumers: readonly Consumer[] = [...projections.map((projection) => projector(projection)), sagaProcessor(work)];
