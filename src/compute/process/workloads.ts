/**
 * The child processes of the Agents below one root. What runs is read from disk and from the process itself on every
 * touch; memory holds only the watches. Every function but `close` is called inside the Agent's lock.
 */
import type { ChildProcess } from 'node:child_process';
import { randomBytes, randomUUID } from 'node:crypto';
import { readlink } from 'node:fs/promises';
import { join, relative } from 'node:path';
import { canonicalText } from '../../kernel/canonical.ts';
import type { RuntimeFailure } from '../driver.ts';
import { ensureDirectory, linkDurably, readRecord, readText, removeDurably, unlessMissing, writeDurably } from './disk.ts';
import { agentFolder } from './layout.ts';
import type { AgentFolder, AgentKey, AgentRecord, RuntimeRecord } from './layout.ts';
import { launchGateway, reservePort } from './launch.ts';
import type { Log } from './log.ts';
import { probeGateway } from './probe.ts';
import type { GatewayState } from './probe.ts';
import { endGroup, isAlive } from './process-identity.ts';
import { exitDetail, watchGateway } from './watch.ts';
import type { ExitDetail } from './watch.ts';

export interface WorkloadSettings {
  readonly root: string;
  readonly log: Log;
  readonly nodeBinary: string;
  readonly gatewayEntry: string;
  readonly graceMs: number;
  /** Binds the root to this host before the first child. */
  readonly claimHost: () => Promise<void>;
  /** Runs alone on an Agent; used when a child ends by itself. */
  readonly alone: (agentId: string, body: () => Promise<void>) => Promise<void>;
  readonly changed: (agent: AgentKey) => void;
}

/** What runs for an Agent: its record, and the state seen just now. */
export interface Running {
  readonly record: RuntimeRecord;
  readonly state: GatewayState;
}

export interface Workloads {
  /** What runs, adopted or restarted if need be; undefined when nothing shall run. */
  readonly look: (agent: AgentKey) => Promise<Running | undefined>;
  /** Makes this revision current and starts it. Nothing may run before. */
  readonly start: (agent: AgentKey, revisionId: string) => Promise<Running>;
  /** Unregisters and ends whatever runs, waits until it is gone, and removes its records and secrets. */
  readonly halt: (agent: AgentKey, signal?: AbortSignal) => Promise<void>;
  /** Stops watching. */
  readonly close: () => Promise<void>;
}

interface Watch {
  readonly startId: string;
  readonly child: ChildProcess | undefined;
  readonly abort: AbortController;
  readonly done: Promise<void>;
}

/** Starts in a row, the first included, before the driver gives up and holds the failure. */
const startLimit = 3;
/** A child that lived this long starts a new row. */
const stableMs = 60_000;
/** The gateway's own word that its configuration cannot run; repeating changes nothing. */
const configurationExit = 'exit-78';

