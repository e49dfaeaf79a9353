/** The file methods of the gateway: real files of one Agent's workspace folder, read without following links and written atomically. */
import { createHash, randomUUID } from 'node:crypto';
import { constants } from 'node:fs';
import { mkdir, open, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { isText, refuse, shaped } from './protocol.ts';
import type { Answer } from './protocol.ts';

const fileNames = ['AGENTS.md', 'SOUL.md', 'IDENTITY.md', 'USER.md'];

interface FileKey {
  readonly agentId: string;
  readonly name: string;
}

interface FileWrite extends FileKey {
  readonly content: string;
  readonly expectedHash?: string;
}

/** A file as clients see it; `size` counts UTF-8 bytes, `hash` is the SHA-256 of the bytes. */
export type WorkspaceFile =
  | { readonly name: string; readonly path: string; readonly missing: true; readonly content: '' }
  | {
      readonly name: string;
      readonly path: string;
      readonly missing: false;
      readonly size: number;
      readonly updatedAtMs: number;
      readonly hash: string;
      readonly content: string;
    };

export interface WorkspaceFiles {
  readonly get: (params: unknown) => Promise<Answer>;
  readonly set: (params: unknown) => Promise<Answer>;
}

const key = { agentId: { test: isText }, name: { test: isText } };
const isHash = (value: unknown): boolean => typeof value === 'string' && /^[0-9a-f]{64}$/.test(value);

/** The file methods over one workspace folder, which is created when the first file is written. */
export const workspaceFiles = (folder: string, agentId: string): WorkspaceFiles => {
  /** Writes go one after the other, so that a compared hash still holds when the file is replaced. */
  let lastWrite: Promise<unknown> = Promise.resolve();

  const unknownTarget = (target: FileKey) => {
    if (target.agentId !== agentId) return refuse('INVALID_REQUEST', 'unknown agent id');
    return fileNames.includes(target.name) ? undefined : refuse('INVALID_REQUEST', 'unsupported file');
  };

  const write = async ({ name, content, expectedHash }: FileWrite): Promise<Answer> => {
    const current = await readWorkspaceFile(folder, name);
    const currentHash = current.missing ? null : current.hash;
    if (expectedHash !== undefined && expectedHash !== currentHash)
      return refuse('INVALID_REQUEST', 'agent file changed', { type: 'agent_file_conflict', currentHash });
    await replaceFile(folder, name, content);
    return { payload: { ok: true, agentId, workspace: folder, file: await readWorkspaceFile(folder, name) } };
  };

  return {
    get: async (params) => {
      if (!shaped<FileKey>(params, key)) return refuse('INVALID_REQUEST', 'invalid agents.files.get params');
      return unknownTarget(params) ?? { payload: { agentId, workspace: folder, file: await readWorkspaceFile(folder, params.name) } };
    },
    set: (params) => {
      const members = { ...key, content: { test: (value: unknown) => typeof value === 'string' }, expectedHash: { test: isHash, optional: true } };
      if (!shaped<FileWrite>(params, members)) return Promise.resolve(refuse('INVALID_REQUEST', 'invalid agents.files.set params'));
      const refused = unknownTarget(params);
      if (refused !== undefined) return Promise.resolve(refused);
      const written = lastWrite.then(() => write(params));
      lastWrite = written.catch(() => undefined);
      return written;
    },
  };
};

const readWorkspaceFile = async (folder: string, name: string): Promise<WorkspaceFile> => {
  const path = join(folder, name);
  try {
    const file = await open(path, constants.O_RDONLY | constants.O_NOFOLLOW);
    try {
      const [bytes, { mtimeMs }] = [await file.readFile(), await file.stat()];
      const hash = createHash('sha256').update(bytes).digest('hex');
      return { name, path, missing: false, size: bytes.length, updatedAtMs: Math.floor(mtimeMs), hash, content: bytes.toString('utf8') };
    } finally {
      await file.close();
    }
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return { name, path, missing: true, content: '' };
    throw error;
  }
};

const replaceFile = async (folder: string, name: string, content: string): Promise<void> => {
  await mkdir(folder, { recursive: true, mode: 0o700 });
  const temporary = join(folder, `.${name}.${randomUUID()}`);
  try {
    const file = await open(temporary, 'wx', 0o600);
    try {
      await file.writeFile(content, 'utf8');
      await file.sync();
    } finally {
      await file.close();
    }
    await rename(temporary, join(folder, name));
  } finally {
    await rm(temporary, { force: true });
  }
};
