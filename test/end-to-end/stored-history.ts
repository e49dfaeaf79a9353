/** The history as the event store holds it, for proofs that no answer of ours could fake. */
import type pg from 'pg';
import { expect } from 'vitest';
import { hashOf, type EventBytes, type Metadata } from '../../src/kernel/event.ts';

export interface Stored extends EventBytes {
  readonly stream: string;
  readonly revision: number;
}

/** Where a history is: in the event table of a database, or wherever this reads it. */
export type History = pg.Pool | (() => Promise<readonly Stored[]>);

export const storedEvents = async (history: History): Promise<readonly Stored[]> =>
  typeof history === 'function' ? history() : (await history.query<Stored>('select stream, revision, id, type, data, metadata from event order by position')).rows;

export const metadataOf = ({ metadata }: Stored): Metadata => JSON.parse(metadata) as Metadata;

/** Events of the one stream whose name ends so, in order. */
export const eventsOf = async (history: History, stream: string): Promise<readonly Stored[]> =>
  (await storedEvents(history)).filter((event) => event.stream.endsWith(`.${stream}`));

/** Every event of every stream carries the hash of the one before it, from the first on and without a gap. */
export const expectUnbrokenChains = async (history: History): Promise<void> => {
  const last = new Map<string, Stored>();
  for (const event of await storedEvents(history)) {
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
export const closingsOf = async (history: History, agentId: string): Promise<Readonly<Record<string, readonly string[]>>> => {
  const found: Record<string, string[]> = {};
  for (const event of await eventsOf(history, `agent-${agentId}`)) {
    const { work } = metadataOf(event);
    if (work !== undefined && closing.has(event.type)) (found[work.key] ??= []).push(event.type);
  }
  return found;
};
