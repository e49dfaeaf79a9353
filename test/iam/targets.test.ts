/** What a binding may name, asked of the streams that decide it. (iam-auth-audit 4.2) */
import { beforeAll, describe, expect, it } from 'vitest';
import { agents, configurations, namespaces, revisions } from '../../src/aggregates.ts';
import type { PresentAgent } from '../../src/agent/agent.ts';
import { createTargets, type Targets } from '../../src/iam/targets.ts';
import { newId } from '../../src/kernel/ids.ts';
import { createDatabase } from '../support/database.ts';
import { createWorld, type World } from '../support/work-world.ts';

const elsewhere = newId('ns');
let world: World;
let targets: Targets;
let here: string;
beforeAll(async () => {
  world = await createWorld(await createDatabase());
  targets = createTargets(world.streams);
  here = world.namespaceId;
});

const deleting = async (agent: PresentAgent) => world.happened(agents, agent.agentId, [{ type: 'AgentDeletionRequested', data: { agentId: agent.agentId, namespaceId: here, accessBindingIds: [], restrictionIds: [] } }]);
const removed = async ({ agentId }: PresentAgent) => world.happened(agents, agentId, [{ type: 'AgentTeardownFinished', data: { agentId, namespaceId: here, revisionIds: [] } }, { type: 'AgentRemoved', data: { agentId, namespaceId: here } }]);

describe('an Agent and its revisions', () => {
  it('can be named while it lives, in its own Namespace, by their own kinds', async () => {
    const agent = await world.createAgent();
    const { revisionId } = await world.deploy(agent);
    const seen = async () => Promise.all([targets.exists(here, 'agent', agent.agentId), targets.isLiveAgent(here, agent.agentId), targets.exists(here, 'agent_revision', revisionId)]);
    expect(await seen()).toEqual([true, true, true]);
    expect(await Promise.all([targets.exists(elsewhere, 'agent', agent.agentId), targets.isLiveAgent(elsewhere, agent.agentId), targets.exists(elsewhere, 'agent_revision', revisionId)])).toEqual([false, false, false]);
    expect(await Promise.all([targets.exists(here, 'agent', revisionId), targets.exists(here, 'agent_revision', agent.agentId), targets.exists(here, 'configuration', agent.agentId)])).toEqual([false, false, false]);
    await deleting(agent);
    expect(await seen()).toEqual([false, false, false]);
    await removed(agent);
    expect(await seen()).toEqual([false, false, false]);
  });

  it('a revision that was saved and never admitted is none', async () => {
    const agent = await world.createAgent();
    const { revisionId: admitted } = await world.deploy(agent);
    const snapshot = (await world.streams.load(revisions, admitted)).state!;
    const revisionId = newId('rev');
    await world.happened(revisions, revisionId, [{ type: 'AgentRevisionSnapshotted', data: { ...snapshot, revisionId } }]);
    expect((await world.streams.load(revisions, revisionId)).state).not.toBeNull();
    expect(await Promise.all([targets.exists(here, 'agent_revision', admitted), targets.exists(here, 'agent_revision', revisionId)])).toEqual([true, false]);
  });
});

describe('what the register of the Namespace holds', () => {
  const admit = (kind: string, id: string) => world.happened(namespaces, here, [{ type: 'ResourceAdmitted', data: { kind, id, refersTo: [] } }]);

  it('a Configuration can be named once it is saved, until it is deleted, where it is', async () => {
    const configurationId = newId('cfg');
    const seen = () => targets.exists(here, 'configuration', configurationId);
    await admit('configuration', configurationId);
    expect(await seen(), 'only admitted').toBe(false);
    await world.happened(configurations, configurationId, [{ type: 'ConfigurationCreated', data: { configurationId, namespaceId: here, generation: 1, kind: 'agent', settings: { values: {} } } }]);
    expect([await seen(), await targets.exists(elsewhere, 'configuration', configurationId)]).toEqual([true, false]);
    await world.happened(namespaces, here, [{ type: 'ResourceRemoved', data: { kind: 'configuration', id: configurationId } }]);
    expect(await seen(), 'deleted by the register, its own stream not ended yet').toBe(false);
  });

  it.each(['secret', 'service_account', 'credential_source'] as const)('a %s can be named as what it is, and where it is', async (kind) => {
    const id = `${kind}-1`;
    expect(await targets.exists(here, kind, id)).toBe(false);
    await admit(kind, id);
    expect(await Promise.all([targets.exists(here, kind, id), targets.exists(elsewhere, kind, id)])).toEqual([true, false]);
    for (const other of ['secret', 'service_account', 'credential_source'] as const) expect(await targets.exists(here, other, id)).toBe(other === kind);
  });

  it('the Namespace itself can be named by its own id alone', async () => {
    expect(await Promise.all([targets.exists(here, 'namespace', here), targets.exists(here, 'namespace', elsewhere)])).toEqual([true, false]);
  });
});
