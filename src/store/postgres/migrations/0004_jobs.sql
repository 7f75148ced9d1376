-- Checks that follow a source: Jobs report their runs, and their deadlines wait until all Jobs up to them are recorded.

-- What one watch covers, the whole cluster or a namespace of it. An area that cannot be seen does not keep the others
-- waiting.
create table seen_areas (
  area text primary key,
  cluster text not null,
  seen_at timestamptz not null,
  watched_since timestamptz,
  held bigint[] not null default '{}'
);
comment on column seen_areas.seen_at is 'all Jobs of the area that changed before are recorded; 1970: it was never seen';
comment on column seen_areas.watched_since is 'of an area that was not seen at first';
comment on column seen_areas.held is 'checks of which something is not recorded, since another transaction holds their rows: their deadlines wait on';

-- What is known of the CronJob that a check follows, apart from its state. Without a row: nothing is reported yet. A row
-- of its own, as others write and keep the rows of checks and check_states.
create table cron_jobs (
  check_key bigint primary key references checks (key) on delete cascade,
  name text not null,
  -- As status.lastRun of the HeartbeatCheck.
  last_run jsonb,
  -- Names of the Jobs of the open runs, by run id.
  jobs jsonb not null default '{}',
  -- Where the longest run time of the check is set, in words.
  limit_from text check (length(limit_from) <= 100),
  -- Why the run with the deadline waiting_for has not started, or what its pods do that should have ended it, and the Job.
  waiting_job text,
  waiting_detail text check (length(waiting_detail) <= 1024),
  waiting_for timestamptz
);
