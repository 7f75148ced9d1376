-- Tenancy ---------------------------------------------------------------------------------------------------------------

create table organizations (
  id uuid primary key,
  name text not null,
  created_at timestamptz not null default now()
);

create table projects (
  id uuid primary key,
  organization_id uuid not null references organizations (id),
  name text not null,
  slug text not null,
  created_at timestamptz not null default now(),
  unique (organization_id, slug)
);

create table users (
  id uuid primary key,
  organization_id uuid not null references organizations (id),
  email text not null,
  password_hash text not null,
  scope text not null check (scope in ('read', 'write', 'admin')),
  created_at timestamptz not null default now()
);
-- One account for an address, whatever its capitals: the address alone names the account at log-in.
create unique index users_email on users (lower(email));
create index users_organization on users (organization_id, id);

create table api_keys (
  id uuid primary key,
  organization_id uuid not null references organizations (id),
  project_id uuid references projects (id) on delete cascade,
  name text not null,
  prefix text not null unique,
  secret_hash bytea not null,
  scope text not null check (scope in ('read', 'write', 'admin')),
  expires_at timestamptz,
  last_used_at timestamptz,
  created_at timestamptz not null default now()
);
create index api_keys_organization on api_keys (organization_id, id);

-- A family is one log-in; each refresh spends its token and adds the next. A spent token that comes back ends the family.
create table refresh_tokens (
  token_hash bytea primary key,
  family_id uuid not null,
  user_id uuid not null references users (id) on delete cascade,
  expires_at timestamptz not null,
  spent_at timestamptz,
  created_at timestamptz not null default now()
);
create index refresh_tokens_family on refresh_tokens (family_id);
create index refresh_tokens_user on refresh_tokens (user_id);

-- Counters shared by replicas: management calls of an organization, failed log-ins. Worth nothing after a crash, so unlogged.
create unlogged table rate_windows (
  bucket text primary key,
  started_at timestamptz not null,
  used int not null
);

-- Checks ----------------------------------------------------------------------------------------------------------------

-- Identity and texts: changed by people, never by a ping. `key` stays inside; `id` is for management, `public_id` for pings.
create table checks (
  key bigint generated always as identity primary key,
  id uuid not null unique,
  public_id uuid not null unique,
  project_id uuid not null references projects (id),
  name text not null,
  slug text not null,
  description text,
  managed_by text not null default 'api' check (managed_by in ('api', 'kubernetes')),
  kubernetes_cluster text,
  kubernetes_namespace text,
  kubernetes_name text,
  -- spec.suspend of the resource: while set, pause and resume belong to the resource
  kubernetes_suspend boolean,
  created_at timestamptz not null,
  unique (project_id, slug)
);
create index checks_list on checks (project_id, created_at, id);
create unique index checks_resource on checks (kubernetes_cluster, kubernetes_namespace, kubernetes_name) where kubernetes_name is not null;

-- The hot row: all that the state machine reads and writes, so that a ping locks and reads one row and nothing else.
-- No column that changes with every ping is in an index (HOT updates). wake_at, which is, only ever
-- moves when the evaluator fires or when it must come earlier: wake_at <= the deadline.
create table check_states (
  check_key bigint primary key references checks (key) on delete cascade,
  period_seconds int,
  schedule text,
  time_zone text,
  grace_seconds int not null,
  max_runtime_seconds int,
  -- 0 new, 1 up, 2 down, 3 paused
  status smallint not null,
  since timestamptz not null,
  last_ping_at timestamptz,
  last_start_at timestamptz,
  expected_at timestamptz,
  due_at timestamptz,
  -- [{"id": run id or null, "startedAt": ms, "deadlineAt": ms or null}]; null for none
  runs jsonb,
  -- the time of the newest history entry: each later one is at least a microsecond younger, so that history has one order
  stamped_at timestamptz not null,
  wake_at timestamptz,
  check ((period_seconds is null) <> (schedule is null)),
  check ((schedule is null) = (time_zone is null))
) with (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.05);
create index check_states_wake on check_states (wake_at) where wake_at is not null;

-- No foreign keys below: they cost a ping a third of its writing; the row lock on check_states stands for them.
create table pings (
  id uuid not null,
  check_key bigint not null,
  -- 0 success, 1 start, 2 fail, 3 log
  type smallint not null,
  exit_code smallint,
  duration_ms int,
  run_id uuid,
  -- 0 http
  source smallint not null,
  created_at timestamptz not null,
  primary key (check_key, id)
);
create unique index pings_run on pings (check_key, run_id, type) where run_id is not null;

create table ping_bodies (
  check_key bigint not null,
  ping_id uuid not null,
  body bytea not null,
  primary key (check_key, ping_id)
);

create table flips (
  id uuid not null,
  check_key bigint not null,
  at timestamptz not null,
  detected_at timestamptz not null,
  from_status smallint,
  to_status smallint not null,
  reason text not null,
  ping_id uuid,
  primary key (check_key, id)
);

-- What we tell the outside about a flip; written in the transaction of its flip.
create table events (
  id uuid primary key,
  check_key bigint not null,
  flip_id uuid not null,
  type text not null,
  data jsonb not null,
  created_at timestamptz not null
);
create index events_check on events (check_key, id);

-- Own downtime ----------------------------------------------------------------------------------------------------------

-- One row: when some replica last was able to take pings.
create table service_beat (
  only_row boolean primary key default true check (only_row),
  beat_at timestamptz
);
insert into service_beat default values;

create table gaps (
  id bigint generated always as identity primary key,
  started_at timestamptz not null,
  ended_at timestamptz not null
);
create index gaps_ended on gaps (ended_at);
