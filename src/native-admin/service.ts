/**
 * Who may open the native admin UI of an Agent, and where it is: asked by clients, and again by the proxy for each
 * request to an Agent host. (agent-lifecycle section 9)
 */
import { agents, revisions } from '../aggregates.ts';
import type { AgentRevisionState } from '../agent-revision/agent-revision.ts';
import { agentNotFound, type PresentAgent } from '../agent/agent.ts';
import { agentOperation, type AgentPlace } from '../agent/service.ts';
import type { AgentReads } from '../agent/view.ts';
import type { ComputeDriver, GatewayEndpoint } from '../compute/driver.ts';
import type { AuditEvent } from '../audit/messages.ts';
import type { Core } from '../core.ts';
import { forbidden, ref, type Grant } from '../iam/authorizer.ts';
import type { Caller } from '../iam/caller.ts';
import { isUnreadable } from '../kernel/codec.ts';
import { Refusal, unavailable } from '../kernel/errors.ts';
import { agentHost, hashOf, type NativeAdminSettings } from './domains.ts';
import { judgedEach, only } from '../runtime/reading.ts';
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
  /** {@link availability} of each of several Agents, at the cost of one. */
  availabilities(caller: Caller, places: readonly AgentPlace[]): Promise<readonly (NativeAdminView | Error)[]>;
  /**
   * Lets a request to an Agent host in, under the same conditions; `verb` is what the audit calls it when it is denied.
   * @throws Refusal NOT_FOUND for a host that is not exactly one Agent's, FORBIDDEN, RESOURCE_CONFLICT, DEPENDENCY_UNAVAILABLE
   */
  admit(caller: Caller, hash: string, verb: 'request' | 'websocket.connect'): Promise<Admitted>;
  /** Records that a WebSocket was let in. @throws Refusal DEPENDENCY_UNAVAILABLE when it cannot be recorded */
  connected(caller: Caller, admitted: Admitted, connectionId: string): Promise<void>;
  /** Records that it has ended. @throws Refusal DEPENDENCY_UNAVAILABLE when it cannot be recorded */
  closed(caller: Caller, admitted: Admitted, connectionId: string, closeReason: string): Promise<void>;
}

