/** A Compute driver in memory: it keeps fences and counts what runs, and a test decides what it observes and when it fails. */
import { FencedOff, type AgentIdentity, type ComputeDriver, type DiagnosticCheck, type EffectOptions, type Observation, type RevisionSnapshot } from '../../src/compute/driver.ts';

type Verb =
  | 'ensureNamespace'
  | 'deleteNamespace'
  | 'bindAgent'
  | 'prepareRevision'
  | 'activateRevision'
  | 'stopRevision'
  | 'retireRevision'
  | 'deleteAgent';

export interface FakeDriver extends ComputeDriver {
  /** Every call that got past its fence, as `verb id`. */
  readonly calls: string[];
  /** Revisions with a running workload. */
  readonly running: Set<string>;
  /** The serving revision of each Agent. */
  readonly serving: Map<string, string>;
  /** Runs before each effect: may throw, or hold the call up. */
  before: (verb: Verb, id: string, options: { readonly signal: AbortSignal }) => Promise<void> | void;
  /** What `prepareRevision` sees beside the identities. */
  observe: (revision: RevisionSnapshot) => Partial<Observation>;
  /** What `diagnoseRevision` finds. */
  diagnose: (revision: RevisionSnapshot) => readonly DiagnosticCheck[];
  isExclusive: boolean;
  /** Tells listeners that an Agent's workload changed. */
  changed(agent: { readonly namespaceId: string; readonly agentId: string }): void;
}

export const createFakeDriver = (): FakeDriver => {
  const fences = new Map<string, number>();
  const removed = new Set<string>();
  const owned = new Map<string, AgentIdentity>();
  const listeners = new Set<(agent: { readonly namespaceId: string; readonly agentId: string }) => void>();

  /** The script runs first, so that a call held up there arrives late, like one that was on the wire. */
  const effect = async (verb: Verb, id: string, agent: AgentIdentity, { fence, signal }: EffectOptions, act: () => void): Promise<void> => {
    await driver.before(verb, id, { signal });
    const makes = verb === 'prepareRevision' || verb === 'activateRevision';
    if (fence < (fences.get(agent.agentId) ?? -1) || (removed.has(agent.agentId) && makes)) throw new FencedOff(`${verb} ${id}`);
    fences.set(agent.agentId, fence);
    driver.calls.push(`${verb} ${id}`);
    act();
  };

  const halt = (revision: RevisionSnapshot) => {
    driver.running.delete(revision.revisionId);
    if (driver.serving.get(revision.agentId) === revision.revisionId) driver.serving.delete(revision.agentId);
  };

  const driver: FakeDriver = {
    id: 'fake',
    implementation: 'memory',
    calls: [],
    running: new Set(),
    serving: new Map(),
    before: () => {},
    observe: () => ({ ready: true }),
    diagnose: () => [],
    isExclusive: false,
    admit: () => ({ admitted: true }),
    requiresStoppedPredecessors: () => driver.isExclusive,
    ensureNamespace: async (namespaceId, options) => {
      await driver.before('ensureNamespace', namespaceId, options);
      driver.calls.push(`ensureNamespace ${namespaceId}`);
      return { namespaceId, done: true };
    },
    deleteNamespace: async (namespaceId, options) => {
      await driver.before('deleteNamespace', namespaceId, options);
      driver.calls.push(`deleteNamespace ${namespaceId}`);
      return { namespaceId, done: true };
    },
    bindAgent: (agent, options) => effect('bindAgent', agent.agentId, agent, options, () => void owned.set(agent.agentId, agent)),
    prepareRevision: async (revision, options) => {
      await effect('prepareRevision', revision.revisionId, revision, options, () => void driver.running.add(revision.revisionId));
      const { namespaceId, agentId, revisionId } = revision;
      return { namespaceId, agentId, revisionId, ready: false, ...driver.observe(revision) };
    },
    activateRevision: (revision, options) =>
      effect('activateRevision', revision.revisionId, revision, options, () => void driver.serving.set(revision.agentId, revision.revisionId)),
    stopRevision: (revision, options) => effect('stopRevision', revision.revisionId, revision, options, () => halt(revision)),
    retireRevision: (revision, options) => effect('retireRevision', revision.revisionId, revision, options, () => halt(revision)),
    deleteAgent: (agent, options) =>
      effect('deleteAgent', agent.agentId, agent, options, () => {
        owned.delete(agent.agentId);
        removed.add(agent.agentId);
      }),
    diagnoseRevision: async (revision) => driver.diagnose(revision),
    gatewayEndpoint: () => undefined,
    ownedAgents: async () => [...owned.values()],
    onChange: (listener) => {
      listeners.add(listener);
      return () => void listeners.delete(listener);
    },
    changed: (agent) => listeners.forEach((listener) => listener(agent)),
    close: async () => {},
  };
  return driver;
};
