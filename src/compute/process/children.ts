/** What runs below a root, read from disk and from the operating system without touching it. */
import { readRecord } from './disk.ts';
import { agentFolder, listAgents, type RuntimeRecord } from './layout.ts';
import { isAlive } from './process-identity.ts';

/** Ids of the Agents that have a living child. */
export const listChildren = async (root: string): Promise<readonly string[]> => {
  const running: string[] = [];
  for (const agent of await listAgents(root)) {
    const record = await readRecord<RuntimeRecord>(agentFolder(root, agent).runtime);
    if (record?.process !== undefined && isAlive(record.process)) running.push(agent.agentId);
  }
  return running;
};
