-- Which server the database lives on and how often a standby has taken its place: the cluster's identifier and its
-- timeline, which every promotion and every recovery to a point in time raises. Asynchronous replication loses the last
-- seconds then, and with them the end of a session. (failure scenario 9)
create function database_incarnation() returns text language sql volatile as $$
  select system_identifier || '.' || substr(pg_walfile_name(pg_current_wal_flush_lsn()), 1, 8) from pg_control_system()
$$;

-- Where the sessions were compared with the history last; elsewhere none opens anything.
alter table store_identity add column incarnation text;
update store_identity set incarnation = database_incarnation();

-- The password a row holds, as the history names it; null for the first one of an account.
alter table account add column password_id text;
alter table session add column password_id text;
