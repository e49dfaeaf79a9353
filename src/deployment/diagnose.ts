/** Diagnostics: fresh, bounded checks of any admitted revision, asked of the Compute driver it is pinned to; nothing is stored. (agent-lifecycle section 8) */
import Type from 'typebox';
import { revisions } from '../aggregates.ts';
import { presentAgent } from '../agent/service.ts';
import type { RevisionPlace } from '../agent-revision/service.ts';
import { snapshotOf } from '../agent-revision/snapshot.ts';
import type { ComputeDriver, DiagnosticCheck, RevisionSnapshot } from '../compute/driver.ts';
import type { Core } from '../core.ts';
import { ref } from '../iam/authorizer.ts';
import type { Caller } from '../iam/caller.ts';
import { Fault, Refusal, unavailable } from '../kernel/errors.ts';
import { validator } from '../kernel/parse.ts';
import { timestamp, type Clock } from '../runtime/clock.ts';

export interface Diagnostics {
  readonly revisionId: string;
  readonly observedAt: string;
  readonly checks: readonly DiagnosticCheck[];
}

/** The part of the Compute driver that collects evidence; undefined in a process that runs none. */
export type Diagnosing = () => Pick<ComputeDriver, 'id' | 'implementation' | 'diagnoseRevision'> | undefined;

export type Diagnose = (caller: Caller, place: RevisionPlace) => Promise<Diagnostics>;

const deadlineMs = 10_000;

const identifier = Type.String({ pattern: '^[A-Za-z0-9._~:@-]{1,64}$' });
/** What a driver's evidence must look like to be shown. */
export const diagnosticChecks = Type.Array(
  Type.Object(
    {
      component: identifier,
      check: identifier,
      state: Type.Union([Type.Literal('succeeded'), Type.Literal('failed'), Type.Literal('unknown')]),
      checkedAt: Type.Union([Type.String({ pattern: '^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}[.][0-9]{3}Z$' }), Type.Null()]),
      code: Type.Optional(identifier),
    },
    { additionalProperties: false },
  ),
  { maxItems: 32 },
);

/** @throws Refusal FORBIDDEN, NOT_FOUND, and DEPENDENCY_UNAVAILABLE when no evidence, or none that can be believed, is collected in 10 s */
export const createDiagnose = ({ core, diagnosing, clock }: { readonly core: Core; readonly diagnosing: Diagnosing; readonly clock: Pick<Clock, 'now'> }): Diagnose => {
  const { streams, authorizer } = core;

  const collect = async (revision: RevisionSnapshot): Promise<readonly DiagnosticCheck[]> => {
    const driver = diagnosing();
    if (driver === undefined || driver.id !== revision.compute.id || driver.implementation !== revision.compute.implementation)
      throw new Fault(`Compute driver ${revision.compute.id} of revision ${revision.revisionId} is not at hand`);
    const signal = AbortSignal.timeout(deadlineMs);
    const late = new Promise<never>((_, reject) => signal.addEventListener('abort', () => reject(signal.reason as Error), { once: true }));
    const checks = await Promise.race([driver.diagnoseRevision(revision, { signal }), late]);
    if (!validator(diagnosticChecks)(checks)) throw new Fault(`The evidence of revision ${revision.revisionId} is invalid`);
    return checks;
  };

  return async (caller, place) => {
    const { namespaceId, agentId, revisionId } = place;
    const agent = ref.in('agent', namespaceId, agentId);
    const resource = ref.in('agent_revision', namespaceId, revisionId);
    await authorizer.require(caller, { action: 'openclaw.agent_deployments.diagnostics.run', resource }, [
      ['read', agent],
      ['operate', agent],
      ['read', resource],
    ]);
    const { state } = await presentAgent(core, place);
    const admitted = state.revisions.some((revision) => revision.revisionId === revisionId);
    const snapshot = admitted ? (await streams.load(revisions, revisionId)).state : null;
    if (snapshot === null) throw new Refusal('NOT_FOUND', 'The Agent revision was not found');
    const checks = await collect(snapshotOf(snapshot)).catch((error: unknown) => {
      throw unavailable('compute', error);
    });
    return { revisionId, observedAt: timestamp(clock.now()), checks };
  };
};
