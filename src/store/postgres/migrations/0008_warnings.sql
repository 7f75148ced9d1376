-- Warnings (design, section 4, "Warnings"): a completion at which a person should look in the morning.

alter table check_states
  add column warn_exit_codes jsonb,
  add column last_outcome smallint,
  add column warned_at timestamptz;

alter table tombstones add column last_outcome smallint;

comment on column pings.type is '0 success, 1 start, 2 fail, 3 log, 4 warn';
comment on column check_states.last_outcome is '0 success, 2 fail, 4 warn';
comment on column check_states.warn_exit_codes is 'a list of numbers; null: none';
comment on column check_states.warned_at is 'when the last warning was notified of those since the last other completion';
