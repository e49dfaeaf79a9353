/** The maintenance pass: a selected revision that shall run is brought back up, without a new revision and without a result. (architecture section 8) */
import { namespaces } from '../aggregates.ts';
import type { PresentAgent } from '../agent/agent.ts';
import type { Finished } from '../runtime/worker.ts';
import { bind, snapshotsOf, type AgentPass } from './agent-effects.ts';
import { driverFailure, unready } from './outcome.ts';
import { isHere, selectedRevision } from './plan.ts';

const done: Finished = { kind: 'finished', state: 'succeeded', code: 'MAINTENANCE_DONE' };

export const runMaintenance = async (pass: AgentPass, agent: PresentAgent): Promise<Finished> => {
  const { driver, streams } = pass.deps;
  const selected = selectedRevision(agent);
  if (agent.desired !== 'running' || selected?.revisionId !== pass.work.revisionId || !isHere(selected.compute, driver)) return done;
  if ((await streams.load(namespaces, agent.namespaceId)).state.status !== 'ready') return done;
  const judge = (error: unknown) => driverFailure(error, true);
  await bind(pass, agent, judge);
  for (const snapshot of await snapshotsOf(streams, [selected.revisionId])) {
    const seen = await pass.effect((options) => driver.prepareRevision(snapshot, options), judge);
    if (!seen.ready) throw unready(seen);
    await pass.effect((options) => driver.activateRevision(snapshot, options), judge);
  }
  return done;
};
