-- The spec of a check as one number: a process that keeps specs in memory stores a ping on condition that the number is
-- the same (store/checks/plain-pings.ts). 48 bits, as many as Node reads at once.
alter table check_states add column spec_hash int8 not null generated always as (
  hashtextextended(
    coalesce(period_seconds::text, '') || '|' || coalesce(schedule, '') || '|' || coalesce(time_zone, '') || '|' ||
    coalesce(dialect, '') || '|' || grace_seconds::text || '|' || coalesce(max_runtime_seconds::text, '') || '|' ||
    coalesce(job_area, '') || '|' || resume_on_ping::text, 0) & 281474976710655) stored;

-- Texts of some kilobytes take a quarter less of the server's time than with its own compression. Not each server has it.
do $$
begin
  alter table ping_bodies alter column body set compression lz4;
exception when feature_not_supported then null;
end $$;

-- Checks whose pings wait on the disk of this process because another session has locked their rows: the deadlines of
-- these checks wait, and no others.
alter table ping_beats add column locked_checks int8[] not null default '{}';
