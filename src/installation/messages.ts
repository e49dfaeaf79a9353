/** Events of the Installation's `register` stream: which Namespace holds which name, for ever. (rest-contract 3.2) */
import Type from 'typebox';
import { createCodec, defineEvent, type EventOf } from '../kernel/codec.ts';

const place = Type.Object({ namespaceId: Type.String(), name: Type.String() });

const namespaceNameTaken = defineEvent('NamespaceNameTaken', { skeleton: place, view: ['namespaceId', 'name'] });
/** Its holder was fenced off before it came to be. */
const namespaceNameReleased = defineEvent('NamespaceNameReleased', { skeleton: place, view: ['namespaceId', 'name'] });

export const registerEvents = createCodec(namespaceNameTaken, namespaceNameReleased);
export type RegisterEvent = EventOf<typeof namespaceNameTaken> | EventOf<typeof namespaceNameReleased>;
