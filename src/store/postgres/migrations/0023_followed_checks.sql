-- Checks that follow a source: Jobs report their runs, and their deadlines wait until all Jobs up to them are recorded.
alter table check_states
  add column job_area text,
  add column job_wake_at timestamptz;
comment on column check_states.job_area is 'the area whose Jobs report: a cluster, or cluster/namespace; null: pings report';
comment on column check_states.job_wake_at is 'wake_at of a check that follows a source; its wake_at is null';

-- What one watch covers, the whole cluster or a namespace of it. An area that cannot be seen does not keep the others waiting.
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

-- An index beside check_states_wake: while the Jobs of an area cannot be seen, thousands of its checks may be overdue, and no look for others may read them.
create index check_states_job_wake on check_states (job_area, job_wake_at) where job_wake_at is not null;

-- Replicas of the release before evaluate whatever has a wake_at, and know nothing of seen_areas: during a rolling update, or after a rollback, they would
-- call a job missed that has run. They still store pings of its container, and pause and resume the check, and set its wake_at then: it is moved to where
-- only replicas that know it evaluate it. Never later than both: the deadline may have become earlier.
-- After the update, not before: a trigger before it would lock each row that a ping updates once more.
create function move_job_wake() returns trigger language plpgsql as $$
begin
  update check_states set wake_at = null, job_wake_at = least(job_wake_at, new.wake_at) where check_key = new.check_key;
  return null;
end
$$;
create trigger move_job_wake after insert or update of wake_at, job_area on check_states
  for each row when (new.job_area is not null and new.wake_at is not null) execute function move_job_wake();
