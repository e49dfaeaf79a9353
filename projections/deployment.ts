/** Read model: one row per admission with its latest evidence and its result; what is due and claimed is joined from the work table. */
import type { Pool } from 'pg';
import type { AgentEvent } from '../src/agent/messages.ts';
import type { DeploymentReads, DeploymentRecord, WorkStanding } from '../src/deployment/view.ts';
import type { Json } from '../src/kernel/canonical.ts';
import { workKey } from '../src/kernel/work.ts';
import type { Change, Projection } from '../src/runtime/projection.ts';
import { reader } from './reading.ts';

interface DeploymentRow {
  /** The admission is known by its work key: evidence names nothing else. */
  readonly work_key: string;
  readonly revision_id: string;
  readonly namespace_id: string;
  readonly agent_id: string;
  readonly number: number;
  readonly created_at: string;
  readonly result_code: string | null;
  readonly result_data: string | null;
  readonly warnings: string | null;
  readonly attempt_at: string | null;
  readonly attempt_code: string | null;
  readonly attempt_refusal: string | null;
}

/** Evidence of other work patches no row. */
const evidence = ({ data, envelope }: { data: { workKey: string; code: string; refusal?: string }; envelope: { occurredAt: string } }) => [
  { patch: data.workKey, set: { attempt_at: envelope.occurredAt, attempt_code: data.code, attempt_refusal: data.refusal ?? null } },
];

const ended = (revisionId: string, code: string, more: Partial<DeploymentRow> = {}): readonly Change<DeploymentRow>[] => [
  { patch: workKey.deployment(revisionId), set: { result_code: code, ...more } },
];

export const deploymentProjection: Projection<AgentEvent, DeploymentRow> = {
  name: 'deployment',
  version: 1,
  streams: ['agent'],
  table: {
    key: 'work_key',
    columns: {
      work_key: 'text',
      revision_id: 'text',
      namespace_id: 'text',
      agent_id: 'text',
      number: 'integer',
      created_at: 'text',
      result_code: 'text',
      result_data: 'text',
      warnings: 'text',
      attempt_at: 'text',
      attempt_code: 'text',
      attempt_refusal: 'text',
    },
    indexes: [{ on: ['revision_id'], unique: true }, { on: ['agent_id', 'number'] }],
  },
  on: {
    AgentRevisionAdmitted: ({ data, envelope }) => [
      {
        upsert: {
          work_key: workKey.deployment(data.revisionId),
          revision_id: data.revisionId,
          namespace_id: data.namespaceId,
          agent_id: data.agentId,
          number: data.number,
          created_at: envelope.occurredAt,
        },
      },
    ],
    WorkDeferred: evidence,
    WorkRetryScheduled: evidence,
    WorkClaimExpired: evidence,
    DeploymentActivated: ({ data }) => ended(data.revisionId, data.code, { warnings: JSON.stringify(data.warnings) }),
    DeploymentSuperseded: ({ data }) => ended(data.revisionId, 'REVISION_SUPERSEDED'),
    DeploymentStopped: ({ data }) => ended(data.revisionId, 'REVISION_STOPPED'),
    DeploymentFailed: ({ data }) => ended(data.revisionId, data.code, { result_data: data.data === undefined ? null : JSON.stringify(data.data) }),
    AgentRemoved: ({ data }) => [{ removeWhere: { agent_id: data.agentId } }],
  },
};

interface StandingColumns {
  readonly live: boolean | null;
  readonly state: WorkStanding['state'] | null;
  readonly available_at: Date | null;
}

const standing = ({ live, state, available_at }: StandingColumns): WorkStanding | null =>
  state === null || available_at === null ? null : { live: live === true, state, availableAt: available_at.toISOString() };

type Warnings = NonNullable<DeploymentRecord['result']>['warnings'];

const record = (row: DeploymentRow): DeploymentRecord => ({
  revisionId: row.revision_id,
  namespaceId: row.namespace_id,
  agentId: row.agent_id,
  createdAt: row.created_at,
  result:
    row.result_code === null
      ? null
      : {
          code: row.result_code,
          data: row.result_data === null ? null : (JSON.parse(row.result_data) as Json),
          warnings: row.warnings === null ? [] : (JSON.parse(row.warnings) as Warnings),
        },
  lastAttempt: row.attempt_at === null || row.attempt_code === null ? null : { at: row.attempt_at, code: row.attempt_code, refusal: row.attempt_refusal },
});

const standingColumns = `work.state, work.available_at, work.state = 'claimed' and work.lease_expires_at > clock_timestamp() as live`;
const withWork = `select deployment.*, ${standingColumns} from deployment_v1 as deployment left join work_item as work on work.key = deployment.work_key`;

export const deploymentReads = (pool: Pool): DeploymentReads => {
  const read = reader(pool, deploymentProjection, (row: DeploymentRow & StandingColumns) => ({ record: record(row), work: standing(row) }));
  return {
    byIds: (revisionIds) => read({ name: 'by_ids', select: `${withWork} where deployment.revision_id = any($1)`, order: 'agent_id, number' }, [revisionIds]),
    latestOfAgents: (agentIds) =>
      read(
        {
          name: 'latest_of_agents',
          select: `
            select latest.* from unnest($1::text[]) as wanted (agent_id)
             cross join lateral (${withWork} where deployment.agent_id = wanted.agent_id order by deployment.number desc limit 1) as latest`,
          order: 'agent_id',
        },
        [agentIds],
      ),
    standings: async (workKeys) => {
      const { rows } = await pool.query<StandingColumns & { readonly key: string }>({
        name: 'deployment.standings',
        text: `select work.key, ${standingColumns} from work_item as work where work.key = any($1)`,
        values: [workKeys],
      });
      return new Map(rows.flatMap((row) => {
        const found = standing(row);
        return found === null ? [] : [[row.key, found] as const];
      }));
    },
  };
};
