-- Who reads the schedule of a check: cron that of a check of the API, Kubernetes that of a HeartbeatCheck. Null: it has a period. It follows from
-- checks.managed_by, and stands here too: a ping that waits for the lock of this row must see both change at once.
alter table check_states add column dialect text
  constraint check_states_dialect check (dialect in ('cron', 'kubernetes'));

update check_states s set dialect = case c.managed_by when 'kubernetes' then 'kubernetes' else 'cron' end
  from checks c where c.key = s.check_key and s.schedule is not null;
