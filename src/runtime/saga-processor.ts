/**
 * The saga processor: makes a consumer of sagas, whose commands become rows of the work table in the transaction
 * that moves its checkpoint. Each row remembers the revision of the last event applied to it, so that
 * deriving again after a checkpoint went back changes nothing. (failure scenarios 31 and 33)
 */
import type { ClientBase } from 'pg';
import { canonicalText } from '../kernel/canonical.ts';
import type { Consumer, ConsumerId, Delivered } from './consumer.ts';
import type { Saga, SagaCommand, Work } from './saga.ts';
import { workChannel } from './work-queue.ts';

/** What the commands of a batch make of one item. */
interface ItemChange {
  readonly work?: Work;
  readonly createdAt?: string;
  readonly actor?: string;
  /** Undefined: as the row has it. */
  readonly state?: 'queued' | 'succeeded' | 'failed_permanent';
  readonly code?: string | undefined;
  readonly completedAt?: string | undefined;
  readonly isRestarted?: boolean;
  readonly attempts?: number;
  /** Of the last event applied. */
  readonly revision: number;
}

type ItemCommand = Exclude<SagaCommand, { readonly type: 'RemoveLaneWork' }>;

const changed = (before: Partial<ItemChange>, command: ItemCommand, revision: number, occurredAt: string): ItemChange => {
  switch (command.type) {
    case 'EnqueueWork':
      return { createdAt: occurredAt, ...before, work: command.work, actor: canonicalText(command.work.actor), revision };
    case 'RequeueWork':
      return { ...before, state: 'queued', actor: canonicalText(command.actor), code: undefined, completedAt: undefined, isRestarted: true, attempts: 0, revision };
    case 'CloseWork':
      return { ...before, state: command.state, code: command.code, completedAt: occurredAt, revision };
    case 'CountAttempts':
      return { ...before, attempts: Math.max(before.attempts ?? 0, command.attempts), revision };
  }
};

/** Ends claims, keeps what is undefined, and never applies an event twice. */
const writeItems = `
  with change as (
    select * from unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[], $6::text[], $7::text[], $8::text[], $9::text[],
                         $10::text[], $11::timestamptz[], $12::timestamptz[], $13::boolean[], $14::integer[], $15::bigint[]) as change (
      key, lane, kind, namespace_id, agent_id, revision_id, operation_id, actor, state,
      reason_code, created_at, completed_at, restarted, attempts, stream_revision)),
  updated as (
    update work_item as item
       set state = coalesce(change.state, item.state), stream_revision = change.stream_revision, actor = coalesce(change.actor, item.actor),
           attempt_count = case when change.restarted then change.attempts else greatest(item.attempt_count, coalesce(change.attempts, 0)) end,
           claim_token = case when change.state is null then item.claim_token end,
           lease_expires_at = case when change.state is null then item.lease_expires_at end,
           reason_code = case when change.state is null then item.reason_code else change.reason_code end,
           completed_at = case when change.state is null then item.completed_at else change.completed_at end,
           available_at = case when change.state = 'queued' then clock_timestamp() else item.available_at end, updated_at = clock_timestamp()
      from change where item.key = change.key and item.stream_revision < change.stream_revision
    returning item.state),
  inserted as (
    insert into work_item (key, lane, kind, namespace_id, agent_id, revision_id, operation_id, actor, state, available_at,
                           attempt_count, reason_code, created_at, updated_at, completed_at, stream_revision)
    select key, lane, kind, namespace_id, agent_id, revision_id, operation_id, actor, coalesce(state, 'queued'), clock_timestamp(),
           coalesce(attempts, 0), reason_code, created_at, clock_timestamp(), completed_at, stream_revision
      from change where kind is not null
    on conflict (key) do nothing
    returning state)
  select pg_notify('${workChannel}', '') from (select state from updated union all select state from inserted) as written where state = 'queued' limit 1`;

const removeLanes = `
  delete from work_item using json_to_recordset($1::json) as ended (lane text, keep text, stream_revision bigint)
   where work_item.lane = ended.lane and work_item.key is distinct from ended.keep and work_item.stream_revision <= ended.stream_revision`;

const begin = () => {
  const items = new Map<string, ItemChange>();
  const lanes = new Map<string, { readonly keep: string | undefined; readonly revision: number }>();
  return {
    add: (command: SagaCommand, revision: number, occurredAt: string): void => {
      if (command.type === 'RemoveLaneWork') {
        lanes.set(command.lane, { keep: command.keep, revision });
        for (const [key, { work }] of items) if (work?.lane === command.lane && key !== command.keep) items.delete(key);
        return;
      }
      const key = command.type === 'EnqueueWork' ? command.work.key : command.key;
      items.set(key, changed(items.get(key) ?? {}, command, revision, occurredAt));
    },
    write: async (client: ClientBase): Promise<void> => {
      if (items.size > 0) {
        const changes = [...items.values()];
        const values = [
          [...items.keys()],
          changes.map(({ work }) => work?.lane),
          changes.map(({ work }) => work?.kind),
          changes.map(({ work }) => work?.namespaceId),
          changes.map(({ work }) => work?.agentId),
          changes.map(({ work }) => work?.revisionId),
          changes.map(({ work }) => work?.operationId),
          changes.map(({ actor }) => actor),
          changes.map(({ state }) => state),
          changes.map(({ code }) => code),
          changes.map(({ createdAt }) => createdAt),
          changes.map(({ completedAt }) => completedAt),
          changes.map(({ isRestarted }) => isRestarted ?? false),
          changes.map(({ attempts }) => attempts),
          changes.map(({ revision }) => revision),
        ];
        await client.query({ name: 'saga_write_items', text: writeItems, values });
      }
      if (lanes.size > 0) {
        const rows = [...lanes].map(([lane, { keep, revision }]) => ({ lane, keep, stream_revision: revision }));
        await client.query({ name: 'saga_remove_lanes', text: removeLanes, values: [JSON.stringify(rows)] });
      }
    },
  };
};

// eslint-disable-next-line @typescript-eslint/no-explicit-any -- a list of sagas holds many event types
type AnySaga = Saga<any>;

type AnyHandlers = Readonly<Record<string, ((delivered: Delivered) => readonly SagaCommand[]) | undefined>>;

/** The consumer that applies the commands of sagas to the work table. */
export const sagaProcessor = ({ sagas, ...id }: ConsumerId & { readonly sagas: readonly AnySaga[] }): Consumer => ({
  ...id,
  role: 'saga',
  streams: new Set(sagas.map(({ stream }) => stream)),
  handles: (type) => sagas.some(({ on }) => type in on),
  prepare: async () => {},
  begin: () => {
    const changes = begin();
    return {
      add: (delivered) => {
        const { revision, occurredAt } = delivered.envelope;
        for (const { stream, on } of sagas) {
          if (stream !== delivered.kind) continue;
          for (const command of (on as AnyHandlers)[delivered.type]?.(delivered) ?? []) changes.add(command, revision, occurredAt);
        }
      },
      write: changes.write,
    };
  },
});
