/** Pure comparisons of what an Agent's stream wants with what a pass was queued for. (agent-lifecycle 3.6, 3.12, 4.1) */
import type { AdmittedRevision, Lifecycle, StopOperation } from '../agent/lifecycle.ts';

interface Compute {
  readonly id: string;
  readonly implementation: string;
}

export const isHere = (compute: Compute, here: Compute): boolean => compute.id === here.id && compute.implementation === here.implementation;

export type DeploymentPlan =
  /** The Agent shall not run: stop this revision. */
  | { readonly step: 'stand-down' }
  | { readonly step: 'supersede'; readonly byRevisionId: string }
  /** Already selected: finish what an earlier pass began. */
  | { readonly step: 'recover' }
  /** Prepare and select; `stopFirst` has to be down before. */
  | { readonly step: 'replace'; readonly stopFirst: readonly AdmittedRevision[] };

/** Lower-numbered revisions that run here. */
export const predecessorsOf = (agent: Lifecycle, { number }: AdmittedRevision, here: Compute): readonly AdmittedRevision[] =>
  agent.revisions.filter((other) => other.number < number && isHere(other.compute, here));

export const selectedRevision = (agent: Lifecycle): AdmittedRevision | undefined =>
  agent.revisions.find(({ revisionId }) => revisionId === agent.activeRevisionId);

export const planDeployment = (agent: Lifecycle, candidate: AdmittedRevision, here: Compute): DeploymentPlan => {
  if (agent.desired === 'stopped') return { step: 'stand-down' };
  const newer = agent.revisions.find(({ number, exclusive, compute }) => number > candidate.number && exclusive && isHere(compute, here));
  if (newer !== undefined) return { step: 'supersede', byRevisionId: newer.revisionId };
  if (agent.activeRevisionId === candidate.revisionId) return { step: 'recover' };
  const selected = selectedRevision(agent);
  if (selected !== undefined && selected.number > candidate.number) return { step: 'supersede', byRevisionId: selected.revisionId };
  return { step: 'replace', stopFirst: candidate.exclusive ? predecessorsOf(agent, candidate, here) : [] };
};

export type StopPlan = { readonly step: 'supersede' } | { readonly step: 'elsewhere' } | { readonly step: 'sweep'; readonly revisions: readonly AdmittedRevision[] };

/** The selected revision first, then every other one admitted before the stop; an empty pointer does not prove there is nothing to stop. */
export const planStop = (agent: Lifecycle, stop: StopOperation, here: Compute): StopPlan => {
  const selected = selectedRevision(agent);
  if (agent.desired !== 'stopped' || (selected !== undefined && selected.number > stop.lastNumber)) return { step: 'supersede' };
  if (selected !== undefined && !isHere(selected.compute, here)) return { step: 'elsewhere' };
  const others = agent.revisions.filter(
    (other) => other.number <= stop.lastNumber && other.revisionId !== selected?.revisionId && isHere(other.compute, here),
  );
  return { step: 'sweep', revisions: selected === undefined ? others : [selected, ...others] };
};
