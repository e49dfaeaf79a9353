/**
 * Rebuilds a read model of the same version without downtime: a shadow table fills from the first event while
 * the live one is read and fed, and takes its name in one transaction. (failure scenario 17)
 */
import { setTimeout as delay } from 'node:timers/promises';
import type { Client } from 'pg';
import type { EventStore } from '../event-store/event-store.ts';
import { Fault } from '../kernel/errors.ts';
import { openClient } from '../postgres/pool.ts';
import { applySteps, deliver, type Reader } from './consumer-batch.ts';
import { completeMember, hasPassed, loadMembers, lockNumber, recognise, type Member } from './consumer-checkpoint.ts';
import type { Consumer } from './consumer.ts';

export interface RebuildOptions extends Reader {
  readonly url: string;
  readonly store: EventStore;
  readonly consumer: Consumer;
  readonly batchLimit?: number;
}

const lockLimitMs = 30_000;
/** How often a holder of the lock is interrupted while this session stands in line. */
const interruptMs = 20;

/**
 * Takes the lock of the consumer from whoever leads it. This session stands in line first and only then interrupts the
 * holder, from a second session and until the lock is here: who tries to lead again cannot overtake a session in line.
 */
const takeLeadership = async (client: Client, url: string, number: string): Promise<void> => {
  const interrupt = `select pg_terminate_backend(pid) from pg_locks
    where locktype = 'advisory' and granted and database = (select oid from pg_database where datname = current_database())
      and objsubid = 1 and ((classid::bigint << 32) | objid::bigint) = $1::bigint
      and pid <> $2 and exists (select 1 from pg_locks as waiting where waiting.pid = $2 and not waiting.granted)`;
  const { rows } = await client.query<{ pid: number }>('select pg_backend_pid() as pid');
  await client.query(`set statement_timeout = ${lockLimitMs}`);
  const interrupter = await openClient({ url, applicationName: 'exuvia rebuild interrupter' });
  interrupter.on('error', () => {}); // the query under way, or the next one, fails with it
  try {
    const taking = client.query('select pg_advisory_lock($1::bigint)', [number]).then(() => true);
    taking.catch(() => {}); // awaited below, unless interrupting fails
    const isHeld = (): Promise<boolean> => Promise.race([taking, delay(interruptMs, false)]);
    do await interrupter.query(interrupt, [number, rows[0]?.pid]);
    while (!(await isHeld()));
  } finally {
    await interrupter.end();
  }
};

/**
 * Rebuilds one consumer's table from position zero, from any process. The live leader is interrupted for the moment of the swap.
 * @throws Fault for a consumer that keeps no table
 */
export const rebuild = async ({ url, store, consumer, batchLimit = 1_000, ...reader }: RebuildOptions): Promise<void> => {
  const { shadow } = consumer;
  if (shadow === undefined) throw new Fault(`${consumer.name} keeps no table that could be rebuilt`);
  const client = await openClient({ url, applicationName: 'exuvia rebuild' });
  client.on('error', () => {}); // the query under way, or the next one, fails with it
  const forget = async (): Promise<void> => {
    await client.query('delete from consumer_checkpoint where name = $1 and version = $2', [shadow.name, shadow.version]);
    await client.query('delete from parked_stream where name = $1 and version = $2', [shadow.name, shadow.version]);
  };

  /** Reads on to the end of the store. */
  const advance = async (member: Member): Promise<void> => {
    for (let end = false; !end; ) {
      const page = await store.readAll(member.checkpoint?.position ?? null, { streamPrefix: reader.prefix }, batchLimit);
      const last = page.events.at(-1);
      if (last !== undefined)
        await applySteps(
          client,
          reader,
          [{ member, deliveries: deliver(reader, page.events), parked: member.parked, checkpoint: { position: last.position, eventId: last.id } }],
          false,
        );
      end = page.end || last === undefined;
    }
  };

  try {
    await client.query('select pg_advisory_lock($1::bigint)', [lockNumber(reader.prefix, shadow)]);
    await shadow.discard(client);
    await forget();
    const [member] = await loadMembers(client, [shadow]);
    await advance(member!);
    await completeMember(client, member!);
    await takeLeadership(client, url, lockNumber(reader.prefix, consumer));
    const [live] = await loadMembers(client, [consumer]);
    await recognise(store, [live!.checkpoint]);
    await advance(member!);
    const { checkpoint } = member!;
    if (live!.checkpoint !== null && !hasPassed(checkpoint, live!.checkpoint.position)) throw new Fault(`The rebuild of ${consumer.name} did not reach the live checkpoint`);
    await client.query('begin');
    await shadow.takeOver(client);
    await client.query('delete from parked_stream where name = $1 and version = $2', [consumer.name, consumer.version]);
    await client.query('update parked_stream set name = $1 where name = $2 and version = $3', [consumer.name, shadow.name, shadow.version]);
    await client.query('update consumer_checkpoint set position = $3, event_id = $4 where name = $1 and version = $2', [
      consumer.name,
      consumer.version,
      checkpoint?.position,
      checkpoint?.eventId,
    ]);
    await forget();
    await client.query('commit');
  } finally {
    await client.end();
  }
};
