/** The use cases of the Installation, as both edges call them. (rest-contract 3.1) */
import { ref } from '../iam/authorizer.ts';
import type { Caller } from '../iam/caller.ts';
import type { Core } from '../core.ts';
import { installationView, type InstallationReads, type InstallationView } from './view.ts';

export type { InstallationView };

export interface InstallationService {
  get(caller: Caller): Promise<InstallationView>;
}

export const createInstallationService = ({
  core,
  reads,
  installationId,
}: {
  readonly core: Core;
  readonly reads: InstallationReads;
  readonly installationId: string;
}): InstallationService => ({
  get: async (caller) => {
    const resource = ref.installation(installationId);
    await core.authorizer.require(caller, { action: 'openclaw.installation.read', resource }, [['read', resource]]);
    const { rows, fresh } = await reads.find();
    if (fresh && rows[0] !== undefined) return rows[0];
    return installationView((await core.authorizer.current(caller.arrivedAt)).state.installation!);
  },
});
