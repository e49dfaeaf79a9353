/** `deploymentChanged` over server-sent events: the current state first, then every change, for as long as the grant lasts. */
import { afterAll, afterEach, beforeAll, expect, it } from 'vitest';
import { agents } from '../../src/aggregates.ts';
import { workKey } from '../../src/kernel/work.ts';
import type { CommandContext } from '../../src/runtime/streams.ts';
import type { ClaimedWork } from '../../src/runtime/work-queue.ts';
import { until } from '../support/until.ts';
import { createAgent, createConfiguration, createNamespace, deployAgent } from './fixture.ts';
import { DeploymentStatesDocument, type DeploymentStatesSubscription } from './operations.generated.ts';
import { openSubscription, type Subscription } from './subscribing.ts';
import { createWorld, type World } from './world.ts';

let world: World;
let namespaceId: string;
let configurationId: string;

beforeAll(async () => {
  world = await createWorld();
  ({ namespaceId } = await createNamespace(world, 'main'));
  ({ configurationId } = await createConfiguration(world, namespaceId));
});
afterEach(() => open.splice(0).forEach(({ leave }) => leave()));
afterAll(() => world.close());

const system: CommandContext = { actor: { principalId: 'system', kind: 'system' }, requestId: null, correlationId: 'test', causationId: null, policyRevision: null };

const open: Subscription<DeploymentStatesSubscription>[] = [];

const subscribe = async (id: string, key = world.adminKey): Promise<Subscription<DeploymentStatesSubscription>> => {
  const subscription = await openSubscription(world.edge.endpoint, DeploymentStatesDocument, { id }, { 'x-api-key': key });
  open.push(subscription);
  return subscription;
};

const statuses = ({ results }: Subscription<DeploymentStatesSubscription>) => results.map(({ data, errors }) => data?.deploymentChanged.status ?? errors?.[0]?.extensions.code);

const deployed = async (name: string) => {
  const { id } = await createAgent(world, namespaceId, configurationId, name);
  return deployAgent(world, id);
};

/** Claims the work of one deployment as a worker would; whatever else is due is put off. */
const claimOf = async (revisionId: string): Promise<ClaimedWork> => {
  for (;;) {
    const claim = await world.queue.claim();
    if (claim === undefined) throw new Error(`No work for ${revisionId} is due`);
    if (claim.revisionId === revisionId) return claim;
    await world.queue.requeue(claim, { delayMs: 3_600_000, attempts: 0 });
  }
};

it('sends the current state, a claim that starts, its lease that ends, and the result', async () => {
  const { revisionId } = await deployed('watched');
  const subscription = await subscribe(revisionId);
  await until('the current state', () => statuses(subscription), (seen) => seen.length === 1);
  const claim = await claimOf(revisionId);
  await until('a claim', () => statuses(subscription), (seen) => seen.at(-1) === 'running');
  await until('the end of its lease', () => statuses(subscription), (seen) => seen.at(-1) === 'queued');
  await world.streams.execute(agents, claim.agentId!, { type: 'FailDeployment', claim, revisionId, code: 'RUNTIME_STARTUP_FAILED' }, system);
  await until('the result', () => statuses(subscription), (seen) => seen.at(-1) === 'failed');
  expect(statuses(subscription)).toEqual(['queued', 'running', 'queued', 'failed']);
  expect(subscription.results.at(-1)?.data.deploymentChanged).toMatchObject({ progress: null, error: { code: 'RUNTIME_STARTUP_FAILED' } });
});

it('ends with FORBIDDEN once the grant is gone, and sends nothing more', async () => {
  const { revisionId } = await deployed('guarded');
  const principal = await world.addPrincipal([{ action: 'read', resourceKind: 'agent_revision', namespaceId }]);
  const subscription = await subscribe(revisionId, principal.key);
  await until('the current state', () => statuses(subscription), (seen) => seen.length === 1);
  await principal.removeGrant(0);
  await claimOf(revisionId);
  await until('the end', () => subscription.ended, (ended) => ended);
  expect(statuses(subscription)).toEqual(['queued', 'FORBIDDEN']);
});

it('is refused before anything is sent', async () => {
  const { revisionId } = await deployed('private');
  const { key } = await world.addPrincipal([]);
  const subscription = await subscribe(revisionId, key);
  await until('the end', () => subscription.ended, (ended) => ended);
  expect(statuses(subscription)).toEqual(['FORBIDDEN']);
});

it('completes when the Agent is gone', async () => {
  const { agentId, revisionId } = await deployed('doomed');
  const subscription = await subscribe(revisionId);
  await until('the current state', () => statuses(subscription), (seen) => seen.length === 1);
  const claim = { workKey: workKey.deletion(agentId), claimToken: 'test' };
  await world.streams.execute(agents, agentId, { type: 'RequestDeletion', actorId: 'prn_1', initiatorPermitted: true, accessBindingIds: [], restrictionIds: [] }, system);
  await world.streams.execute(agents, agentId, { type: 'FinishTeardown', claim }, system);
  await world.streams.execute(agents, agentId, { type: 'RemoveAgent' }, system);
  await until('the end', () => subscription.ended, (ended) => ended);
  expect(subscription.results.filter(({ errors }) => errors !== undefined)).toEqual([]);
});

it('leaves nothing behind when a client vanishes', async () => {
  const { revisionId } = await deployed('abandoned');
  const subscriptions = await Promise.all([subscribe(revisionId), subscribe(revisionId)]);
  await until('both current states', () => subscriptions.map(({ results }) => results.length), ([one, two]) => one === 1 && two === 1);
  for (const { leave } of subscriptions) leave();
  await until('the watch at rest', () => world.edge.isWatching(), (isWatching) => !isWatching);
});

it('completes when the process drains', async () => {
  const { revisionId } = await deployed('drained');
  const subscription = await subscribe(revisionId);
  await until('the current state', () => statuses(subscription), (seen) => seen.length === 1);
  world.edge.handler.close();
  await until('the end', () => subscription.ended, (ended) => ended);
  await until('the watch at rest', () => world.edge.isWatching(), (isWatching) => !isWatching);
});
