/**
 * Who may open the native admin UI of an Agent, and where it is: asked by clients, and again by the proxy for each
 * request to an Agent host. (agent-lifecycle section 9)
 */
import { revisions } from '../aggregates.ts';
import type { PresentAgent } from '../agent/agent.ts';
import { agentOperation, presentAgent, type AgentPlace } from '../agent/service.ts';
import type { ComputeDriver, GatewayEndpoint } from '../compute/driver.ts';
import type { Core } from '../core.ts';
import { forbidden, ref } from '../iam/authorizer.ts';
import type { Caller } from '../iam/caller.ts';
import { isUnreadable } from '../kernel/codec.ts';
import { unavailable } from '../kernel/errors.ts';
import { agentHost, hashOf, type NativeAdminSettings } from './domains.ts';
import { allowsNativeAdmin, isCleanEndpoint } from './support.ts';
import type { NativeAdminView } from './view.ts';

/** The part of the Compute driver that knows gateways; undefined in a process that runs none. */
export type Gateways = () => Pick<ComputeDriver, 'id' | 'implementation' | 'gatewayEndpoint'> | undefined;

export interface NativeAdminService {
  /**
   * Whether the UI can be opened, and where. Takes a session and `agent:administer`, whatever the answer.
   * @throws Refusal FORBIDDEN, NOT_FOUND, DEPENDENCY_UNAVAILABLE
   */
  availability(caller: Caller, place: AgentPlace): Promise<NativeAdminView>;
}

interface Found {
  readonly view: NativeAdminView;
  /** Set when it is available. */
  readonly gateway?: GatewayEndpoint;
}

/** While a revision that stops its predecessors first is on its way, or has failed, nothing serves. */
const isReplaced = ({ activeRevisionId, revisions: admitted }: PresentAgent): boolean => {
  const active = admitted.find(({ revisionId }) => revisionId === activeRevisionId);
  return active !== undefined && admitted.some(({ number, exclusive }) => exclusive && number > active.number);
};

export const createNativeAdminService = ({
  core,
  settings,
  gateways,
  installationId,
}: {
  readonly core: Core;
  /** Undefined while the Installation has it off. */
  readonly settings: NativeAdminSettings | undefined;
  readonly gateways: Gateways;
  readonly installationId: string;
}): NativeAdminService => {
  const { streams, authorizer } = core;

  const authorize = async (caller: Caller, place: AgentPlace, verb: string): Promise<void> => {
    const agent = ref.in('agent', place.namespaceId, place.agentId);
    const operation = agentOperation(`native_admin.${verb}`, agent);
    await authorizer.identify(caller, operation, ['administer', agent]);
    if (caller.sessionKey === undefined)
      throw await authorizer.denied(caller, operation, ['administer', agent], forbidden(), { decisionReason: 'The native admin UI takes the session of a person' });
    await authorizer.require(caller, operation, [['administer', agent]]);
  };

  /** The gateway that serves the selected revision; undefined where the driver, the native document or the endpoint is not fit for it. */
  const gatewayOf = async (agent: PresentAgent, origin: string): Promise<GatewayEndpoint | undefined> => {
    const driver = gateways();
    const snapshot = (await streams.load(revisions, agent.activeRevisionId!)).state;
    if (driver === undefined || snapshot === null || snapshot.compute.id !== driver.id || snapshot.compute.implementation !== driver.implementation) return undefined;
    if (isUnreadable(snapshot.settings) || !allowsNativeAdmin(snapshot.settings.configuration, origin)) return undefined;
    try {
      const endpoint = driver.gatewayEndpoint(agent);
      return endpoint !== undefined && isCleanEndpoint(endpoint) ? endpoint : undefined;
    } catch (error) {
      throw unavailable('compute', error);
    }
  };

  const find = async (agent: PresentAgent): Promise<Found> => {
    const { desired, activeRevisionId } = agent;
    if (settings === undefined) return { view: { status: 'disabled' } };
    if (activeRevisionId === null) return { view: { status: desired === 'stopped' ? 'stopped' : 'unavailable' } };
    const target = { activeRevisionId, ...agentHost(settings, hashOf(installationId, agent)) };
    if (desired === 'stopped') return { view: { status: 'stopped', ...target } };
    if (isReplaced(agent)) return { view: { status: 'unavailable', ...target } };
    const gateway = await gatewayOf(agent, target.origin);
    if (gateway === undefined) return { view: { status: 'unsupported', ...target } };
    return { view: { status: 'available', ...target, url: `${target.origin}/` }, gateway };
  };

  return {
    availability: async (caller, place) => {
      await authorize(caller, place, 'read');
      return (await find((await presentAgent(core, place)).state)).view;
    },
  };
};
