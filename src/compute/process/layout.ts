/** Where the process driver keeps what below its root, and the records it writes there. (compute-drivers 14.2) */
import { readFileSync } from 'node:fs';
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { canonicalText, sha256 } from '../../kernel/canonical.ts';
import type { AgentIdentity, RevisionSnapshot, RuntimeFailure } from '../driver.ts';
import { ensureDirectory, OwnershipConflict, readRecord, readText, unlessMissing, writeDurably } from './disk.ts';
import type { ProcessIdentity } from './process-identity.ts';

/** First 12 hex characters of SHA-256: short folder names that derive from our ids. */
export const h12 = (id: string): string => sha256(id).slice(0, 12);

export type AgentKey = Pick<AgentIdentity, 'namespaceId' | 'agentId'>;

/** `agent.json`: whose folder this is, and the port its gateway used last. */
export interface AgentRecord extends AgentIdentity {
  readonly port?: number;
}

/** `runtime.json`: the child that was started last. Removed when it is stopped on purpose. */
export interface RuntimeRecord {
  readonly revisionId: string;
  readonly startId: string;
  readonly port: number;
  /** RFC 3339. */
  readonly startedAt: string;
  /** Starts in a row that ended by themselves before this one. */
  readonly exits: number;
  /** Absent once the driver has given up restarting; `failure` then says why. */
  readonly process?: ProcessIdentity;
  readonly failure?: RuntimeFailure;
}

export interface AgentFolder {
  readonly path: string;
  readonly record: string;
  readonly state: string;
  readonly workspace: string;
  readonly secrets: string;
  readonly token: string;
  readonly log: string;
  /** Link to the revision that is started and restarted; its absence means that nothing shall run. */
  readonly current: string;
  readonly served: string;
  readonly runtime: string;
  readonly revision: (revisionId: string) => { readonly path: string; readonly document: string; readonly snapshot: string };
}

const namespaceFolder = (root: string, namespaceId: string): string => join(root, 'namespaces', h12(namespaceId));

export const agentFolder = (root: string, { namespaceId, agentId }: AgentKey): AgentFolder => {
  const path = join(namespaceFolder(root, namespaceId), 'agents', h12(agentId));
  const secrets = join(path, 'secrets');
  return {
    path,
    record: join(path, 'agent.json'),
    state: join(path, 'state'),
    workspace: join(path, 'workspace'),
    secrets,
    token: join(secrets, 'gateway-token'),
    log: join(path, 'gateway.log'),
    current: join(path, 'current'),
    served: join(path, 'served.json'),
    runtime: join(path, 'runtime.json'),
    revision: (revisionId) => {
      const folder = join(path, 'revisions', h12(revisionId));
      return { path: folder, document: join(folder, 'openclaw.json'), snapshot: join(folder, 'revision.json') };
    },
  };
};

/** Makes or recognises the folder of a Namespace. @throws OwnershipConflict */
export const ensureNamespaceFolder = async (root: string, namespaceId: string): Promise<void> => {
  const folder = namespaceFolder(root, namespaceId);
  await ensureDirectory(join(folder, 'agents'));
  await keepText(join(folder, 'namespace.json'), canonicalText({ namespaceId }));
};

/** The Namespace's folder when it may be removed; undefined when it still holds Agents. */
export const emptyNamespaceFolder = async (root: string, namespaceId: string): Promise<string | undefined> => {
  const folder = namespaceFolder(root, namespaceId);
  const agents = (await unlessMissing(readdir(join(folder, 'agents')))) ?? [];
  return agents.length === 0 ? folder : undefined;
};

/** Makes or recognises the folder of an Agent in a Namespace that was prepared before. @throws OwnershipConflict */
export const ensureAgentFolder = async (root: string, agent: AgentIdentity): Promise<AgentFolder> => {
  const { namespaceId, agentId, servicePrincipalId } = agent;
  const marker = await readText(join(namespaceFolder(root, namespaceId), 'namespace.json'));
  if (marker === undefined) throw new Error(`Namespace ${namespaceId} has not been prepared on this host`);
  if (marker !== canonicalText({ namespaceId })) throw new OwnershipConflict(`The folder of ${namespaceId} names another Namespace`);

  const folder = agentFolder(root, agent);
  const found = await readRecord<AgentRecord>(folder.record);
  if (found === undefined) {
    for (const path of [folder.path, folder.state, folder.workspace]) await ensureDirectory(path);
    await writeDurably(folder.record, canonicalText({ namespaceId, agentId, servicePrincipalId }));
  } else if (found.namespaceId !== namespaceId || found.agentId !== agentId || found.servicePrincipalId !== servicePrincipalId) {
    throw new OwnershipConflict(`The folder of ${agentId} names another Agent`);
  }
  return folder;
};

/** Writes the immutable snapshot of a revision, or checks that it is still the same. @throws OwnershipConflict */
export const keepSnapshot = async (folder: AgentFolder, revision: RevisionSnapshot): Promise<void> => {
  const { path, document, snapshot } = folder.revision(revision.revisionId);
  await ensureDirectory(path);
  await keepText(document, canonicalText(revision.configuration));
  await keepText(snapshot, canonicalText({ ...revision, configuration: undefined }));
};

/** The Agents that own a folder below this root. */
export const listAgents = async (root: string): Promise<readonly AgentRecord[]> => {
  const list = async (path: string) => (await unlessMissing(readdir(path))) ?? [];
  const found: AgentRecord[] = [];
  for (const namespace of await list(join(root, 'namespaces')))
    for (const agent of await list(join(root, 'namespaces', namespace, 'agents'))) {
      const record = await readRecord<AgentRecord>(join(root, 'namespaces', namespace, 'agents', agent, 'agent.json'));
      if (record !== undefined) found.push(record);
    }
  return found;
};

/** Port and token of the gateway that is registered as serving; undefined when none is. */
export const servingGateway = (folder: AgentFolder): { readonly port: number; readonly token: string } | undefined => {
  try {
    const served = JSON.parse(readFileSync(folder.served, 'utf8')) as { readonly revisionId: string };
    const { revisionId, port, process } = JSON.parse(readFileSync(folder.runtime, 'utf8')) as RuntimeRecord;
    if (process === undefined || served.revisionId !== revisionId) return undefined;
    return { port, token: readFileSync(folder.token, 'utf8') };
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw error;
  }
};

const keepText = async (path: string, text: string): Promise<void> => {
  const found = await readText(path);
  if (found === undefined) await writeDurably(path, text);
  else if (found !== text) throw new OwnershipConflict(`${path} was changed`);
};
