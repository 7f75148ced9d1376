-- A check that follows a source has no schedule while that of the source cannot be read, or the source is not there.
alter table check_states
  drop constraint check_states_check,
  add constraint check_states_schedule
    check (num_nonnulls(period_seconds, schedule) = 1 or (num_nonnulls(period_seconds, schedule) = 0 and job_area is not null));
