-- What is known of the CronJob that a check follows, apart from its state. Without a row: nothing is reported yet. A row of its own, as rows of checks and
-- check_states are written and cached by others.
create table cron_jobs (
  check_key bigint primary key references checks (key) on delete cascade,
  name text not null,
  -- as status.lastRun of the HeartbeatCheck
  last_run jsonb,
  -- names of the Jobs of the open runs, by run id
  jobs jsonb not null default '{}',
  -- where the longest run time of the check is set, in words
  limit_from text check (length(limit_from) <= 100),
  -- why the run with the deadline waiting_for has not started, or what its pods do that should have ended it, and the Job
  waiting_job text,
  waiting_detail text check (length(waiting_detail) <= 1024),
  waiting_for timestamptz
);

-- Why, in words, and the Job that it is about. Replicas of the release before leave them out: null.
alter table flips
  add column detail text,
  add column job text;

-- The reason of the status that a removed check had, so that one which follows a CronJob comes back with it. Replicas of the release before leave it out.
alter table tombstones add column reason text;

comment on column pings.source is '0 http, 1 job';
