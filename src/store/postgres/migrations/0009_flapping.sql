-- What is notified of a check (domain/flapping.ts), and what people see of its status. Replicas of the release before leave these columns as they
-- are: `reason` and `incident_since` may be older than the status, and readers allow for that (store/checks/columns.ts).
alter table check_states
  add column reason text,
  add column pings_total bigint not null default 0,
  add column incident_since timestamptz,
  add column changes jsonb,
  add column notified smallint;
-- Null: the check does not flap.
comment on column check_states.notified is '0 new, 1 up, 2 down, 3 paused';
comment on column check_states.pings_total is 'since the check was created, or since this column was';

alter table tombstones
  add column pings_total bigint not null default 0,
  add column incident_since timestamptz;

alter table checks add column updated_at timestamptz not null default now();
comment on column checks.updated_at is 'when the configuration changed last; at first the creation';
