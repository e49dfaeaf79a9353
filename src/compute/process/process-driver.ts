/** The embedded default Compute driver: one child process per Agent on this host, running a gateway over real files. (compute-drivers 14) */
import { fileURLToPath } from 'node:url';
import { canonicalText } from '../../kernel/canonical.ts';
import { ActivationPending } from '../driver.ts';
import type { AgentIdentity, ComputeDriver, Observation, RevisionSnapshot } from '../driver.ts';
import { processAdmission } from './admission.ts';
import { diagnoseGateway } from './diagnose.ts';
import { OwnershipConflict, readRecord, removeDurably, writeDurably } from './disk.ts';
import { openFences } from './fence.ts';
import { hostIdentity, openRoot } from './host.ts';
import { agentFolder, emptyNamespaceFolder, ensureAgentFolder, ensureNamespaceFolder, keepSnapshot, listAgents, servingGateway } from './layout.ts';
import type { AgentKey, RuntimeRecord } from './layout.ts';
import type { Log } from './log.ts';
import { openWorkloads } from './workloads.ts';
import type { Running } from './workloads.ts';

export interface ProcessDriverOptions {
  /** Absolute path of a folder of this driver's own; made with mode 0700. */
  readonly root: string;
  readonly log: Log;
  /** The Node that runs gateways; by default the one running now. */
  readonly nodeBinary?: string;
  /** The program of a gateway; by default Exuvia's own. */
  readonly gatewayEntry?: string;
  /** Time between SIGTERM and SIGKILL. */
  readonly graceMs?: number;
  /** Identity of this host; by default read from the operating system. */
  readonly host?: string;
}

const defaultGraceMs = 5_000;
const defaultGatewayEntry = fileURLToPath(new URL('../../gateway/main.ts', import.meta.url));

/**
 * Opens the driver on its root and begins to watch the children an earlier control plane left there.
 *
 * Calls that want something gone (stop, retire, delete, and the bind before them) succeed on an Agent that was
 * deleted, so that a teardown can be repeated; calls that would make something are refused with `FencedOff`.
 * @throws Error with one sentence when the root belongs to another host (failure scenario 37)
 */
