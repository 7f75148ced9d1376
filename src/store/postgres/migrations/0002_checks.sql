-- Checks: what people configure, their states, and what remains of those whose resource was deleted.

-- Identity and texts: changed by people, never by a ping. `key` stays inside; `id` is for management, `public_id` for
-- pings. No edge lets in what the constraints reject: they are those of domain/limits.ts and the CRD.
create table checks (
  key bigint generated always as identity primary key,
  id uuid not null unique,
  public_id uuid not null unique,
  project_id uuid not null references projects (id),
  name text not null constraint checks_name check (char_length(name) between 1 and 100),
  slug text not null constraint checks_slug check (char_length(slug) between 1 and 100),
  -- A client of healthchecks' API gave an empty slug, and that API shows the empty one (docs/use/moving-in.md).
  slug_left_empty boolean not null default false,
  description text constraint checks_description check (char_length(description) <= 4096),
  -- In the order that people gave them. No tag has a comma: joined, the tags can be judged by expressions, which unlike
  -- subqueries a constraint may have.
  tags text[] not null default '{}'
    constraint checks_tags check (cardinality(tags) = 0 or cardinality(tags) <= 20 and array_position(tags, null) is null
      and array_to_string(tags, ',') ~ '^[A-Za-z0-9_.:/-]{1,50}(,[A-Za-z0-9_.:/-]{1,50})*$'
      and array_to_string(tags, ',') !~ '(^|,)([^,]+),(.*,)?\2(,|$)'),
  -- By the rules of Kubernetes.
  labels jsonb not null default '{}'
    constraint checks_labels check (labels = '{}' or jsonb_typeof(labels) = 'object'
      and jsonb_array_length(jsonb_path_query_array(labels, '$.keyvalue()')) <= 32
      and not jsonb_path_exists(labels, '$.keyvalue() ? (
        !(@.key like_regex "^((?=[^/]{1,253}/)[a-z0-9]([a-z0-9-]*[a-z0-9])?([.][a-z0-9]([a-z0-9-]*[a-z0-9])?)*/)?[A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?$")
        || @.value.type() != "string" || !(@.value like_regex "^([A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?)?$"))')),
  -- Whom the check notifies; null: all channels of its project and its organization.
  channels uuid[] check (cardinality(channels) <= 100 and array_position(channels, null) is null),
  managed_by text not null default 'api' check (managed_by in ('api', 'kubernetes')),
  kubernetes_cluster text,
  kubernetes_namespace text,
  kubernetes_name text,
  -- spec.suspend of the resource: while set, pause and resume belong to the resource.
  kubernetes_suspend boolean,
  -- How the resource came to its check, and where the resource is: an adopted check stays in its project, and with
  -- REVIVAL=uid a check comes back in its own namespace only (design, section 6). Null: unknown, or not adopted.
  kubernetes_adopted boolean,
  kubernetes_namespace_uid text,
  kubernetes_cluster_uid text,
  created_at timestamptz not null,
  updated_at timestamptz not null default now(),
  unique (project_id, slug)
);
comment on column checks.updated_at is 'when the configuration changed last; at first the creation';
create index checks_list on checks (project_id, created_at, id);
create unique index checks_resource on checks (kubernetes_cluster, kubernetes_namespace, kubernetes_name) where kubernetes_name is not null;
-- Finds checks by a part of their name or slug. The extension pg_trgm is there: migrate.ts creates it.
create index checks_search on checks using gin (name gin_trgm_ops, slug gin_trgm_ops);
-- A channel that is removed leaves the lists.
create index checks_channels on checks using gin (channels) where channels is not null;

-- The hot row: all that the state machine reads and writes, so that a ping locks and reads one row and nothing else.
-- No column that changes with every ping is in an index (HOT updates). wake_at, which is, only ever moves when the
-- evaluator fires or when it must come earlier: wake_at <= the deadline.
create table check_states (
  check_key bigint primary key references checks (key) on delete cascade,
  period_seconds int constraint check_states_period check (period_seconds between 10 and 31536000),
  schedule text,
  time_zone text,
  -- Who reads the schedule. It follows from checks.managed_by, and stands here too: a ping that waits for the lock of
  -- this row must see both change at once. Null: the check has no schedule.
  dialect text constraint check_states_dialect check (dialect in ('cron', 'kubernetes')),
  grace_seconds int not null constraint check_states_grace check (grace_seconds between 0 and 31536000),
  max_runtime_seconds int constraint check_states_max_runtime check (max_runtime_seconds between 1 and 31536000),
  job_area text,
  -- Whether a completion resumes the check when it is paused.
  resume_on_ping boolean not null default false,
  status smallint not null,
  since timestamptz not null,
  reason text,
  last_ping_at timestamptz,
  last_start_at timestamptz,
  -- Of the last success and of the last completion.
  last_success_at timestamptz,
  last_duration_ms int,
  pings_total bigint not null default 0,
  expected_at timestamptz,
  due_at timestamptz,
  -- [{"id": run id or null, "startedAt": ms, "deadlineAt": ms or null}]; null for none
  runs jsonb,
  -- What is notified of the check (domain/quiet.ts).
  incident_since timestamptz,
  changes jsonb,
  notified smallint,
  -- When the check stops flapping if it does not change again. Null while `notified` is not: at once.
  quiet_at timestamptz,
  -- The time of the newest history entry: each later one is at least a microsecond younger, so that history has one order.
  stamped_at timestamptz not null,
  wake_at timestamptz,
  -- A check that follows a source has no schedule while that of the source cannot be read, or the source is not there.
  constraint check_states_schedule
    check (num_nonnulls(period_seconds, schedule) = 1 or (num_nonnulls(period_seconds, schedule) = 0 and job_area is not null)),
  constraint check_states_time_zone check ((schedule is null) = (time_zone is null))
) with (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.05);
-- test/db/checks/columns.test.ts compares the numbers that stand for words with domain/check.ts.
comment on column check_states.status is '0 new, 1 up, 2 down, 3 paused';
comment on column check_states.notified is '0 new, 1 up, 2 down, 3 paused';
comment on column check_states.pings_total is 'since the check was created';
comment on column check_states.job_area is 'the area whose Jobs report: a cluster, or cluster/namespace; null: pings report';
-- Two indexes: while the Jobs of an area cannot be seen, thousands of its checks may be overdue, and no look for others
-- reads them.
create index check_states_wake on check_states (wake_at) where job_area is null and wake_at is not null;
create index check_states_job_wake on check_states (job_area, wake_at) where job_area is not null and wake_at is not null;

-- Tokens of Uptime Kuma's push monitors, whose URLs go on pinging the checks that the monitors became. Of the whole
-- installation, as the URL names nothing else. A token is the right to ping one check, as its public id is.
create table push_tokens (
  token text primary key check (token ~ '^[A-Za-z0-9_-]{1,64}$'),
  check_key bigint not null references checks (key) on delete cascade
);
create index push_tokens_check on push_tokens (check_key);

-- What the database keeps of a check whose resource was deleted: its place in the history, and all that a re-created
-- resource gets back. The rows of checks and check_states are gone, so no read has to leave a deleted check out.
create table tombstones (
  check_key bigint primary key,
  id uuid not null unique,
  public_id uuid not null unique,
  project_id uuid not null references projects (id) on delete cascade,
  slug text not null,
  kubernetes_cluster text not null,
  kubernetes_namespace text not null,
  kubernetes_name text not null,
  kubernetes_adopted boolean,
  kubernetes_namespace_uid text,
  kubernetes_cluster_uid text,
  -- Of the status that the check had, so that a check which follows a CronJob comes back with that status.
  reason text,
  last_ping_at timestamptz,
  last_start_at timestamptz,
  last_success_at timestamptz,
  last_duration_ms int,
  pings_total bigint not null default 0,
  incident_since timestamptz,
  stamped_at timestamptz not null,
  created_at timestamptz not null,
  deleted_at timestamptz not null,
  unique (kubernetes_cluster, kubernetes_namespace, kubernetes_name)
);
create index tombstones_project on tombstones (project_id);
create index tombstones_deleted on tombstones (deleted_at);

-- The resource that declared a check until it was deleted with deletionPolicy Retain. Declared again it has the check
-- back, unless that was changed through the API: updated_at is that of the check at the time. published_*: the Secret or
-- ConfigMap that keeps the URL.
create table retained_checks (
  check_key bigint primary key references checks (key) on delete cascade,
  kubernetes_cluster text not null,
  kubernetes_namespace text not null,
  kubernetes_name text not null,
  kubernetes_adopted boolean,
  kubernetes_namespace_uid text,
  kubernetes_cluster_uid text,
  published_kind text,
  published_name text,
  updated_at timestamptz not null,
  retained_at timestamptz not null
);
create index retained_checks_resource on retained_checks (kubernetes_cluster, kubernetes_namespace, kubernetes_name);

-- Up to which flip the operator has recorded the history of a declared check as Kubernetes Events (design, section 6).
-- Without a row: none. A row of its own, as others write and keep the rows of checks and check_states.
create table reported_flips (
  check_key bigint primary key references checks (key) on delete cascade,
  flip_id uuid not null
);
