-- Work items and the places of the event consumers. Terminal truth is in the events; these rows say what is due,
-- who holds it and until when, by this server's clock.
create table work_item (
  key text primary key,
  -- The Agent's or the Namespace's id: one live claim per lane.
  lane text not null,
  kind text not null check (kind in ('deployment', 'stop', 'deletion', 'maintenance', 'namespace-ready', 'namespace-deletion')),
  namespace_id text not null,
  agent_id text,
  revision_id text,
  operation_id text,
  -- Canonical JSON of the actor the work is done for.
  actor text not null,
  state text not null check (state in ('queued', 'claimed', 'succeeded', 'failed_permanent')),
  available_at timestamptz not null,
  -- Counted claims; a deferred pass gives its attempt back.
  attempt_count integer not null default 0,
  claim_token uuid,
  lease_expires_at timestamptz,
  reason_code text,
  created_at timestamptz not null,
  updated_at timestamptz not null,
  completed_at timestamptz,
  -- Revision, in the lane's stream, of the last event applied to this row; older events change nothing.
  stream_revision bigint not null,
  check ((state = 'claimed') = (claim_token is not null and lease_expires_at is not null))
);
create unique index work_item_one_claim_per_lane on work_item (lane) where state = 'claimed';
create index work_item_due on work_item (available_at, created_at, key) where state = 'queued';
create index work_item_claims on work_item (lease_expires_at) where state = 'claimed';
create index work_item_agent on work_item (agent_id);

create table consumer_checkpoint (
  name text not null,
  version integer not null,
  -- The last event applied: its place, and its id by which the place is recognised again.
  position text collate "C",
  event_id uuid,
  -- When the consumer last stood at the end of the store.
  caught_up_at timestamptz,
  updated_at timestamptz not null default clock_timestamp(),
  primary key (name, version)
);

-- A stream a consumer could not read or apply; its later events wait behind the first, in order.
create table parked_stream (
  name text not null,
  version integer not null,
  stream text not null,
  revision bigint not null,
  reason text not null,
  parked_at timestamptz not null default clock_timestamp(),
  primary key (name, version, stream)
);
