-- Calls are counted in a sliding window (design, section 3.2): the window before the present one, and whether the last call was rejected. Replicas of the
-- release before do not write them.
alter table rate_windows
  add column previous integer not null default 0,
  add column is_rejected boolean not null default false;
