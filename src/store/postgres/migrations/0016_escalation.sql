-- Escalation (design, section 4, "Escalation").

alter table check_states add column escalation jsonb;
alter table tombstones add column escalation jsonb;
alter table channels add column after_seconds int not null default 0 check (after_seconds between 0 and 86400);

comment on column check_states.escalation is
  '{"upTo": after_seconds of the last channels that were notified of the incident, in milliseconds; "dueAt": or null}';
comment on column channels.after_seconds is 'it is notified of an incident that is so old, and that no one has; 0: at once';
