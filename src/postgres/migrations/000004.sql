-- Which event store this database has followed, and how often it was opened. The history counts as well, and a
-- database that knows a smaller number than the history went back to an older state. (failure scenarios 5 and 9)
create table store_identity (
  singleton boolean primary key default true check (singleton),
  store_id text not null,
  opened integer not null
);
