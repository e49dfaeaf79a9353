/** Steps that drive a Compute driver as a worker would, waiting on what it announces instead of on time. */
import { ActivationPending } from '../../src/compute/driver.ts';
import type { AgentIdentity, ComputeDriver, EffectOptions, Observation, RevisionSnapshot } from '../../src/compute/driver.ts';
import type { Json } from '../../src/kernel/canonical.ts';
import { newId } from '../../src/kernel/ids.ts';

const waitLimitMs = 30_000;

/** Evaluates after every change the driver announces, until there is a value. */
export const untilChanged = async <T>(driver: ComputeDriver, expectation: string, read: () => Promise<T | undefined>): Promise<T> => {
  let wake: () => void = () => undefined;
  let changed = false;
  const unsubscribe = driver.onChange(() => {
    changed = true;
    wake();
  });
  const deadline = AbortSignal.timeout(waitLimitMs);
  try {
    for (;;) {
      changed = false;
      const value = await read();
      if (value !== undefined) return value;
      await new Promise<void>((resolve, reject) => {
        wake = resolve;
        if (changed) resolve();
        deadline.addEventListener('abort', () => reject(new Error(`Expected within ${waitLimitMs} ms: ${expectation}`)), { once: true });
      });
    }
  } finally {
    unsubscribe();
  }
};

/** One pass's options. */
export const pass = (fence: number): EffectOptions => ({ fence, signal: new AbortController().signal });

export const newAgent = (namespaceId: string = newId('ns')): AgentIdentity => ({
  namespaceId,
  agentId: newId('agt'),
  servicePrincipalId: newId('spn'),
});

export const newRevision = (driver: ComputeDriver, agent: AgentIdentity, number: number, configuration: Json): RevisionSnapshot => ({
  ...agent,
  revisionId: newId('rev'),
  number,
  executionMode: 'embedded',
  harness: { id: 'openclaw', version: '2026.9.6', mode: 'embedded' },
  compute: { id: driver.id, implementation: driver.implementation },
  harnessAuth: { method: 'runtime' },
  configuration,
});

/** Prepares until the revision is ready or its failure is known. */
export const prepared = (driver: ComputeDriver, revision: RevisionSnapshot, options: EffectOptions): Promise<Observation> =>
  untilChanged(driver, `revision ${revision.number} ready or failed`, async () => {
    const observation = await driver.prepareRevision(revision, options);
    return observation.ready || observation.runtimeFailure ? observation : undefined;
  });

/** Activates until it serves. */
export const activated = (driver: ComputeDriver, revision: RevisionSnapshot, options: EffectOptions): Promise<true> =>
  untilChanged(driver, `revision ${revision.number} serving`, async () => {
    try {
      await driver.activateRevision(revision, options);
      return true;
    } catch (error) {
      if (error instanceof ActivationPending) return undefined;
      throw error;
    }
  });
