-- Whom a check notifies: null: all channels of its project and its organization. Replicas of the release before leave it out: all of them.
alter table checks
  add column channels uuid[] check (cardinality(channels) <= 100 and array_position(channels, null) is null);

-- A channel that is removed leaves the lists.
create index checks_channels on checks using gin (channels) where channels is not null;

-- Whether a completion resumes the check when it is paused. Replicas of the release before leave it out, and resume none.
alter table check_states add column resume_on_ping boolean not null default false;
