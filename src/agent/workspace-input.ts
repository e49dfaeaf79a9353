/** Rules of initial workspace files that need no stored state. (agent-lifecycle 5.1 and 5.2) */
import { Refusal } from '../kernel/errors.ts';
import type { CreateAgentInput } from './input.ts';

const contentLimitBytes = 16 * 1024;

/**
 * @throws Refusal INVALID_REQUEST without details for content over 16 KiB of UTF-8 or not well-formed Unicode,
 * RESOURCE_CONFLICT for a defaults identity this Installation does not know, NOT_IMPLEMENTED for files: no driver applies them yet
 */
export const assertInitialWorkspace = ({ initialWorkspaceFiles, workspaceDefaultsId }: CreateAgentInput): void => {
  const files = Object.entries(initialWorkspaceFiles ?? {}).filter((entry): entry is [string, string] => entry[1] !== undefined);
  for (const [name, content] of files)
    if (!content.isWellFormed() || Buffer.byteLength(content) > contentLimitBytes)
      throw new Refusal('INVALID_REQUEST', `The content of ${name} is not well-formed Unicode of at most 16 KiB`);
  if (workspaceDefaultsId !== undefined) throw new Refusal('RESOURCE_CONFLICT', 'The workspace defaults have changed since they were read');
  if (files.length > 0) throw new Refusal('NOT_IMPLEMENTED', 'Compute cannot apply initial workspace files');
};
