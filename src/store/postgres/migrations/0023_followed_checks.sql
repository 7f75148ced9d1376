-- Checks that follow a source: Jobs report their runs, and their deadlines wait until all Jobs up to them are recorded.
alter table check_states
  add column job_area text;
comment on column check_states.job_area is 'the area whose Jobs report: a cluster, or cluster/namespace; null: pings report';

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

-- Two indexes: while the Jobs of an area cannot be seen, thousands of its checks may be overdue, and no look for others
-- reads them.
drop index check_states_wake;
create index check_states_wake on check_states (wake_at) where job_area is null and wake_at is not null;
create index check_states_job_wake on check_states (job_area, wake_at) where job_area is not null and wake_at is not null;
