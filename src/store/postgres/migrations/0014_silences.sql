-- Silences (design, section 4, "Silences"), and what keeps a check quiet.

alter table check_states add column hold jsonb;

-- Once (starts_at, ends_at), or from each slot of a schedule on (schedule, time_zone, duration_seconds).
create table silences (
  id uuid primary key,
  organization_id uuid not null references organizations (id),
  project_id uuid not null references projects (id) on delete cascade,
  -- A silence whose check is removed covers nothing.
  check_id uuid,
  tag text,
  starts_at timestamptz,
  ends_at timestamptz,
  schedule text,
  time_zone text,
  dialect text check (dialect in ('cron', 'kubernetes')),
  duration_seconds int check (duration_seconds between 10 and 2592000),
  comment text not null,
  created_by jsonb not null,
  created_at timestamptz not null,
  check (num_nonnulls(starts_at, ends_at) = 2 and num_nonnulls(schedule, time_zone, dialect, duration_seconds) = 0
    or num_nonnulls(starts_at, ends_at) = 0 and num_nonnulls(schedule, time_zone, dialect, duration_seconds) = 4)
);
create index silences_project on silences (project_id, created_at, id);

comment on column check_states.quiet_at is 'when the check stops flapping; null: it does not flap';
comment on column check_states.hold is
  '{"by": "silence" or "dependency", "id", "from", "silencedFrom", "lookAt"}; times: milliseconds since the epoch';
comment on column silences.created_by is '{"kind", "id", "name"}';