export const openWorkloads = (settings: WorkloadSettings): Workloads => {
  const { root, log, graceMs } = settings;
  const watches = new Map<string, Watch>();
  let closed = false;

  const readRuntime = (folder: AgentFolder) => readRecord<RuntimeRecord>(folder.runtime);
  const writeRuntime = (folder: AgentFolder, record: RuntimeRecord) => writeDurably(folder.runtime, canonicalText(record));
  const probe = async (folder: AgentFolder, record: RuntimeRecord) => probeGateway(record, (await readText(folder.token)) ?? '');

  const watch = (agent: AgentKey, record: RuntimeRecord, child?: ChildProcess): void => {
    const { process: identity, startId, revisionId } = record;
    const earlier = watches.get(agent.agentId);
    if (closed || identity === undefined || earlier?.startId === startId) return;
    earlier?.abort.abort();
    const folder = agentFolder(root, agent);
    const facts = { ...agent, revisionId, startId, pid: identity.pid };
    const abort = new AbortController();
    const done = watchGateway(
      {
        identity,
        ...(child && { child }),
        graceMs,
        probe: () => probe(folder, record),
        onSettled: (state) => {
          log.info({ ...facts, state: state.kind }, 'gateway settled');
          settings.changed(agent);
        },
        onExit: async (detail) => {
          log.warn({ ...facts, detail }, 'gateway ended by itself');
          await settings.alone(agent.agentId, async () => {
            const found = await readRuntime(folder);
            if (!abort.signal.aborted && found?.startId === startId && found.process !== undefined) await recover(agent, found, detail);
          });
          settings.changed(agent);
        },
      },
      abort.signal,
    ).catch((error: unknown) => {
      if (abort.signal.aborted) return;
      log.error({ ...facts, err: error }, 'gateway can no longer be watched');
      settings.changed(agent);
    });
    watches.set(agent.agentId, { startId, child, abort, done });
    void done.then(() => {
      if (watches.get(agent.agentId)?.startId === startId) watches.delete(agent.agentId);
    });
  };

  /** The Agent's own port if it is free, remembered in its folder. */
  const portOf = async (folder: AgentFolder): Promise<number> => {
    const owner = await readRecord<AgentRecord>(folder.record);
    if (owner === undefined) throw new Error(`${folder.path} is not an Agent's folder`);
    const port = await reservePort(owner.port);
    if (port !== owner.port) await writeDurably(folder.record, canonicalText({ ...owner, port }));
    return port;
  };

  const freshToken = async (folder: AgentFolder): Promise<string> => {
    const token = randomBytes(32).toString('hex');
    await ensureDirectory(folder.secrets);
    await writeDurably(folder.token, token);
    return token;
  };

  const launch = async (agent: AgentKey, revisionId: string, exits: number): Promise<RuntimeRecord> => {
    const folder = agentFolder(root, agent);
    const compileCacheFolder = join(root, 'compile-cache');
    await settings.claimHost();
    await ensureDirectory(compileCacheFolder);
    const launched = await launchGateway({
      nodeBinary: settings.nodeBinary,
      gatewayEntry: settings.gatewayEntry,
      labels: [agent.agentId, revisionId],
      stateFolder: folder.state,
      logPath: folder.log,
      compileCacheFolder,
    });
    try {
      // The child boots while its settings are made; it gets them only after its record is durable.
      const [port, token] = await Promise.all([portOf(folder), freshToken(folder)]);
      const start = { revisionId, startId: randomUUID(), port, startedAt: new Date().toISOString(), exits };
      const facts = { ...agent, revisionId, startId: start.startId, port };
      if ('startError' in launched) {
        const failed = { ...start, failure: startFailure(`error-${launched.startError}`) };
        await writeRuntime(folder, failed);
        log.error({ ...facts, detail: launched.startError }, 'gateway cannot be started');
        settings.changed(agent);
        return failed;
      }
      const record = { ...start, process: launched.identity };
      await writeRuntime(folder, record);
      const documentPath = folder.revision(revisionId).document;
      launched.begin({ port, token, revisionId, startId: start.startId, documentPath, workspaceFolder: folder.workspace });
      log.info({ ...facts, pid: launched.identity.pid }, 'gateway started');
      watch(agent, record, launched.child);
      return record;
    } catch (error) {
      if (!('startError' in launched)) launched.abandon();
      throw error;
    }
  };

  /** Starts an ended child again, or gives up, or finishes a stop that was interrupted. */
  const recover = async (agent: AgentKey, record: RuntimeRecord, detail: ExitDetail): Promise<RuntimeRecord | undefined> => {
    const folder = agentFolder(root, agent);
    if ((await unlessMissing(readlink(folder.current))) !== linkTarget(folder, record.revisionId)) {
      await halt(agent);
      return undefined;
    }
    const livedMs = Date.now() - Date.parse(record.startedAt);
    const exits = livedMs < stableMs ? record.exits + 1 : 1;
    if (exits < startLimit && detail !== configurationExit) return launch(agent, record.revisionId, exits);
    const { process: _ended, ...rest } = record;
    const failed = { ...rest, exits, failure: startFailure(detail) };
    await writeRuntime(folder, failed);
    log.error({ ...agent, revisionId: record.revisionId, exits, detail }, 'gateway does not stay up');
    return failed;
  };

  const look: Workloads['look'] = async (agent) => {
    const folder = agentFolder(root, agent);
    const record = await readRuntime(folder);
    if (record === undefined) return undefined;
    if (record.process !== undefined && isAlive(record.process)) {
      const state = await probe(folder, record);
      if (state.kind !== 'foreign') {
        watch(agent, record);
        return { record, state };
      }
      await endGroup(record.process, graceMs);
    }
    const watched = watches.get(agent.agentId);
    const child = watched?.startId === record.startId ? watched.child : undefined;
    const found = record.process === undefined ? record : await recover(agent, record, await exitDetail(child));
    if (found === undefined) return undefined;
    return beginning(found);
  };

  const halt: Workloads['halt'] = async (agent, signal) => {
    const folder = agentFolder(root, agent);
    const record = await readRuntime(folder);
    watches.get(agent.agentId)?.abort.abort();
    // In this order an interrupted stop is never mistaken for a child that died.
    await removeDurably(folder.served, folder.current);
    if (record?.process !== undefined) await endGroup(record.process, graceMs, signal);
    await removeDurably(folder.secrets, folder.runtime);
    if (record !== undefined) log.info({ ...agent, revisionId: record.revisionId, startId: record.startId }, 'gateway stopped');
  };

  return {
    look,
    halt,
    start: async (agent, revisionId) => {
      const folder = agentFolder(root, agent);
      await linkDurably(folder.current, linkTarget(folder, revisionId));
      return beginning(await launch(agent, revisionId, 0));
    },
    close: async () => {
      closed = true;
      const open = [...watches.values()];
      for (const { abort } of open) abort.abort();
      await Promise.all(open.map(({ done }) => done));
    },
  };
};

/** What is known of a start without asking the child. */
const beginning = (record: RuntimeRecord): Running => ({
  record,
  state: record.failure === undefined ? { kind: 'starting' } : { kind: 'failed', failure: record.failure },
});

const linkTarget = (folder: AgentFolder, revisionId: string): string => relative(folder.path, folder.revision(revisionId).path);

const startFailure = (detail: ExitDetail): RuntimeFailure => ({
  component: 'gateway',
  check: 'process-start',
  checkedAt: new Date().toISOString(),
  code: 'UNAVAILABLE',
  ...(detail !== undefined && { cause: { kind: 'PROCESS_EXIT', detail } }),
});
