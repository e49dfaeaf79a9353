/** What the process driver can run, as a table of refusals: admission refuses what it lacks instead of ignoring it. (compute-drivers 14.4) */
import { readDocument } from '../../gateway/document.ts';
import { canonicalText } from '../../kernel/canonical.ts';
import type { Admission, ComputeDriver } from '../driver.ts';

type Draft = Parameters<ComputeDriver['admit']>[0];

/** Settings of the native document that the driver itself has to choose for a gateway on loopback. */
const driverOwned = ['auth', 'bind', 'customBindHost', 'port', 'tls', 'trustedProxies'];

const refusals: readonly ((draft: Draft) => string | undefined)[] = [
  ({ executionMode }) => (executionMode === 'embedded' ? undefined : 'The process driver runs embedded Agents only'),
  ({ harnessAuth }) =>
    canonicalText(harnessAuth) === '{"method":"runtime"}' ? undefined : 'The process driver supports only the runtime harness authentication',
  ({ configuration }) => {
    const { gateway = {} } = (configuration ?? {}) as { readonly gateway?: unknown };
    const taken = driverOwned.find((setting) => Object.hasOwn(Object(gateway) as object, setting));
    return taken && `The process driver owns gateway.${taken}`;
  },
  ({ configuration }) => {
    const reading = readDocument(configuration);
    return 'problem' in reading ? reading.problem : undefined;
  },
];

/** The first reason that applies, or admission. */
const admit = (draft: Draft): Admission => {
  for (const refusal of refusals) {
    const reason = refusal(draft);
    if (reason !== undefined) return { admitted: false, reason };
  }
  return { admitted: true };
};

/** The part of the driver that touches no host: a process that runs no workloads admits with it. */
export const processAdmission = {
  id: 'process',
  implementation: 'exuvia-gateway',
  admit,
  requiresStoppedPredecessors: () => false,
} as const satisfies Partial<ComputeDriver>;
