-- Sessions, and one account per email. Hashes of passwords tell their cost.
update account set
  email = lower(email),
  password_hash = '$scrypt$ln=14,r=8,p=1$' || translate(substr(password_hash, length('scrypt$') + 1), '-_', '+/');

-- Processes that race for the birth of an Installation write the same email each; the history names the one that counts.
alter table account add column founding boolean not null default true;
alter table account alter column founding set default false;
create unique index account_one_per_email on account (email) where not founding;

create table session (
  session_key text primary key,
  -- SHA-256 of the token in the cookie.
  token_hash bytea not null unique,
  user_id text not null references account on delete cascade,
  created_at timestamptz not null default clock_timestamp(),
  expires_at timestamptz not null
);
create index session_of_account on session (user_id);
create index session_end on session (expires_at);
