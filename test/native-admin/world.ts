/** An Installation with the native admin UI, and Agents in it whose fate and whose gateways a test tells; no worker runs. */
import { agents } from '../../src/aggregates.ts';
import type { AgentCommand } from '../../src/agent/agent.ts';
import { processAdmission } from '../../src/compute/process/admission.ts';
import type { GatewayEndpoint } from '../../src/compute/driver.ts';
import type { Seams } from '../../src/compose.ts';
import { systemContext } from '../../src/installation/bootstrap.ts';
import { newId } from '../../src/kernel/ids.ts';
import { workKey } from '../../src/kernel/work.ts';
import { startTestApplication, type TestApplication, type TestApplicationOptions } from '../support/app.ts';
import { openOperator, permissionOf, type TestOperator, type TestPerson } from '../support/principals.ts';
import { send, useCases as use, type AgentPlace, type UseCase } from '../support/use-cases.ts';

export const domain = 'agents.occ.example.com';
export const consolePage = 'https://console.occ.example.com';
export const enabled = {
  EXUVIA_MODE: 'production',
  OCC_AUTH_BASE_URL: consolePage,
  OCC_AGENT_NATIVE_ADMIN_ENABLED: 'true',
  OCC_AGENT_NATIVE_ADMIN_DOMAIN: domain,
  OCC_AUTH_COOKIE_DOMAIN: 'occ.example.com',
};
export const sharedCookieName = '__Secure-openclaw_occ_shared.session_token';

type Person = Pick<TestPerson, 'id' | 'sessionKey' | 'grant'> & { readonly cookie: string };

export interface NativeAdminWorld {
  readonly application: TestApplication;
  readonly operator: TestOperator;
  readonly namespaceId: string;
  /** What Compute tells of each Agent. */
  readonly endpoints: Map<string, GatewayEndpoint>;
  /** An Agent that may be deployed; with a native document of its own. */
  agent(values?: object): Promise<AgentPlace>;
  /** Admits a revision; answers its id. */
  deploy(place: AgentPlace): Promise<string>;
  /** What the worker would write once a revision serves. */
  select(place: AgentPlace, revisionId: string): Promise<void>;
  /** An Agent whose revision serves. */
  serving(values?: object): Promise<AgentPlace & { readonly revisionId: string }>;
  admin(useCase: UseCase): Promise<{ readonly id: string }>;
  /** Somebody with a session who may do this with an Agent: `agent:administer`, and so on. */
  person(place: AgentPlace, ...permissions: readonly string[]): Promise<Person & { revoke(permission: string): Promise<void> }>;
  close(): Promise<void>;
}

export const startNativeAdminWorld = async ({ env = enabled, seams, ...options }: Pick<TestApplicationOptions, 'env' | 'log'> & { readonly seams?: Seams } = {}): Promise<NativeAdminWorld> => {
  const endpoints = new Map<string, GatewayEndpoint>();
  const { id, implementation } = processAdmission;
  const gateways: Seams['gateways'] = () => ({ id, implementation, gatewayEndpoint: ({ agentId }) => endpoints.get(agentId) });
  const application = await startTestApplication({ ...options, env: { EXUVIA_ROLES: 'api,projector', ...env }, seams: { gateways, ...seams } });
  const operator = await openOperator(application);
  const { origin, key } = application;

  const admin: NativeAdminWorld['admin'] = async (useCase) => {
    const { code, message, data } = await send('REST', origin, useCase, key);
    if (code !== null) throw new Error(`The administrator was refused: ${code}, ${message}`);
    return data as { id: string };
  };
  const tell = async ({ agentId }: AgentPlace, command: AgentCommand): Promise<void> => void (await operator.streams.execute(agents, agentId, command, systemContext(operator.installationId)));
  const { id: namespaceId } = await admin(use.createNamespace({ name: 'N1' }));
  await operator.tell.namespaceReady(namespaceId);

  const world: NativeAdminWorld = {
    application,
    operator,
    namespaceId,
    endpoints,
    admin,
    agent: async (values = {}) => {
      const { id: configurationId } = await admin(use.createConfiguration(namespaceId, { kind: 'agent', values }));
      return { namespaceId, agentId: (await admin(use.createAgent(namespaceId, { name: newId('agt'), configurationId, harnessAuth: { method: 'runtime' } }))).id };
    },
    deploy: async (place) => (await admin(use.deployAgent(place))).id,
    select: async (place, revisionId) => {
      const state = (await operator.streams.load(agents, place.agentId)).state;
      const expectedActiveRevisionId = state.phase === 'present' ? state.activeRevisionId : null;
      await tell(place, { type: 'SelectRevision', claim: { workKey: workKey.deployment(revisionId), claimToken: 'told' }, revisionId, expectedActiveRevisionId });
    },
    serving: async (values) => {
      const place = await world.agent(values);
      const revisionId = await world.deploy(place);
      await world.select(place, revisionId);
      return { ...place, revisionId };
    },
    person: async ({ agentId }, ...permissions) => {
      const person = await operator.person();
      const revocations = new Map<string, () => Promise<void>>();
      for (const permission of permissions) revocations.set(permission, await person.grant([permissionOf(permission)], { namespaceId, resourceKind: 'agent', resourceId: agentId }));
      const [, token = ''] = person.cookie.split('=');
      return { ...person, cookie: `${env === enabled ? sharedCookieName : 'openclaw_occ.session_token'}=${token}`, revoke: async (permission) => revocations.get(permission)!() };
    },
    close: async () => {
      await operator.close();
      await application.close();
    },
  };
  return world;
};
