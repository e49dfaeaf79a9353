/** Events of the `store` stream: which event store this is, and each time a database began to follow it. (failure scenarios 5 and 9) */
import Type from 'typebox';
import { createCodec, defineEvent, type EventOf } from '../kernel/codec.ts';

/** The first event of a history. */
const storeOpened = defineEvent('StoreOpened', { skeleton: Type.Object({ storeId: Type.String() }), view: ['storeId'] });
/** The database begins to be followed for the nth time; `found` is the number it knew, smaller than the one before when it went back. */
const databaseOpened = defineEvent('DatabaseOpened', {
  skeleton: Type.Object({ number: Type.Integer(), found: Type.Integer() }),
  view: ['number', 'found'],
});

export const storeEvents = createCodec(storeOpened, databaseOpened);
export type StoreEvent = EventOf<typeof storeOpened> | EventOf<typeof databaseOpened>;
