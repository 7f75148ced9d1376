-- Thresholds, reminders and pauses (design, section 4). The usual value is null: rows are rewritten with each ping.

alter table check_states
  add column failures_before_down smallint,
  add column misses_before_down smallint,
  add column remind_every_seconds integer,
  add column remind_on_each_run boolean,
  add column down_notified_at timestamptz,
  add column reminders integer,
  add column consecutive_failures integer,
  add column consecutive_misses integer,
  add column pause jsonb;

-- Incidents that are open: their recipients were notified once.
update check_states set down_notified_at = since
  where status = 2 and incident_since is not null and notified is null;

comment on column check_states.failures_before_down is 'null: 1';
comment on column check_states.misses_before_down is 'null: 1';
comment on column check_states.down_notified_at is 'when the recipients were last notified that the check is down';
comment on column check_states.reminders is 'of this incident; null: 0';
comment on column check_states.consecutive_failures is 'since the last success or warning; null: 0';
comment on column check_states.consecutive_misses is 'since the last run that ended in time; null: 0';
comment on column check_states.pause is '{"by": {"kind", "id", "name"}, "until", "comment"}; until: milliseconds since the epoch, or null';
