/** The history as the event table holds it, for proofs that no answer of ours could fake. */
import type pg from 'pg';
import { expect } from 'vitest';
import { hashOf, type EventBytes, type Metadata } from '../../src/kernel/event.ts';

export interface Stored extends EventBytes {
  readonly stream: string;
  readonly revision: number;
}

export const storedEvents = async (pool: pg.Pool): Promise<readonly Stored[]> =>
  (await pool.query<Stored>('select stream, revision, id, type, data, metadata from event order by position')).rows;

export const metadataOf = ({ metadata }: Stored): Metadata => JSON.parse(metadata) as Metadata;

/** Events of the one stream whose name ends so, in order. */
export const eventsOf = async (pool: pg.Pool, stream: string): Promise<readonly Stored[]> =>
  (await storedEvents(pool)).filter((event) => event.stream.endsWith(`.${stream}`));

/** Every event of every stream carries the hash of the one before it, from the first on and without a gap. */
export const expectUnbrokenChains = async (pool: pg.Pool): Promise<void> => {
  const last = new Map<string, Stored>();
  for (const event of await storedEvents(pool)) {
    const before = last.get(event.stream);
    expect({ stream: event.stream, revision: event.revision, previousHash: metadataOf(event).previousHash }).toEqual({
      stream: event.stream,
      revision: before === undefined ? 0 : before.revision + 1,
      previousHash: before === undefined ? null : hashOf(before.stream, before.revision, before),
    });
    last.set(event.stream, event);
  }
};

const closing = new Set([
  'DeploymentActivated',
  'DeploymentSuperseded',
  'DeploymentStopped',
  'DeploymentFailed',
  'AgentStopped',
  'AgentStopSuperseded',
  'AgentStopFailed',
  'AgentTeardownFinished',
  'AgentTeardownFailed',
]);

/** The types of the events that closed each work item of an Agent, by work key. */
export const closingsOf = async (pool: pg.Pool, agentId: string): Promise<Readonly<Record<string, readonly string[]>>> => {
  const found: Record<string, string[]> = {};
  for (const event of await eventsOf(pool, `agent-${agentId}`)) {
    const { work } = metadataOf(event);
    if (work !== undefined && closing.has(event.type)) (found[work.key] ??= []).push(event.type);
  }
  return found;
};
