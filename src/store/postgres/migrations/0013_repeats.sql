-- Warnings and reminders of runs are bounded (domain/repeats.ts).

alter table check_states add column repeats jsonb;

comment on column check_states.repeats is 'when the last of them were notified, in milliseconds since the epoch; null: none';