/** What a request to an Agent host is let in to. */
export interface Admitted extends AgentPlace {
  readonly revisionId: string;
  readonly gateway: GatewayEndpoint;
  readonly grant: Grant;
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

/** Places kept by the hash of their host; what a hash stands for never changes. */
const keptPlaces = 2_000;

export const createNativeAdminService = ({
  core,
  reads,
  settings,
  gateways,
  installationId,
}: {
  readonly core: Core;
  readonly reads: Pick<AgentReads, 'byHash'>;
  /** Undefined while the Installation has it off. */
  readonly settings: NativeAdminSettings | undefined;
  readonly gateways: Gateways;
  readonly installationId: string;
}): NativeAdminService => {
  const { streams, authorizer, audit } = core;
  const places = new Map<string, AgentPlace>();

  const placeOf = async (hash: string): Promise<AgentPlace> => {
    const known = places.get(hash);
    if (known !== undefined) return known;
    const { rows, fresh } = await reads.byHash(installationId, hash);
    const [row] = rows;
    if (row === undefined && !fresh) throw unavailable('agents');
    if (row === undefined || rows.length > 1) throw new Refusal('NOT_FOUND', 'There is no such Agent host');
    const place = { namespaceId: row.namespaceId, agentId: row.id };
    if (places.size >= keptPlaces) places.clear();
    places.set(hash, place);
    return place;
  };

  const authorize = async (caller: Caller, place: AgentPlace, verb: string): Promise<Grant> => {
    const agent = ref.in('agent', place.namespaceId, place.agentId);
    const operation = agentOperation(`native_admin.${verb}`, agent);
    await authorizer.identify(caller, operation, ['administer', agent]);
    if (caller.sessionKey === undefined)
      throw await authorizer.denied(caller, operation, ['administer', agent], forbidden(), { decisionReason: 'The native admin UI takes the session of a person' });
    return authorizer.require(caller, operation, [['administer', agent]]);
  };

  /** The gateway that serves the selected revision; undefined where the driver, the native document or the endpoint is not fit for it. */
  const gatewayOf = (agent: PresentAgent, snapshot: AgentRevisionState, origin: string): GatewayEndpoint | undefined => {
    const driver = gateways();
    if (driver === undefined || snapshot === null || snapshot.compute.id !== driver.id || snapshot.compute.implementation !== driver.implementation) return undefined;
    if (isUnreadable(snapshot.settings) || !allowsNativeAdmin(snapshot.settings.configuration, origin)) return undefined;
    try {
      const endpoint = driver.gatewayEndpoint(agent);
      return endpoint !== undefined && isCleanEndpoint(endpoint) ? endpoint : undefined;
    } catch (error) {
      throw unavailable('compute', error);
    }
  };

  const found = (agent: PresentAgent, snapshot: AgentRevisionState): Found => {
    const { desired, activeRevisionId } = agent;
    if (settings === undefined) return { view: { status: 'disabled' } };
    if (activeRevisionId === null) return { view: { status: desired === 'stopped' ? 'stopped' : 'unavailable' } };
    const target = { activeRevisionId, ...agentHost(settings, hashOf(installationId, agent)) };
    if (desired === 'stopped') return { view: { status: 'stopped', ...target } };
    if (isReplaced(agent)) return { view: { status: 'unavailable', ...target } };
    const gateway = gatewayOf(agent, snapshot, target.origin);
    if (gateway === undefined) return { view: { status: 'unsupported', ...target } };
    return { view: { status: 'available', ...target, url: `${target.origin}/` }, gateway };
  };

  /** What each of these Agents has; both kinds of streams are read at once for all. */
  const findEach = async (places: readonly AgentPlace[]): Promise<readonly (Found | Error)[]> => {
    const loaded = (await streams.loadMany(agents, places.map(({ agentId }) => agentId))).map(({ state }) => state);
    const selected = settings === undefined ? [] : loaded.flatMap((agent) => (agent.phase === 'present' && agent.activeRevisionId !== null ? [agent.activeRevisionId] : []));
    const snapshots = selected.length === 0 ? [] : await streams.loadMany(revisions, selected);
    const bySelected = new Map(selected.map((revisionId, index) => [revisionId, snapshots[index]!.state]));
    return places.map(({ namespaceId }, index) => {
      const agent = loaded[index]!;
      if (agent.phase !== 'present' || agent.namespaceId !== namespaceId) return agentNotFound();
      try {
        return found(agent, bySelected.get(agent.activeRevisionId ?? '') ?? null);
      } catch (error) {
        return error as Error;
      }
    });
  };

  const availabilities: NativeAdminService['availabilities'] = (caller, places) =>
    judgedEach(
      places,
      (place) => authorize(caller, place, 'read'),
      async (admitted) => (await findEach(admitted)).map((one) => (one instanceof Error ? one : one.view)),
    );

  /** One record of a connection; both carry its id. */
  const record = (caller: Caller, admitted: Admitted, event: 'connect' | 'close', data: Extract<AuditEvent, { type: 'NativeAdminConnected' | 'NativeAdminClosed' }>): Promise<void> => {
    const { namespaceId, agentId, ...details } = data.data;
    const { authorization, policyRevision } = admitted.grant;
    const { action, resource } = agentOperation(`native_admin.websocket.${event}`, ref.in('agent', namespaceId, agentId));
    return audit.record(caller, data, { kind: 'mutation', action, resource, outcome: 'success', authorization, details }, policyRevision);
  };
  const connectionOf = ({ namespaceId, agentId, revisionId }: Admitted, connectionId: string) => ({ namespaceId, agentId, revisionId, connectionId });

  return {
    admit: async (caller, hash, verb) => {
      const place = await placeOf(hash);
      const grant = await authorize(caller, place, verb);
      const { view, gateway } = only(await findEach([place]));
      if (gateway !== undefined) return { ...place, revisionId: view.activeRevisionId!, gateway, grant };
      if (view.status === 'unavailable') throw unavailable('agent');
      throw new Refusal('RESOURCE_CONFLICT', `The native admin UI of this Agent is ${view.status}`);
    },

    connected: (caller, admitted, connectionId) => record(caller, admitted, 'connect', { type: 'NativeAdminConnected', data: connectionOf(admitted, connectionId) }),

    closed: (caller, admitted, connectionId, closeReason) =>
      record(caller, admitted, 'close', { type: 'NativeAdminClosed', data: { ...connectionOf(admitted, connectionId), closeReason } }),

    availability: async (caller, place) => only(await availabilities(caller, [place])),
    availabilities,
  };
};
