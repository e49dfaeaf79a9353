/** What every Compute driver must do, whatever runs the Agents: the contract suite of `src/compute/driver.ts`. */
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { ActivationPending, FencedOff } from '../../src/compute/driver.ts';
import type { AgentIdentity, ComputeDriver, RevisionSnapshot } from '../../src/compute/driver.ts';
import type { Json } from '../../src/kernel/canonical.ts';
import { activated, newAgent, newRevision, pass, prepared } from '../compute/drive.ts';

/** A driver over a world of its own, and a way to see what really runs there. */
export interface DriverWorld {
  readonly driver: ComputeDriver;
  /** Native documents with these outcomes of their start. */
  readonly documents: { readonly good: Json; readonly held: (code: string) => Json; readonly exiting: Json };
  /** Agents that have a living workload, one entry per workload. */
  readonly living: () => Promise<readonly string[]>;
  /** A second driver over the same world, as another replica would open it. */
  readonly replica: () => ComputeDriver;
  readonly dispose: () => Promise<void>;
}

export const computeDriverContract = (name: string, open: () => Promise<DriverWorld>): void => {
  describe(`${name} as a Compute driver`, () => {
    let world: DriverWorld;
    let driver: ComputeDriver;
    let agent: AgentIdentity;

    const revision = (number: number, document: Json = world.documents.good) => newRevision(driver, agent, number, document);
    const serve = async (next: RevisionSnapshot, options = pass(next.number)) => {
      await prepared(driver, next, options);
      await activated(driver, next, options);
      return next;
    };

    beforeEach(async () => {
      world = await open();
      driver = world.driver;
      agent = newAgent();
      await driver.ensureNamespace(agent.namespaceId, pass(0));
      await driver.bindAgent(agent, pass(0));
    });

    afterEach(async () => {
      await driver.close({ stopWorkloads: true });
      const left = await world.living();
      await world.dispose();
      expect(left, 'workloads left running').toEqual([]);
    });

    it('prepares a Namespace again and again, and deletes it only when it is empty', async () => {
      const { namespaceId } = agent;
      expect(await driver.ensureNamespace(namespaceId, pass(0))).toEqual({ namespaceId, done: true });
      expect(await driver.deleteNamespace(namespaceId, pass(0))).toEqual({ namespaceId, done: false, failure: 'retryable' });
      await driver.deleteAgent(agent, pass(1));
      expect(await driver.deleteNamespace(namespaceId, pass(0))).toEqual({ namespaceId, done: true });
      expect(await driver.deleteNamespace(namespaceId, pass(0))).toEqual({ namespaceId, done: true });
    });

    it('observes a candidate as pending until its workload is ready, without routing to it', async () => {
      const candidate = revision(1);
      const { namespaceId, agentId } = agent;
      const identities = { namespaceId, agentId, revisionId: candidate.revisionId };
      expect(await driver.prepareRevision(candidate, pass(1))).toEqual({ ...identities, ready: false });
      expect(await prepared(driver, candidate, pass(1))).toEqual({ ...identities, ready: true });
      expect(driver.gatewayEndpoint(agent)).toBeUndefined();
      expect(await world.living()).toEqual([agentId]);
    });

    it('routes to a revision from its activation on, and repeats both verbs without a second workload', async () => {
      const first = await serve(revision(1));
      const endpoint = driver.gatewayEndpoint(agent);
      expect(endpoint?.url).toMatch(/^wss?:\/\//);
      await driver.activateRevision(first, pass(1));
      expect(await driver.prepareRevision(first, pass(2))).toMatchObject({ ready: true });
      expect(driver.gatewayEndpoint(agent)).toEqual(endpoint);
      expect(await world.living()).toEqual([agent.agentId]);
    });

    it('replaces a serving revision at activation, and retires its predecessor without touching the successor', async () => {
      const first = await serve(revision(1));
      const second = revision(2);
      const before = driver.gatewayEndpoint(agent);
      expect(await prepared(driver, second, pass(2))).toMatchObject({ ready: true });
      expect(driver.gatewayEndpoint(agent)).toEqual(before);
      await activated(driver, second, pass(2));
      const after = driver.gatewayEndpoint(agent);
      expect(after?.token).not.toBe(before?.token);
      await driver.retireRevision(first, pass(2));
      await driver.retireRevision(first, pass(2));
      expect(driver.gatewayEndpoint(agent)).toEqual(after);
      expect(await world.living()).toEqual([agent.agentId]);
    });

    it('stops the revision that runs and no other, again and again, and starts a later one', async () => {
      const first = await serve(revision(1));
      await driver.stopRevision(revision(7), pass(2));
      expect(await world.living()).toEqual([agent.agentId]);
      await driver.stopRevision(first, pass(3));
      expect(await world.living()).toEqual([]);
      expect(driver.gatewayEndpoint(agent)).toBeUndefined();
      await driver.stopRevision(first, pass(3));
      await serve(revision(2), pass(4));
      expect(await world.living()).toEqual([agent.agentId]);
    });

    it('removes an Agent with everything it owns, again and again', async () => {
      const first = await serve(revision(1));
      expect(await driver.ownedAgents()).toEqual([{ namespaceId: agent.namespaceId, agentId: agent.agentId }]);
      await driver.retireRevision(first, pass(2));
      await driver.deleteAgent(agent, pass(2));
      expect(await driver.ownedAgents()).toEqual([]);
      // A teardown that crashed before its evidence was stored runs through all of its steps once more.
      await driver.bindAgent(agent, pass(3));
      await driver.retireRevision(first, pass(3));
      await driver.deleteAgent(agent, pass(3));
      expect(await driver.ownedAgents()).toEqual([]);
      expect(await world.living()).toEqual([]);
    });

    it('removes an Agent that still serves', async () => {
      await serve(revision(1));
      await driver.deleteAgent(agent, pass(2));
      expect(await world.living()).toEqual([]);
      expect(driver.gatewayEndpoint(agent)).toBeUndefined();
    });

    it('refuses a smaller fencing number in every replica and allows an equal one', async () => {
      const first = revision(1);
      await driver.prepareRevision(first, pass(5));
      await prepared(driver, first, pass(5));
      const replica = world.replica();
      try {
        await expect(replica.activateRevision(first, pass(4))).rejects.toThrow(FencedOff);
        await expect(replica.stopRevision(first, pass(4))).rejects.toThrow(FencedOff);
        await expect(replica.deleteAgent(agent, pass(4))).rejects.toThrow(FencedOff);
        await replica.activateRevision(first, pass(6));
      } finally {
        await replica.close({ stopWorkloads: false });
      }
      await expect(driver.prepareRevision(first, pass(5))).rejects.toThrow(FencedOff);
      expect(await world.living()).toEqual([agent.agentId]);
    });

    it('remembers the fencing number of a pass that found nothing to do', async () => {
      const first = revision(1);
      await driver.stopRevision(first, pass(9));
      await expect(driver.prepareRevision(first, pass(5))).rejects.toThrow(FencedOff);
      expect(await world.living()).toEqual([]);
    });

    it('scenario 24: an effect that arrives after the Agent is gone is refused', async () => {
      const first = revision(1);
      await driver.deleteAgent(agent, pass(3));
      for (const fence of [2, 3, 400]) {
        await expect(driver.prepareRevision(first, pass(fence))).rejects.toThrow(FencedOff);
        await expect(driver.activateRevision(first, pass(fence))).rejects.toThrow(FencedOff);
      }
      const replica = world.replica();
      await expect(replica.prepareRevision(first, pass(500))).rejects.toThrow(FencedOff);
      await replica.close({ stopWorkloads: false });
      expect(await driver.ownedAgents()).toEqual([]);
      expect(await world.living()).toEqual([]);
    });

    it('reports a failure the runtime holds, keeps the workload, and replaces it by the next revision', async () => {
      const held = revision(1, world.documents.held('AUTHENTICATION_FAILED'));
      const { ready, runtimeFailure } = await prepared(driver, held, pass(1));
      expect({ ready, code: runtimeFailure?.code }).toEqual({ ready: false, code: 'AUTHENTICATION_FAILED' });
      expect(await world.living()).toEqual([agent.agentId]);
      await serve(revision(2));
      expect(await world.living()).toEqual([agent.agentId]);
    });

    it('diagnoses a revision: serving, held or not there, and changes nothing', async () => {
      const options = { signal: new AbortController().signal };
      const first = revision(1);
      expect(await driver.diagnoseRevision(first, options)).toMatchObject([{ state: 'unknown', checkedAt: null, code: 'UNAVAILABLE' }]);
      await serve(first);
      expect(await driver.diagnoseRevision(first, options)).toMatchObject([{ state: 'succeeded', checkedAt: expect.any(String) as string }]);
      const second = revision(2, world.documents.held('AUTHENTICATION_FAILED'));
      expect(await driver.diagnoseRevision(second, options)).toMatchObject([{ state: 'unknown', checkedAt: null, code: 'UNAVAILABLE' }]);
      expect(driver.gatewayEndpoint(agent)).toBeDefined();
      await driver.stopRevision(first, pass(2));
      const { runtimeFailure } = await prepared(driver, second, pass(2));
      const { component, check, checkedAt, code } = runtimeFailure!;
      expect(await driver.diagnoseRevision(second, options)).toEqual([{ component, check, state: 'failed', checkedAt, code }]);
      await expect(driver.diagnoseRevision({ ...second, compute: { id: 'kubernetes', implementation: 'other' } }, options)).rejects.toThrow('pinned');
    });

    it('shows a failure that an activation ran into at the next prepare of that revision', async () => {
      await serve(revision(1));
      const second = revision(2, world.documents.held('LOGIN_FAILED'));
      expect(await driver.prepareRevision(second, pass(2))).toMatchObject({ ready: true });
      await expect(driver.activateRevision(second, pass(2))).rejects.toThrow(ActivationPending);
      expect(await prepared(driver, second, pass(2))).toMatchObject({ ready: false, runtimeFailure: { code: 'LOGIN_FAILED' } });
      await expect(driver.activateRevision(second, pass(2))).rejects.toThrow(ActivationPending);
      expect(driver.gatewayEndpoint(agent)).toBeUndefined();
    });

    it('reports a workload that ends before it is ready, after a bounded number of starts', async () => {
      const exiting = revision(1, world.documents.exiting);
      const { runtimeFailure } = await prepared(driver, exiting, pass(1));
      expect(runtimeFailure).toMatchObject({ check: 'process-start', code: 'UNAVAILABLE', cause: { kind: 'PROCESS_EXIT' } });
      expect(await driver.prepareRevision(exiting, pass(2))).toMatchObject({ ready: false, runtimeFailure: { code: 'UNAVAILABLE' } });
      expect(await world.living()).toEqual([]);
    });

    it('does not run a revision that is pinned elsewhere', async () => {
      const elsewhere = { ...revision(1), compute: { id: 'kubernetes', implementation: 'other' } };
      expect(await driver.prepareRevision(elsewhere, pass(1))).toMatchObject({ ready: false });
      await expect(driver.stopRevision(elsewhere, pass(1))).rejects.toThrow('pinned');
      await expect(driver.retireRevision(elsewhere, pass(1))).rejects.toThrow('pinned');
      expect(await world.living()).toEqual([]);
    });

    it('refuses a snapshot that changed under its id', async () => {
      const first = await serve(revision(1));
      const changed = { ...first, configuration: { agents: {} } };
      await expect(driver.prepareRevision(changed, pass(2))).rejects.toThrow('changed');
    });

    it('does nothing for a pass whose signal is already aborted', async () => {
      const options = { fence: 1, signal: AbortSignal.abort() };
      await expect(driver.prepareRevision(revision(1), options)).rejects.toThrow();
      expect(await world.living()).toEqual([]);
    });

    it('runs concurrent passes on one Agent one after the other', async () => {
      const first = revision(1);
      await Promise.all([1, 2, 3].map(() => driver.prepareRevision(first, pass(1))));
      await prepared(driver, first, pass(1));
      expect(await world.living()).toEqual([agent.agentId]);
    });
  });
};