export const createProcessDriver = (options: ProcessDriverOptions): ComputeDriver => {
  const { root, log } = options;
  const claimHost = openRoot(root, options.host ?? hostIdentity());
  const fences = openFences(root);
  const listeners = new Set<(agent: AgentKey) => void>();
  const closing = new AbortController();

  const workloads = openWorkloads({
    root,
    log,
    nodeBinary: options.nodeBinary ?? process.execPath,
    gatewayEntry: options.gatewayEntry ?? defaultGatewayEntry,
    graceMs: options.graceMs ?? defaultGraceMs,
    claimHost,
    alone: (agentId, body) => fences.alone(agentId, body, closing.signal),
    changed: ({ namespaceId, agentId }) => listeners.forEach((listener) => listener({ namespaceId, agentId })),
  });

  const servedRevision = async (agent: AgentKey): Promise<string | undefined> =>
    (await readRecord<{ readonly revisionId: string }>(agentFolder(root, agent).served))?.revisionId;

  const runsHere = (revision: RevisionSnapshot): boolean =>
    revision.compute.id === processAdmission.id && revision.compute.implementation === processAdmission.implementation;

  const requireRunsHere = (revision: RevisionSnapshot): void => {
    if (!runsHere(revision)) throw new OwnershipConflict(`Revision ${revision.revisionId} is pinned to another Compute driver`);
  };

  /** Ends what runs and starts this revision in its place. */
  const replace = async (running: Running | undefined, revision: RevisionSnapshot, signal: AbortSignal): Promise<Running> => {
    if (running !== undefined) await workloads.halt(keyOf(revision), signal);
    signal.throwIfAborted();
    return workloads.start(keyOf(revision), revision.revisionId);
  };

  /** A living child of a later revision: an earlier one waits for what becomes of it, or the two would end each other for ever. */
  const laterLives = async (running: Running | undefined, revision: RevisionSnapshot): Promise<boolean> => {
    if (running === undefined || running.state.kind === 'failed') return false;
    const other = await readRecord<RevisionSnapshot>(agentFolder(root, revision).revision(running.record.revisionId).snapshot);
    return other !== undefined && other.number > revision.number;
  };

  const stop = async (revision: RevisionSnapshot, signal: AbortSignal): Promise<void> => {
    const record = await readRecord<RuntimeRecord>(agentFolder(root, revision).runtime);
    if (record?.revisionId === revision.revisionId) await workloads.halt(keyOf(revision), signal);
  };

  const adoptChildren = async (): Promise<void> => {
    for (const agent of await listAgents(root)) {
      if (closing.signal.aborted) return;
      await fences
        .alone(agent.agentId, () => workloads.look(keyOf(agent)), closing.signal)
        .catch((error: unknown) => closing.signal.aborted || log.error({ ...keyOf(agent), err: error }, 'gateway cannot be adopted'));
    }
  };
  const adopting = adoptChildren().catch((error: unknown) => log.error({ err: error }, 'the driver cannot list its Agents'));

  return {
    ...processAdmission,

    ensureNamespace: async (namespaceId, { signal }) => {
      signal.throwIfAborted();
      try {
        await ensureNamespaceFolder(root, namespaceId);
        return { namespaceId, done: true };
      } catch (error) {
        if (!(error instanceof OwnershipConflict)) throw error;
        log.error({ namespaceId, err: error }, 'the folder of a Namespace belongs to another');
        return { namespaceId, done: false, failure: 'permanent' };
      }
    },

    deleteNamespace: async (namespaceId, { signal }) => {
      signal.throwIfAborted();
      const folder = await emptyNamespaceFolder(root, namespaceId);
      if (folder === undefined) return { namespaceId, done: false, failure: 'retryable' };
      await removeDurably(folder);
      return { namespaceId, done: true };
    },

    bindAgent: (agent, effect) =>
      fences.fenced(agent.agentId, effect, async () => void (await ensureAgentFolder(root, agent)), () => Promise.resolve()),

    prepareRevision: (revision, effect) =>
      fences.fenced(revision.agentId, effect, async () => {
        if (!runsHere(revision)) return observed(revision, { ready: false });
        const agent = keyOf(revision);
        await keepSnapshot(await ensureAgentFolder(root, revision), revision);
        const running = await workloads.look(agent);
        if (running?.record.revisionId === revision.revisionId) return observed(revision, readinessOf(running));
        const predecessorServes =
          running !== undefined && running.state.kind !== 'failed' && running.record.revisionId === (await servedRevision(agent));
        if (predecessorServes) return observed(revision, { ready: true });
        if (await laterLives(running, revision)) return observed(revision, { ready: false });
        return observed(revision, readinessOf(await replace(running, revision, effect.signal)));
      }),

    activateRevision: (revision, effect) =>
      fences.fenced(revision.agentId, effect, async () => {
        requireRunsHere(revision);
        const agent = keyOf(revision);
        const folder = await ensureAgentFolder(root, revision);
        await keepSnapshot(folder, revision);
        const running = await workloads.look(agent);
        if (running?.record.revisionId !== revision.revisionId) {
          if (!(await laterLives(running, revision))) await replace(running, revision, effect.signal);
          throw new ActivationPending();
        }
        // A failure held here is reported by the next prepare; activation itself has no evidence to give.
        if (running.state.kind !== 'ready') throw new ActivationPending();
        if ((await servedRevision(agent)) !== revision.revisionId)
          await writeDurably(folder.served, canonicalText({ revisionId: revision.revisionId }));
      }),

    stopRevision: (revision, effect) =>
      fences.fenced(
        revision.agentId,
        effect,
        () => {
          requireRunsHere(revision);
          return stop(revision, effect.signal);
        },
        () => Promise.resolve(),
      ),

    retireRevision: (revision, effect) =>
      fences.fenced(
        revision.agentId,
        effect,
        async () => {
          requireRunsHere(revision);
          await stop(revision, effect.signal);
          await removeDurably(agentFolder(root, revision).revision(revision.revisionId).path);
        },
        () => Promise.resolve(),
      ),

    deleteAgent: (agent, effect) => {
      const remove = async () => {
        await workloads.halt(keyOf(agent), effect.signal);
        await fences.remove(agent.agentId);
        await removeDurably(agentFolder(root, agent).path);
      };
      return fences.fenced(agent.agentId, effect, remove, remove);
    },

    diagnoseRevision: async (revision, { signal }) => {
      signal.throwIfAborted();
      requireRunsHere(revision);
      return diagnoseGateway(agentFolder(root, revision), revision.revisionId);
    },

    gatewayEndpoint: (agent) => {
      const gateway = servingGateway(agentFolder(root, agent));
      return gateway && { url: `ws://127.0.0.1:${gateway.port}`, token: gateway.token };
    },

    ownedAgents: async () => (await listAgents(root)).map(keyOf),

    onChange: (listener) => {
      listeners.add(listener);
      return () => void listeners.delete(listener);
    },

    close: async ({ stopWorkloads }) => {
      closing.abort();
      await Promise.all([workloads.close(), adopting]);
      if (!stopWorkloads) return;
      const agents = await listAgents(root);
      await Promise.all(agents.map((agent) => fences.alone(agent.agentId, () => workloads.halt(keyOf(agent)))));
    },
  };
};

const keyOf = ({ namespaceId, agentId }: AgentIdentity | AgentKey): AgentKey => ({ namespaceId, agentId });

const observed = (revision: RevisionSnapshot, seen: Pick<Observation, 'ready' | 'runtimeFailure'>): Observation => ({
  namespaceId: revision.namespaceId,
  agentId: revision.agentId,
  revisionId: revision.revisionId,
  ...seen,
});

const readinessOf = ({ state }: Running): Pick<Observation, 'ready' | 'runtimeFailure'> =>
  state.kind === 'failed' ? { ready: false, runtimeFailure: state.failure } : { ready: state.kind === 'ready' };
