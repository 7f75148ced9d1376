-- A session is one log-in. With the kind token its id is the family of its refresh tokens.
create table sessions (
  id uuid primary key,
  user_id uuid not null references users (id) on delete cascade,
  kind text not null check (kind in ('token', 'dashboard')),
  -- Network address without a port; null for a log-in before this table.
  address text,
  created_at timestamptz not null,
  last_used_at timestamptz not null,
  expires_at timestamptz not null
);
create index sessions_user on sessions (user_id, created_at, id);
create index sessions_expires on sessions (expires_at);
insert into sessions (id, user_id, kind, created_at, last_used_at, expires_at)
  select family_id, (array_agg(user_id))[1], 'token', min(created_at), max(created_at), max(expires_at)
  from refresh_tokens group by family_id;

-- The throttle of log-ins: the instants of the latest failures of an account, an address, and both. Worth nothing after a crash, so unlogged.
create unlogged table login_failures (
  bucket text primary key,
  failed_at timestamptz[] not null,
  last_at timestamptz not null
);
create index login_failures_last on login_failures (last_at);

-- Where users have logged in from. An IPv6 address stands for its /64.
create table login_addresses (
  user_id uuid not null references users (id) on delete cascade,
  address text not null,
  last_at timestamptz not null,
  primary key (user_id, address)
);
create index login_addresses_last on login_addresses (last_at);

-- Who created it. The name is that of the moment, so that it outlives its bearer. Null for the first start, and before this column.
alter table users
  add column created_by_kind text check (created_by_kind in ('user', 'api_key')),
  add column created_by_id uuid,
  add column created_by_name text;
alter table api_keys
  add column created_by_kind text check (created_by_kind in ('user', 'api_key')),
  add column created_by_id uuid,
  add column created_by_name text;
