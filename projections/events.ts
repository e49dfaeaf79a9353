/** Every event type of the product, as the consumers of the whole history read them. */
import { agentEvents } from '../src/agent/messages.ts';
import { agentRevisionEvents } from '../src/agent-revision/messages.ts';
import { auditEvents } from '../src/audit/messages.ts';
import { configurationEvents } from '../src/configuration/messages.ts';
import { iamEvents } from '../src/iam/messages.ts';
import { registerEvents } from '../src/installation/messages.ts';
import { createCodec, type Codec } from '../src/kernel/codec.ts';
import { namespaceEvents } from '../src/namespace/messages.ts';
import { storeEvents } from '../src/store-identity/messages.ts';

const slices = [storeEvents, iamEvents, registerEvents, namespaceEvents, configurationEvents, agentEvents, agentRevisionEvents, auditEvents];

export const productEvents: Codec = createCodec(...slices.flatMap(({ definitions }) => [...definitions.values()]));
