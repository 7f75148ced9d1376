-- Who says in /metrics how each check is doing: one replica at a time, as long as its row is young. Worth nothing after a crash,
-- so unlogged.
create unlogged table exporter (
  only_row boolean primary key default true check (only_row),
  holder uuid not null,
  expires_at timestamptz not null
);

-- Of the last success and of the last completion. In no index: every ping changes them.
alter table check_states
  add column last_success_at timestamptz,
  add column last_duration_ms int;
alter table tombstones
  add column last_success_at timestamptz,
  add column last_duration_ms int;

-- As far as history goes back. Of one that is up the last completion was a success, which its readers know: only the few others
-- are looked up, since nobody can ping meanwhile. States have whole milliseconds.
update check_states s set
  last_success_at = (select date_trunc('milliseconds', p.created_at) from pings p where p.check_key = s.check_key and p.type = 0 order by p.id desc limit 1),
  last_duration_ms = (select p.duration_ms from pings p where p.check_key = s.check_key and p.type in (0, 2) order by p.id desc limit 1)
where s.status <> 1 and s.last_ping_at is not null;
