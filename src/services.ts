/** All use cases, wired over one core: what both edges call. */
import { createDeploy, type Admitting, type Deploy } from './agent/deploy.ts';
import { createPastAgentService, type PastAgentService } from './agent/past.ts';
import { createAgentService, type AgentService } from './agent/service.ts';
import type { AgentReads } from './agent/view.ts';
import { createRevisionService, type RevisionService } from './agent-revision/service.ts';
import type { RevisionReads } from './agent-revision/view.ts';
import { createDiagnose, type Diagnose, type Diagnosing } from './deployment/diagnose.ts';
import { createConfigurationService, type ConfigurationService } from './configuration/service.ts';
import type { ConfigurationReads } from './configuration/view.ts';
import type { DeploymentReads } from './deployment/view.ts';
import { createHistoryService, type HistoryService } from './history/service.ts';
import type { HistoryReads } from './history/view.ts';
import type { DenialLimit } from './iam/denial-limit.ts';
import type { Keys } from './iam/keys.ts';
import type { ReadWaysIn } from './iam/last-administrator.ts';
import { createServiceKeyService, type ServiceKeyService } from './iam/service-keys.ts';
import { createPolicyService, type PolicyService } from './iam/service.ts';
import { createInstallationService, type InstallationService } from './installation/service.ts';
import type { InstallationReads } from './installation/view.ts';
import type { NativeAdminSettings } from './native-admin/domains.ts';
import { createNativeAdminService, type Gateways, type NativeAdminService } from './native-admin/service.ts';
import { createNamespaceService, type NamespaceService } from './namespace/service.ts';
import type { NamespaceReads } from './namespace/view.ts';
import { createAccountService, type AccountService } from './sign-in/account-service.ts';
import type { AccountRows } from './sign-in/accounts.ts';
import type { SignInLimits } from './sign-in/limits.ts';
import type { Passwords } from './sign-in/passwords.ts';
import { createSignInService, type SignInService } from './sign-in/service.ts';
import type { SessionRows } from './sign-in/sessions.ts';
import type { Clock } from './runtime/clock.ts';
import type { Core } from './core.ts';

/** The read models' queries. */
export interface Reads {
  readonly installation: InstallationReads;
  readonly namespaces: NamespaceReads;
  readonly configurations: ConfigurationReads;
  readonly agents: AgentReads;
  readonly revisions: RevisionReads;
  readonly deployments: DeploymentReads;
  readonly history: HistoryReads;
}

/** What signing in needs beside the core. */
export interface SignInParts {
  readonly accountRows: AccountRows;
  readonly sessionRows: SessionRows;
  readonly passwords: Passwords;
  readonly limits: SignInLimits;
  readonly denialLimit: Pick<DenialLimit, 'take'>;
  /** Of sessions; without it the usual one. */
  readonly cookieName?: string;
}

export interface Services {
  readonly signIn: SignInService;
  readonly accounts: AccountService;
  readonly installation: InstallationService;
  readonly namespaces: NamespaceService;
  readonly configurations: ConfigurationService;
  readonly agents: AgentService & { readonly deploy: Deploy };
  readonly revisions: RevisionService & { readonly diagnose: Diagnose };
  /** Agents as they were. */
  readonly past: PastAgentService;
  readonly nativeAdmin: NativeAdminService;
  readonly history: HistoryService;
  readonly iam: PolicyService;
  readonly serviceKeys: ServiceKeyService;
}

export const createServices = ({
  core,
  reads,
  compute,
  diagnosing,
  nativeAdmin,
  keys,
  waysIn,
  clock,
  signIn,
  installationId,
}: {
  readonly core: Core;
  readonly reads: Reads;
  readonly compute: Admitting;
  readonly diagnosing: Diagnosing;
  /** Without settings it is off. */
  readonly nativeAdmin: { readonly settings: NativeAdminSettings | undefined; readonly gateways: Gateways };
  readonly keys: Pick<Keys, 'insert' | 'erase'>;
  readonly waysIn: ReadWaysIn;
  readonly clock: Clock;
  readonly signIn: SignInParts;
  readonly installationId: string;
}): Services => ({
  signIn: createSignInService({ core, ...signIn, installationId }),
  accounts: createAccountService({ core, ...signIn, installationId }),
  installation: createInstallationService({ core, reads: reads.installation, installationId }),
  namespaces: createNamespaceService({ core, reads: reads.namespaces, installationId }),
  configurations: createConfigurationService({ core, reads: reads.configurations }),
  agents: { ...createAgentService({ core, reads: reads.agents }), deploy: createDeploy({ core, compute }) },
  revisions: { ...createRevisionService({ core, revisionReads: reads.revisions, deploymentReads: reads.deployments }), diagnose: createDiagnose({ core, diagnosing, clock }) },
  past: createPastAgentService({ core, history: reads.history, clock }),
  nativeAdmin: createNativeAdminService({ core, reads: reads.agents, ...nativeAdmin, installationId }),
  history: createHistoryService({ core, reads: reads.history, installationId }),
  iam: createPolicyService({ core, installationId }),
  serviceKeys: createServiceKeyService({ core, keys, waysIn, clock, installationId }),
});
