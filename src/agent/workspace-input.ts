/** Rules of initial workspace files that need no stored state. (agent-lifecycle 5.1 and 5.2) */
import { Refusal } from '../kernel/errors.ts';
import type { CreateAgentInput } from './input.ts';

const contentLimitBytes = 16 * 1024;

type Workspace = Pick<CreateAgentInput, 'initialWorkspaceFiles' | 'workspaceDefaultsId'>;

const filesOf = ({ initialWorkspaceFiles }: Workspace): readonly [string, string][] =>
  Object.entries(initialWorkspaceFiles ?? {}).filter((entry): entry is [string, string] => entry[1] !== undefined);

/**
 * Judged before the caller's permissions, because it reveals nothing stored. (iam-auth-audit 2.6 step 13)
 * @throws Refusal INVALID_REQUEST without details for content over 16 KiB of UTF-8 or not well-formed Unicode,
 * RESOURCE_CONFLICT for a defaults identity this Installation does not know
 */
export const assertInitialWorkspace = (workspace: Workspace): void => {
  for (const [name, content] of filesOf(workspace))
    if (!content.isWellFormed() || Buffer.byteLength(content) > contentLimitBytes)
      throw new Refusal('INVALID_REQUEST', `The content of ${name} is not well-formed Unicode of at most 16 KiB`);
  if (workspace.workspaceDefaultsId !== undefined) throw new Refusal('RESOURCE_CONFLICT', 'The workspace defaults have changed since they were read');
};

/** @throws Refusal NOT_IMPLEMENTED for files: no driver applies them yet */
export const assertNoFiles = (workspace: Workspace): void => {
  if (filesOf(workspace).length > 0) throw new Refusal('NOT_IMPLEMENTED', 'Compute cannot apply initial workspace files');
};
