-- Warnings (design, section 4, "Warnings"): a completion at which a person should look in the morning.

alter table check_states
  -- The exit codes of a warning, as a list of numbers; null: none.
  add column warn_exit_codes jsonb,
  -- The type of the last completion, as in pings.type.
  add column last_outcome smallint,
  -- When the last warning was notified of those since the last other completion.
  add column warned_at timestamptz;

alter table tombstones add column last_outcome smallint;
