/** The passes over one Namespace: its place on Compute is made, and at the end taken away. */
import { iam } from '../aggregates.ts';
import type { NamespaceObservation } from '../compute/driver.ts';
import { principalsIn } from '../iam/policy.ts';
import type { NamespaceCommand, NamespaceState } from '../namespace/namespace.ts';
import type { Finished } from '../runtime/worker.ts';
import { currentPolicy, requireActor } from './authorization.ts';
import { dependencyUnavailable, driverFailure, finished, pending, refuse, retry } from './outcome.ts';
import type { Pass } from './pass.ts';

type NamespacePass = Pass<NamespaceCommand>;

/** Waits, retries or fails as the driver says. */
const requireDone = (seen: NamespaceObservation, namespaceId: string): void => {
  if (seen.namespaceId !== namespaceId) throw refuse('INVALID_DRIVER_OBSERVATION');
  if (seen.failure === 'permanent') throw refuse('NAMESPACE_REFUSED');
  if (seen.failure === 'retryable') throw retry(dependencyUnavailable);
  if (!seen.done) throw pending('NAMESPACE_INCOMPLETE');
};

const judge = (error: unknown) => driverFailure(error, false);

export const runNamespaceReady = async (pass: NamespacePass, state: NamespaceState, namespaceId: string): Promise<Finished> => {
  if (state.status !== 'provisioning') return finished('NAMESPACE_NOT_PROVISIONING');
  requireDone(await pass.effect(({ signal }) => pass.deps.driver.ensureNamespace(namespaceId, { signal }), judge), namespaceId);
  await pass.append({ type: 'MarkNamespaceReady', namespaceId, claim: pass.work }, { outcome: 'success', reasonCode: 'NAMESPACE_READY' });
  return finished('NAMESPACE_READY');
};

/** Ended by one append, which has a limit. */
const principalsAtOnce = 100;

/** Nothing can be bound to them or issued for them any more; their rows go while policy still names them. */
const removePrincipals = async (pass: NamespacePass, namespaceId: string): Promise<void> => {
  const ids = principalsIn(await currentPolicy(pass), namespaceId);
  for (let from = 0; from < ids.length; from += principalsAtOnce) {
    const servicePrincipalIds = ids.slice(from, from + principalsAtOnce);
    for (const id of servicePrincipalIds) await pass.deps.erasePrincipalRows(id);
    await pass.point('namespace-deletion:rows-erased');
    await pass.appendTo(iam, '', { type: 'RemoveServicePrincipals', namespaceId, servicePrincipalIds }, { outcome: 'success', reasonCode: 'NAMESPACE_PRINCIPALS_REMOVED' });
  }
};

/** Once policy has forgotten the Namespace its initiator may be unable to ask again, and needs not. (failure scenario 8) */
export const runNamespaceDeletion = async (
  pass: NamespacePass,
  deletion: NonNullable<NamespaceState['deletion']>,
  namespaceId: string,
): Promise<Finished> => {
  const policy = await currentPolicy(pass);
  if (!policy.removed.has(namespaceId)) {
    requireActor(policy, deletion.actor.principalId, [['delete', { kind: 'namespace', id: namespaceId, namespaceId }]]);
    requireDone(await pass.effect(({ signal }) => pass.deps.driver.deleteNamespace(namespaceId, { signal }), judge), namespaceId);
    await pass.point('namespace-deletion:erased');
    const command = { type: 'RemoveResourcePolicy', resourceKind: 'namespace', resourceId: namespaceId, namespaceId } as const;
    await pass.appendTo(iam, '', command, { outcome: 'success', reasonCode: 'NAMESPACE_POLICY_REMOVED' });
    await pass.point('namespace-deletion:unbound');
  }
  await removePrincipals(pass, namespaceId);
  await pass.point('namespace-deletion:ended');
  await pass.append(
    { type: 'RemoveNamespace', namespaceId, claim: pass.work },
    { action: 'openclaw.namespaces.lifecycle.delete', outcome: 'success', reasonCode: 'NAMESPACE_DELETED' },
  );
  return finished('NAMESPACE_DELETED');
};
