-- Private rows: what may not stand in an event. A row counts only while the history names it.
create table installation (
  singleton boolean primary key default true check (singleton),
  id text not null
);

create table account (
  user_id text primary key,
  principal_id text not null unique,
  email text not null,
  name text not null,
  password_hash text not null,
  created_at timestamptz not null default clock_timestamp()
);

create index account_email on account (email);

create table service_key (
  key_id text primary key,
  service_principal_id text not null,
  -- SHA-256 of the key's secret part.
  secret_hash bytea not null,
  created_at timestamptz not null default clock_timestamp()
);
create index service_key_principal on service_key (service_principal_id);
