-- Of a text that is too long the end is kept, and nothing of one that is far too long or compressed. That is a row here, so that a ping without
-- text costs nothing more. Replicas of the release before store neither.
alter table ping_bodies
  alter column body drop not null,
  add column is_truncated boolean not null default false;
