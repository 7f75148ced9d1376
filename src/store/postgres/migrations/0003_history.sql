-- What happened to checks, and to the service itself.

-- No foreign keys in the history: they cost a ping a third of its writing; the row lock on check_states stands for them.
create table pings (
  id uuid not null,
  check_key bigint not null,
  type smallint not null,
  exit_code smallint,
  duration_ms int,
  run_id uuid,
  source smallint not null,
  created_at timestamptz not null,
  primary key (check_key, id)
);
comment on column pings.type is '0 success, 1 start, 2 fail, 3 log';
comment on column pings.source is '0 http, 1 job';
create unique index pings_run on pings (check_key, run_id, type) where run_id is not null;

-- Of a text that is too long the end is kept, and nothing of one that is far too long or compressed. That is a row here,
-- so that a ping without text costs nothing more.
create table ping_bodies (
  check_key bigint not null,
  ping_id uuid not null,
  body bytea,
  is_truncated boolean not null default false,
  primary key (check_key, ping_id)
);
-- Texts of some kilobytes take a quarter less of the server's time than with its own compression. Not each server has it.
do $$
begin
  alter table ping_bodies alter column body set compression lz4;
exception when feature_not_supported then null;
end $$;

create table flips (
  id uuid not null,
  check_key bigint not null,
  at timestamptz not null,
  detected_at timestamptz not null,
  from_status smallint,
  to_status smallint not null,
  reason text not null,
  ping_id uuid,
  -- Why, in words, and the Job that it is about.
  detail text,
  job text,
  primary key (check_key, id)
);
comment on column flips.from_status is '0 new, 1 up, 2 down, 3 paused';
comment on column flips.to_status is '0 new, 1 up, 2 down, 3 paused';

-- One row: when some replica last was able to take pings.
create table service_beat (
  only_row boolean primary key default true check (only_row),
  beat_at timestamptz
);
insert into service_beat default values;

create table gaps (
  id bigint generated always as identity primary key,
  started_at timestamptz not null,
  ended_at timestamptz not null,
  -- Whether all pings of the gap were spooled, so that it hides nothing. Null: not yet known.
  spooled boolean default false
);
create index gaps_ended on gaps (ended_at);
create index gaps_open on gaps (id) where spooled is null;

-- The api processes: whether their pings of a gap are spooled, and recorded. A process that stops keeps its row: its
-- beats explain when pings were stored, and nothing waits for it any more.
create table ping_beats (
  id uuid primary key,
  -- Its first beat.
  started_at timestamptz not null,
  beat_at timestamptz not null,
  has_stopped boolean not null default false,
  has_spool boolean not null,
  -- Since when pings wait in its spool; null: none waits.
  pending_since timestamptz,
  -- When it refused a ping last because its spool was full or broken.
  refused_at timestamptz,
  -- Checks whose pings wait in its spool because another session has locked their rows: the deadlines of these checks
  -- wait, and no others.
  locked_checks int8[] not null default '{}'
) with (fillfactor = 50);

-- Up to which position each spool is recorded (design, section 10). A spool outlives the process that wrote it; its row
-- is kept for a year after its last use.
create table spools (
  id uuid primary key,
  read_to bigint not null default 0,
  used_at timestamptz not null default now()
) with (fillfactor = 50);
