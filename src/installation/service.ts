/** The use cases of the Installation, as both edges call them. (rest-contract 3.1) */
import { ref } from '../iam/authorizer.ts';
import type { Caller } from '../iam/caller.ts';
import { Refusal } from '../kernel/errors.ts';
import type { Core } from '../runtime/core.ts';

export interface InstallationView {
  readonly id: string;
  readonly name: string;
  readonly createdAt: string;
}

export interface InstallationService {
  get(caller: Caller): Promise<InstallationView>;
}

export const createInstallationService = ({ core, installationId }: { readonly core: Core; readonly installationId: string }): InstallationService => ({
  get: async (caller) => {
    const resource = ref.installation(installationId);
    await core.authorizer.require(caller, { action: 'openclaw.installation.read', resource }, [['read', resource]]);
    const { installation } = (await core.authorizer.current(caller.arrivedAt)).state;
    if (installation === null) throw new Refusal('NOT_FOUND', 'The Installation does not exist yet');
    return { id: installation.installationId, name: installation.name, createdAt: installation.createdAt };
  },
});
