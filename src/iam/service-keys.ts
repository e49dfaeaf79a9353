/** The use cases of service keys: who may administer the Installation, and holds all that the key's principal may do, issues and revokes them. (iam-auth-audit 1.6, rest-contract 3.10) */
import type { Core } from '../core.ts';
import { Refusal } from '../kernel/errors.ts';
import type { Sent } from '../kernel/parse.ts';
import { timestamp, type Clock } from '../runtime/clock.ts';
import { forbidden, ref, type Operation } from './authorizer.ts';
import type { Caller } from './caller.ts';
import { createChangePolicy } from './change.ts';
import { covers } from './coverage.ts';
import { iamDecider, type IamCommand } from './iam.ts';
import { defaultKeyLifetime, type IssueServiceKeyInput } from './input.ts';
import { newKey, type Keys } from './keys.ts';
import { keepingAdministrator, type ReadWaysIn } from './last-administrator.ts';
import type { ServiceKey } from './messages.ts';
import type { Policy } from './policy.ts';
import { issuedServiceKey, type IssuedServiceKey, type RevokedServiceKey } from './view.ts';

export interface ServiceKeyService {
  /** @throws Refusal INVALID_REQUEST for a principal that no key can be issued for, FORBIDDEN while the caller does not cover it */
  issue(caller: Caller, sent: Sent<IssueServiceKeyInput>): Promise<IssuedServiceKey>;
  /** @throws Refusal NOT_FOUND, RESOURCE_CONFLICT for the key of the last administrator, or FORBIDDEN while the caller does not cover the key's principal */
  revoke(caller: Caller, keyId: string): Promise<RevokedServiceKey>;
}

/** The caller holds less than the principal whose key it is. */
class GrantsNotCovered extends Refusal {}

const notCovered = (): GrantsNotCovered => new GrantsNotCovered('FORBIDDEN', forbidden().message);

export const createServiceKeyService = ({
  core,
  keys,
  waysIn,
  clock,
  installationId,
}: {
  readonly core: Core;
  readonly keys: Pick<Keys, 'insert' | 'erase'>;
  readonly waysIn: ReadWaysIn;
  readonly clock: Clock;
  readonly installationId: string;
}): ServiceKeyService => {
  const { authorizer } = core;
  const changePolicy = createChangePolicy(core);
  const installation = ref.installation(installationId);
  const permissions = [['administer', installation]] as const;
  const operation = (verb: string): Operation => ({ action: `openclaw.auth.service-keys.${verb}`, resource: installation, unfounded: 'RESOURCE_CONFLICT' });

  const admit = async (caller: Caller, verb: string) => {
    const asked = { caller, operation: operation(verb), permissions };
    const grant = await authorizer.require(caller, asked.operation, permissions);
    return { policy: (await authorizer.current(caller.arrivedAt)).state, asked: { ...asked, grant } };
  };

  /** What policy says of a key, unless its principal may do more than the caller. */
  const decideCovered = (caller: Caller, { servicePrincipalId }: ServiceKey, command: IamCommand) => (policy: Policy) =>
    covers(policy, caller.actor.principalId, servicePrincipalId) ? iamDecider.decide(policy, command) : notCovered();

  /** The same refusal, recorded when it is for want of coverage. */
  const recorded = async (refusal: unknown, caller: Caller, verb: string, { servicePrincipalId }: ServiceKey): Promise<unknown> =>
    refusal instanceof GrantsNotCovered
      ? authorizer.denied(caller, operation(verb), permissions[0], refusal, { servicePrincipalId }, 'SERVICE_PRINCIPAL_GRANTS_NOT_COVERED')
      : refusal;

  const about = ({ keyId, servicePrincipalId, namespaceId }: ServiceKey) => ({
    resource: namespaceId === undefined ? installation : ref.namespace(namespaceId),
    details: { keyId, servicePrincipalId },
  });

  return {
    issue: async (caller, sent) => {
      const { servicePrincipalId, namespaceId, name, expiresIn = defaultKeyLifetime } = await authorizer.receive(caller, operation('create'), permissions[0], sent);
      const { policy, asked } = await admit(caller, 'create');
      const { keyId, text, secretHash } = newKey();
      const key: ServiceKey = { keyId, servicePrincipalId, name, expiresAt: timestamp(clock.now() + expiresIn * 1_000), ...(namespaceId !== undefined && { namespaceId }) };
      const decide = decideCovered(caller, key, { type: 'IssueServiceKey', key });
      const decision = decide(policy);
      if (decision instanceof Refusal) throw await recorded(decision, caller, 'create', key);
      const { resource, details } = about(key);
      await keys.insert(keyId, servicePrincipalId, secretHash);
      try {
        await changePolicy({ ...asked, decide, about: { resource, details: { ...details, expiresAt: key.expiresAt } } });
      } catch (refusal) {
        await keys.erase(keyId).catch(() => undefined); // without its event the row counts for nothing
        throw await recorded(refusal, caller, 'create', key);
      }
      return issuedServiceKey(key, text);
    },

    revoke: async (caller, keyId) => {
      const { policy, asked } = await admit(caller, 'revoke');
      const key = policy.keys.get(keyId);
      if (key === undefined) throw new Refusal('NOT_FOUND', 'The service key was not found');
      const covered = decideCovered(caller, key, { type: 'RevokeServiceKey', keyId });
      const kept = { installationId, waysIn: await waysIn(), nowMs: clock.now() };
      const decide = (before: Policy) => keepingAdministrator(before, covered(before), kept);
      const decision = decide(policy);
      if (decision instanceof Refusal) throw await recorded(decision, caller, 'revoke', key);
      const erase = () => keys.erase(keyId).catch(() => undefined); // the history says already that it ended, or is asked again
      try {
        await changePolicy({ ...asked, decide, about: about(key) });
      } catch (refusal) {
        // Who might revoke it has given it up: of no use from here, although that could not be recorded.
        if (refusal instanceof Refusal && refusal.kind === 'unavailable') await erase();
        throw await recorded(refusal, caller, 'revoke', key);
      }
      await erase();
      return { id: keyId, revoked: true };
    },
  };
};
