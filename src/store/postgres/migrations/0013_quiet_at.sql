-- When a check stops flapping if it does not change again. Null while `notified` is not: at once.
alter table check_states add column quiet_at timestamptz;
